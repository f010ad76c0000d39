"""EXCEPT, INTERSECT and the strict difference ask of their right side (the sets also of their left) only what is there."""

from __future__ import annotations

from headwater.algebra.nodes import Distinct, Plan, SetKind, SetOperation
from headwater.optimizer.rule import Context, rule

_LEFT = (SetKind.EXCEPT, SetKind.INTERSECT)
_RIGHT = (SetKind.EXCEPT, SetKind.INTERSECT, SetKind.STRICT_DIFFERENCE)


@rule(
    SetOperation,
    law="S1 −strict δS2 ≐ S1 −strict S2, δS1 EXCEPT δS2 ≐ S1 EXCEPT S2, δS1 INTERSECT δS2 ≐ S1 INTERSECT S2",
    source="Krämer 8.14, 10.3.1 (checked)",
)
def distinct_in_set_operation(plan: SetOperation, context: Context) -> Plan | None:
    left = plan.left.input if plan.kind in _LEFT and isinstance(plan.left, Distinct) else plan.left
    right = plan.right.input if plan.kind in _RIGHT and isinstance(plan.right, Distinct) else plan.right
    changed = plan.with_new_inputs((left, right))
    return None if changed is plan else changed
