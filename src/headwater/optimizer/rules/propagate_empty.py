"""σ(∅) ≐ ∅, S ∪ ∅ ≐ S, S × ∅ ≐ ∅, S − ∅ ≐ S: what is empty takes as much of the plan with it as it can."""

from __future__ import annotations

import pyarrow as pa

from headwater.algebra import nodes as n
from headwater.expressions.nodes import Cast, Literal
from headwater.expressions.rewrite import column
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import named_as


@rule(
    *(kind for kind in n.NODES if kind.arity != 0),
    law="op(∅) ≐ ∅, S ∪ ∅ ≐ S, S × ∅ ≐ ∅, S − ∅ ≐ S, ∅ − S ≐ ∅",
    source="Krämer 8.1",
)
def propagate_empty(plan: n.Plan, context: Context) -> n.Plan | None:
    empty = [_is_empty(child) for child in plan.inputs]
    if not any(empty):
        return None
    if plan.is_empty(empty):
        return n.Constant(plan.schema)
    rest = [child for child, is_empty in zip(plan.inputs, empty, strict=True) if not is_empty]
    match plan:
        case n.Union():
            return n.Union.of([named_as(plan, rest[0]), *rest[1:]])
        case n.SetOperation(kind=n.SetKind.EXCEPT):
            return n.Distinct(plan.left)
        case n.SetOperation() | n.Join(kind=n.JoinKind.ANTI):
            return named_as(plan, rest[0])
        case n.Join():
            return _filled(plan, rest[0])
    return None


def _is_empty(plan: n.Plan) -> bool:
    return isinstance(plan, n.Constant) and not plan.rows


def _filled(plan: n.Join, side: n.Plan) -> n.Plan:
    """One side, the columns of the other being NULL."""
    ours = set(side.schema.names)
    nulls = {f.name: Cast(Literal(None, pa.null()), f.type) for f in plan.schema}
    return n.Project(side, tuple((f.name, column(f) if f.name in ours else nulls[f.name]) for f in plan.schema))
