"""``SELECT Wstream(…)[w] FROM …`` is a window over the answer of an INTERNAL query (Golab 3.3.3, 3.4).

    SELECT Wstream(*)[ROWS 10] FROM …                is  SELECT * FROM (SELECT * FROM …) [ROWS 10]
    SELECT SUM(Wstream(SUM(a))[ROWS 10]) AS s FROM …  is  SELECT SUM(w) AS s FROM (SELECT SUM(a) AS w FROM …) [ROWS 10]

where the results of the inner query do not expire, as if its windows were INTERNAL.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.errors import SqlError
from headwater.language.parsing.syntax import OutputWindow
from headwater.language.text import error_on


def windowed_output(text: str, query: exp.Select) -> exp.Select:
    """The query without Wstream; itself if it has none."""
    found = list(query.find_all(OutputWindow))
    if not found:
        return query
    _check_places(text, query, found)
    outputs = query.expressions
    first = outputs[0].unalias()
    if len(outputs) == 1 and isinstance(first, OutputWindow):
        inside, outside = _whole_list(text, outputs[0], first), [exp.Star()]
        if first.args["distinct"]:
            query.set("distinct", exp.Distinct())
    else:
        inside, outside = _values(text, outputs, found)
    window = found[0].args["window"]
    query.set("expressions", inside)
    query.set("internal", True)
    return exp.Select(expressions=outside, from_=exp.From(this=exp.Subquery(this=query, stream_window=window)))


def _check_places(text: str, query: exp.Select, found: Sequence[OutputWindow]) -> None:
    for node in found:
        if node.find_ancestor(OutputWindow) is not None:
            hint = "Put the inner query into FROM."
            raise error_on(text, node, "SYNTAX", "a Wstream cannot stand in another one", hint=hint)
        top: exp.Expr = node
        while top.parent is not query:
            assert top.parent is not None
            top = top.parent
        if top.arg_key != "expressions":
            hint = "To filter or group by what it gives, put the query into FROM."
            raise error_on(text, node, "SYNTAX", "Wstream can stand in the select list only", hint=hint)
        if node.args["window"] != found[0].args["window"]:
            hint = "Put one query a window into FROM."
            raise error_on(text, node.args["window"], "SYNTAX", "a query has one window over its answer", hint=hint)


def _whole_list(text: str, output: exp.Expr, node: OutputWindow) -> list[exp.Expr]:
    """``Wstream(a, b)[w]`` alone: its columns are those of the query."""
    if output is node:
        return node.expressions
    only = node.expressions[0]
    if len(node.expressions) > 1 or only.is_star or isinstance(only, exp.Alias):
        hint = "Give names inside of the parentheses: Wstream(a AS x, b AS y)."
        raise error_on(text, output.args["alias"], "COLUMN_COUNT", "an alias names one column", hint=hint)
    output.set("this", only)
    return [output]


def _values(
    text: str, outputs: Sequence[exp.Expr], found: Sequence[OutputWindow]
) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """``SUM(Wstream(a)[w])``: the column by itself inside, what is computed of it outside."""
    for output in outputs:
        for node in output.walk(prune=lambda n: isinstance(n, (OutputWindow, exp.Query))):
            if isinstance(node, exp.Column) or (isinstance(node, exp.Star) and not isinstance(node.parent, exp.Func)):
                raise _outside(text, node)
    names = [output.alias or _shown(output) for output in outputs]
    inside: list[exp.Expr] = []
    for node in found:
        only = node.expressions[0]
        if len(node.expressions) > 1 or only.is_star or node.args["distinct"] or isinstance(only, exp.Alias):
            hint = "Name one expression in it, or let it stand alone: SELECT Wstream(a, b)[ROWS 10]."
            raise error_on(text, node, "SYNTAX", "inside of an expression, Wstream has one value", hint=hint)
        name = f"wstream_{len(inside) + 1}"
        inside.append(exp.alias_(only.copy(), name))
        node.replace(exp.column(name).update_positions(node))
    return inside, [
        exp.alias_(output.unalias().copy(), name, quoted=True) for output, name in zip(outputs, names, strict=True)
    ]


def _shown(output: exp.Expr) -> str:
    """The name of a column that has none: the expression, without the windows."""
    plain = output.copy().transform(lambda n: n.expressions[0] if isinstance(n, OutputWindow) else n)
    try:
        return plain.sql(dialect="spark", normalize_functions="lower", comments=False)
    except ValueError:  # syntax of ours in a sub-query
        return "wstream"


def _outside(text: str, node: exp.Expr) -> SqlError:
    return error_on(
        text,
        node,
        "SYNTAX",
        "beside Wstream there can be only what is computed of it",
        detail="The columns of FROM are inside of its parentheses; outside is the window over the answer.",
        hint="Put the query into FROM: SELECT … FROM (SELECT … FROM s [RANGE 1 MINUTE INTERNAL]) [ROWS 10].",
    )
