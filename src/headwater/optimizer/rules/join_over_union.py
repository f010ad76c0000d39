"""S1 ⋈ (S2 ∪ S3) ≐ (S1 ⋈ S2) ∪ (S1 ⋈ S3), in either direction, on both sides."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Join, JoinKind, Plan, Union
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import named_as


@rule(
    Join,
    Union,
    law="S1 ⋈ (S2 ∪ S3) ≐ (S1 ⋈ S2) ∪ (S1 ⋈ S3)",
    condition="an inner join; the sides of the union have the same column names",
    source="Krämer 10.3.1 (checked)",
    choice=True,
)
def join_over_union(plan: Join | Union, context: Context) -> Plan | None:
    match plan:
        case Join(kind=JoinKind.INNER, right=Union() as union):
            return union.with_inputs(*(evolve(plan, right=side) for side in _alike(union)))
        case Join(kind=JoinKind.INNER, left=Union() as union):
            return union.with_inputs(*(evolve(plan, left=side) for side in _alike(union)))
        case Union(inputs=inputs):
            joins = [side for side in inputs if isinstance(side, Join) and side.kind is JoinKind.INNER]
            return _common(joins) if len(joins) == len(inputs) else None
    return None


def _alike(union: Union) -> list[Plan]:
    """The sides, with the names of the first."""
    return [named_as(union.inputs[0], side) for side in union.inputs]


def _common(joins: list[Join]) -> Plan | None:
    one, *others = joins
    if any((one.keys, one.residual) != (other.keys, other.residual) for other in others):
        return None
    if all(one.left == other.left and one.right.schema == other.right.schema for other in others):
        return evolve(one, right=Union(tuple(join.right for join in joins)))
    if all(one.right == other.right and one.left.schema == other.left.schema for other in others):
        return evolve(one, left=Union(tuple(join.left for join in joins)))
    return None
