"""Plans as text that people and tests read and write: one node a line, its inputs below it, two spaces further in.

    aggregate by "auction": COUNT(*) AS "n" BIGINT
      window range 10 slide 2
        filter "price" > 10
          source bid (auction BIGINT, price DOUBLE NOT NULL) chronons final

``parse_plan(print_plan(plan)) == plan`` for every plan whose scalars list their columns in order of appearance. A node
that is shared is written at each of its places. Functions of the user's are declared on lines before the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import singledispatch

from headwater.algebra import nodes as n
from headwater.algebra.plan_values import literal, string
from headwater.errors import HeadwaterError
from headwater.expressions.nodes import Expression
from headwater.expressions.printing import quoted
from headwater.expressions.rewrite import plain_column
from headwater.expressions.text import to_text
from headwater.model.functions import UserFunction
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.model.types import sql_name

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def print_plan(plan: n.Plan) -> str:
    """The plan as text, without a line break at the end.

    >>> print(print_plan(n.Distinct(n.Source("s", Schema.of(x="INT"), chronons=True))))
    distinct
      source s (x INT) chronons
    """
    return "\n".join([*_declarations(plan), *_tree(plan)])


def print_node(plan: n.Plan) -> str:
    """The line of the node itself."""
    return _line(plan)


def _tree(plan: n.Plan) -> Iterator[str]:
    waiting = [(plan, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield "  " * depth + _line(node)
        waiting += [(child, depth + 1) for child in reversed(node.inputs)]


def _declarations(plan: n.Plan) -> Iterator[str]:
    declared: dict[str, UserFunction] = {}
    for function in (f for node in plan.walk() for scalar in _scalars(node) for f in scalar.functions):
        known = declared.setdefault(function.name, function)
        if known != function:
            raise HeadwaterError("PLAN_TEXT", f'the plan calls two functions of the name "{function.name}"')
    for function in declared.values():
        taken = ", ".join(sql_name(t) for t in function.parameters)
        returned = sql_name(function.returns)
        yield f"function {quoted(function.name)} ({taken}) RETURNS {returned} AS {string(function.path)}"


def _scalars(plan: n.Plan) -> Iterator[Expression]:
    match plan:
        case n.Filter():
            yield plan.predicate
        case n.Project():
            yield from (scalar for _, scalar in plan.expressions)
        case n.Join(residual=Expression() as residual):
            yield residual


# -- parts of a line ------------------------------------------------------------------------------------------------


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def _plain(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


def _field(field: Field) -> str:
    return f"{_plain(field.name)} {sql_name(field.type)}{'' if field.nullable else ' NOT NULL'}"


def _schema(schema: Schema) -> str:
    return f"({', '.join(map(_field, schema))})"


def _partition(names: Sequence[str]) -> str:
    return f" partition by {_names(names)}" if names else ""


# -- a line a node --------------------------------------------------------------------------------------------------


@singledispatch
def _line(plan: n.Plan) -> str:
    raise TypeError(f"no plan text for {type(plan).__name__}")


@_line.register
def _(plan: n.Source) -> str:
    flags = f"{' chronons' if plan.chronons else ''}{'' if plan.revisable else ' final'}"
    flags += f"{' unordered' if plan.unordered else ''}{' checked' if plan.checked else ''}"
    if plan.events:
        flags += " events" + (f" key {_names(plan.key)}" if plan.key else "")
    return f"source {_plain(plan.name)} {_schema(plan.columns)}{flags}"


@_line.register
def _(plan: n.Constant) -> str:
    types = plan.columns.types
    rows = (", ".join(literal(v, t) for v, t in zip(row, types, strict=True)) for row in plan.rows)
    return f"constant {_schema(plan.columns)} [{', '.join(f'({row})' for row in rows)}]"


@_line.register
def _(plan: n.Filter) -> str:
    return f"filter {to_text(plan.predicate)}"


@_line.register
def _(plan: n.Project) -> str:
    below = {f.name: f.type for f in plan.input.schema}
    return f"project {', '.join(_expression(name, scalar, below) for name, scalar in plan.expressions)}".rstrip()


def _expression(name: str, scalar: Expression, below: dict[str, object]) -> str:
    column = plain_column(scalar)
    if column is None or below.get(column) != scalar.type:
        return f"{quoted(name)} {sql_name(scalar.type)} = {to_text(scalar)}"
    return quoted(name) if column == name else f"{quoted(name)} = {quoted(column)}"


@_line.register
def _(plan: n.Union) -> str:
    return "union"


@_line.register
def _(plan: n.Join) -> str:
    keys = f" on {', '.join(f'{quoted(a)} = {quoted(b)}' for a, b in plan.keys)}" if plan.keys else ""
    residual = f" where {to_text(plan.residual)}" if plan.residual is not None else ""
    return f"{plan.kind.value} join{keys}{residual}"


@_line.register
def _(plan: n.Distinct) -> str:
    return "distinct"


@_line.register
def _(plan: n.SetOperation) -> str:
    return plan.kind.value


@_line.register
def _(plan: n.Aggregate) -> str:
    return f"aggregate{_grouped(plan)}"


@_line.register
def _(plan: n.PreAggregate) -> str:
    return f"partial aggregate{_grouped(plan)}"


def _grouped(plan: n.Aggregate | n.PreAggregate) -> str:
    keys = f" by {_names(plan.keys)}" if plan.keys else ""
    calls = f": {', '.join(map(_call, plan.calls))}" if plan.calls else ""
    return f"{keys}{calls}"


def _call(call: n.AggregateCall) -> str:
    first = "*" if call.argument is None else quoted(call.argument)
    arguments = ", ".join([f"{'DISTINCT ' if call.distinct else ''}{first}", *map(literal, call.parameters)])
    condition = f" FILTER {quoted(call.filter)}" if call.filter is not None else ""
    return f"{_plain(call.function)}({arguments}){condition} AS {quoted(call.output)} {sql_name(call.type)}"


@_line.register
def _(plan: n.Await) -> str:
    return f"await{f' by {_names(plan.by)}' if plan.by else ''}"


@_line.register
def _(plan: n.TimeWindow) -> str:
    size = "unbounded" if plan.unbounded else plan.size
    return f"window range {size}{f' slide {plan.slide}' if plan.slide != 1 else ''}"


@_line.register
def _(plan: n.RowWindow) -> str:
    slide = f" slide {plan.slide}" if plan.slide != 1 else ""
    return f"window rows {plan.rows}{slide}{_partition(plan.partition)}"


@_line.register
def _(plan: n.HopWindow) -> str:
    lifetime = f" lifetime {plan.lifetime}" if plan.lifetime is not None else ""
    return f"hop size {plan.size} slide {plan.slide}{_offset(plan)}{lifetime}{_ends(plan)}"


@_line.register
def _(plan: n.SessionWindow) -> str:
    return f"session gap {plan.gap}{_partition(plan.partition)}{_ends(plan)}"


def _ends(plan: n.HopWindow | n.SessionWindow) -> str:
    return f" as {quoted(plan.start)}, {quoted(plan.end)} {sql_name(plan.time)}"


@_line.register
def _(plan: n.TopK) -> str:
    limit = "all" if plan.limit == INFINITY else plan.limit
    order = f" by {', '.join(map(_sort_key, plan.order))}" if plan.order else ""
    rank = f" as {quoted(plan.rank)}" if plan.rank is not None else ""
    return f"top {limit}{_offset(plan)}{order}{_partition(plan.partition)}{rank}"


def _sort_key(key: n.SortKey) -> str:
    """NULLs come first where the order ascends; where it descends their place is always written."""
    nulls = f" nulls {'first' if key.nulls_first else 'last'}" if key.descending or not key.nulls_first else ""
    return f"{quoted(key.column)}{' desc' if key.descending else ''}{nulls}"


@_line.register
def _(plan: n.Granularity) -> str:
    return f"granularity {plan.granule}{_offset(plan)}"


@_line.register
def _(plan: n.Sample) -> str:
    return f"sample {plan.period}{_offset(plan)}"


def _offset(plan: n.HopWindow | n.TopK | n.Granularity | n.Sample) -> str:
    return f" offset {plan.offset}" if plan.offset else ""


@_line.register
def _(plan: n.Stamp) -> str:
    return f"stamp {quoted(plan.column)}"


@_line.register
def _(plan: n.Split) -> str:
    return f"split {plan.length}"


@_line.register
def _(plan: n.Coalesce) -> str:
    return "coalesce" if plan.longest == INFINITY else f"coalesce {plan.longest}"


@_line.register
def _(plan: n.Istream) -> str:
    return "istream"


@_line.register
def _(plan: n.Dstream) -> str:
    return "dstream"


@_line.register
def _(plan: n.ToPositiveNegative) -> str:
    return f"to positive negative {quoted(plan.sign)}"


@_line.register
def _(plan: n.FromPositiveNegative) -> str:
    return f"from positive negative {quoted(plan.sign)}"
