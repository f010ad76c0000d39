"""S − S ≐ ∅, S ∩ S ≐ S, S ∪max S ≐ S."""

from __future__ import annotations

from headwater.algebra.nodes import Constant, Distinct, Plan, SetKind, SetOperation
from headwater.optimizer.rule import Context, rule


@rule(SetOperation, law="S − S ≐ ∅, S ∩ S ≐ S, S ∪max S ≐ S", source="Krämer 8.6, 8.12, 8.13")
def repeated_input(plan: SetOperation, context: Context) -> Plan | None:
    if plan.left != plan.right:
        return None
    match plan.kind:
        case SetKind.INTERSECT_ALL | SetKind.MAX_UNION:
            return plan.left
        case SetKind.INTERSECT:
            return Distinct(plan.left)
    return Constant(plan.schema)
