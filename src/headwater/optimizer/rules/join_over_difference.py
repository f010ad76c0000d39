"""S1 ⋈ (S2 − S3) ≐ (S1 ⋈ S2) − (S1 ⋈ S3), from right to left: one join instead of two, of fewer rows."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Join, JoinKind, Plan, SetKind, SetOperation
from headwater.optimizer.rule import Context, rule


@rule(
    SetOperation,
    law="(S1 ⋈ S2) − (S1 ⋈ S3) ≐ S1 ⋈ (S2 − S3)",
    condition="inner joins on the same columns",
    source="Krämer 10.3.1 (checked)",
)
def join_over_difference(plan: SetOperation, context: Context) -> Plan | None:
    one, two = plan.left, plan.right
    if plan.kind is not SetKind.EXCEPT_ALL or not isinstance(one, Join) or not isinstance(two, Join):
        return None
    if one.kind is not JoinKind.INNER or (one.kind, one.keys, one.residual) != (two.kind, two.keys, two.residual):
        return None
    if one.left == two.left and one.right.schema == two.right.schema:
        return evolve(one, right=evolve(plan, left=one.right, right=two.right))
    if one.right == two.right and one.left.schema == two.left.schema:
        return evolve(one, left=evolve(plan, left=one.left, right=two.left))
    return None
