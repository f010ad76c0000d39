"""Rows of the items of arrays: UNNEST, Spark's ``LATERAL VIEW explode(a) t AS x``, and ``explode`` in a select list.

All of them become items of FROM that see what stands before them.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from headwater.errors import SqlError
from headwater.language.parsing.syntax import ArrayRows
from headwater.language.text import error_on

GENERATORS = {name: (name, False) for name in ("UNNEST", "EXPLODE", "POSEXPLODE", "INLINE")}
GENERATORS |= {f"{name}_OUTER": (name, True) for name in ("EXPLODE", "POSEXPLODE", "INLINE")}
"""By name: what kind of rows, and whether a row without items stays."""
_NO_ROWS = "It makes rows of arrays: write it in FROM, as in FROM s CROSS JOIN UNNEST(s.a) AS t(x)."


def array_rows(text: str, call: exp.Expr, alias: exp.Expr | None = None, **options: Any) -> ArrayRows:
    """The FROM item of a call of one of them."""
    name = call.name.upper()
    kind, outer = GENERATORS[name]
    given = call.expressions
    if len(given) != 1:
        hint = "Of several arrays make one of STRUCTs, or number the items WITH ORDINALITY and join." if given else ""
        raise error_on(
            text, call, "WRONG_ARGUMENTS", f'function "{name.lower()}" takes 1 array, not {len(given)}', hint=hint
        )
    outer = outer or bool(options.pop("outer", False))
    made = ArrayRows(this=given[0], kind=kind, outer=outer, alias=alias, **options)
    made.meta.update(call.meta)
    return made


def is_generator(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in GENERATORS


def with_array_rows(text: str, query: exp.Select) -> exp.Select:
    """The query with what its select list and LATERAL VIEWs make of arrays in FROM."""
    for lateral in query.args.pop("laterals", None) or ():
        query.append("joins", _joined(_of_view(text, lateral)))
    places = [i for i, chosen in enumerate(query.expressions) if is_generator(_inside(chosen))]
    if not places:
        return query
    calls = [query.expressions[i] for i in places]
    _check(text, query, calls)
    (place,), (chosen,) = places, calls
    label = exp.to_identifier(f"{_inside(chosen).name.lower()} of the select list")
    alias = exp.TableAlias(this=label, columns=_names(chosen))
    query.append("joins", _joined(array_rows(text, _inside(chosen), alias, hidden=True)))
    star = exp.Column(this=exp.Star(), table=label.copy())
    star.meta.update(chosen.meta)
    query.set("expressions", [*query.expressions[:place], star, *query.expressions[place + 1 :]])
    return query


def _joined(item: ArrayRows) -> exp.Join:
    """It sees all that stands before it."""
    return exp.Join(this=item, kind="COMMA")


def _of_view(text: str, lateral: exp.Lateral) -> ArrayRows:
    call = lateral.this
    if not is_generator(call):
        place = call if isinstance(call, exp.Expr) else lateral
        hint = "LATERAL VIEW takes explode, posexplode or inline of an array."
        raise error_on(text, place, "UNSUPPORTED", "this cannot be used in LATERAL", hint=hint)
    return array_rows(text, call, lateral.args.get("alias"), outer=lateral.args.get("outer"))


def _inside(chosen: exp.Expr) -> exp.Expr:
    return chosen.this if isinstance(chosen, (exp.Alias, exp.Aliases)) else chosen


def _names(chosen: exp.Expr) -> list[exp.Expr]:
    if isinstance(chosen, exp.Aliases):
        return list(chosen.expressions)
    return [chosen.args["alias"]] if isinstance(chosen, exp.Alias) else []


def _check(text: str, query: exp.Select, calls: list[exp.Expr]) -> None:
    name = _inside(calls[0]).name.lower()
    if len(calls) > 1:
        hint = "Put them into FROM: CROSS JOIN UNNEST(a) AS t(x) CROSS JOIN UNNEST(b) AS u(y) makes all pairs."
        raise error_on(text, _inside(calls[1]), "UNSUPPORTED", "a select list makes rows of one array", hint=hint)
    if query.args.get("group") or any(chosen.find(exp.Window) for chosen in query.expressions):
        hint = "Write it in FROM, or GROUP BY and OVER in a sub-query: SELECT explode(a) AS x FROM (SELECT …)."
        raise error_on(
            text, _inside(calls[0]), "UNSUPPORTED", f'"{name}" cannot be used beside GROUP BY or OVER', hint=hint
        )


def misplaced(text: str, node: exp.Expr) -> SqlError:
    """The error for one of them inside of an expression."""
    message = f'function "{node.name.lower()}" cannot be used inside of an expression'
    return error_on(text, node, "UNSUPPORTED", message, hint=_NO_ROWS)
