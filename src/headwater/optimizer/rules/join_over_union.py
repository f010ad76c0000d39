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
            first, second = union.left, named_as(union.left, union.right)
            return Union(evolve(plan, right=first), evolve(plan, right=second))
        case Join(kind=JoinKind.INNER, left=Union() as union):
            first, second = union.left, named_as(union.left, union.right)
            return Union(evolve(plan, left=first), evolve(plan, left=second))
        case Union(left=Join(kind=JoinKind.INNER) as one, right=Join(kind=JoinKind.INNER) as two):
            return _common(one, two)
    return None


def _common(one: Join, two: Join) -> Plan | None:
    if (one.keys, one.residual) != (two.keys, two.residual):
        return None
    if one.left == two.left and one.right.schema == two.right.schema:
        return evolve(one, right=Union(one.right, two.right))
    if one.right == two.right and one.left.schema == two.left.schema:
        return evolve(one, left=Union(one.left, two.left))
    return None
