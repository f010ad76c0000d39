"""σ(∅) ≐ ∅, S ∪ ∅ ≐ S, S × ∅ ≐ ∅, S − ∅ ≐ S: what is empty takes as much of the plan with it as it can."""

from __future__ import annotations

import pyarrow as pa

from headwater.algebra import nodes as n
from headwater.expressions.nodes import Cast, Literal
from headwater.expressions.rewrite import column
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import named_as

_UNARY = (
    *(n.Filter, n.Project, n.Distinct, n.Aggregate, n.TimeWindow, n.RowWindow, n.Granularity, n.Split, n.Coalesce),
    *(n.Istream, n.Dstream, n.TopK, n.HopWindow, n.SessionWindow, n.Sample, n.Stamp),
)


@rule(
    *_UNARY,
    n.Union,
    n.Join,
    n.SetOperation,
    law="op(∅) ≐ ∅, S ∪ ∅ ≐ S, S × ∅ ≐ ∅, S − ∅ ≐ S, ∅ − S ≐ ∅",
    source="Krämer 8.1",
)
def propagate_empty(plan: n.Plan, context: Context) -> n.Plan | None:
    empty = [_is_empty(child) for child in plan.inputs]
    if not any(empty):
        return None
    match plan:
        case n.Union():
            return plan.left if empty[1] else named_as(plan.left, plan.right)
        case n.Join():
            return _join(plan, empty)
        case n.SetOperation():
            return _set_operation(plan, empty)
    return n.Constant(plan.schema)


def _is_empty(plan: n.Plan) -> bool:
    return isinstance(plan, n.Constant) and not plan.rows


def _join(plan: n.Join, empty: list[bool]) -> n.Plan | None:
    match plan.kind:
        case n.JoinKind.ANTI if not empty[0]:
            return plan.left
        case n.JoinKind.LEFT | n.JoinKind.FULL if not empty[0]:
            return _filled(plan, plan.left)
        case n.JoinKind.RIGHT | n.JoinKind.FULL if not empty[1]:
            return _filled(plan, plan.right)
    return n.Constant(plan.schema)


def _filled(plan: n.Join, side: n.Plan) -> n.Plan:
    """One side, the columns of the other being NULL."""
    ours = set(side.schema.names)
    nulls = {f.name: Cast(Literal(None, pa.null()), f.type) for f in plan.schema}
    return n.Project(side, tuple((f.name, column(f) if f.name in ours else nulls[f.name]) for f in plan.schema))


def _set_operation(plan: n.SetOperation, empty: list[bool]) -> n.Plan | None:
    match plan.kind:
        case n.SetKind.MAX_UNION:
            return plan.left if empty[1] else named_as(plan.left, plan.right)
        case n.SetKind.EXCEPT_ALL | n.SetKind.STRICT_DIFFERENCE if not empty[0]:
            return plan.left
        case n.SetKind.EXCEPT if not empty[0]:
            return n.Distinct(plan.left)
    return n.Constant(plan.schema)
