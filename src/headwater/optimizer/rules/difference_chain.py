"""(S1 − S2) − S3 ≐ S1 − (S2 ∪ S3): one difference for two."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Plan, SetKind, SetOperation, Union
from headwater.optimizer.rule import Context, rule

_KINDS = (SetKind.EXCEPT_ALL, SetKind.STRICT_DIFFERENCE, SetKind.EXCEPT)


@rule(
    SetOperation,
    law="(S1 − S2) − S3 ≐ S1 − (S2 ∪ S3)",
    condition="both differences are of the same kind",
    source="Krämer 10.3.1 (checked)",
)
def difference_chain(plan: SetOperation, context: Context) -> Plan | None:
    below = plan.left
    if plan.kind not in _KINDS or not isinstance(below, SetOperation) or below.kind is not plan.kind:
        return None
    return evolve(plan, left=below.left, right=Union((below.right, plan.right)))
