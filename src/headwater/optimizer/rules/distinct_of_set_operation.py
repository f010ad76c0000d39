"""δ(S1 ∩ S2) ≐ δS1 ∩ δS2, δ(S1 −strict S2) ≐ δS1 −strict S2, δ(S1 ∪max S2) ≐ δ(S1 ∪ S2): one operator for two.

δ(S1 − S2) ≐ δS1 − δS2 is no law: {a, a} − {a} has an a, {a} − {a} has none.
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Distinct, Plan, SetKind, SetOperation, Union
from headwater.optimizer.rule import Context, rule


@rule(
    Distinct,
    law="δ(S1 ∩ S2) ≐ δS1 ∩ δS2, δ(S1 −strict S2) ≐ δS1 −strict S2, δ(S1 ∪max S2) ≐ δ(S1 ∪ S2)",
    source="Krämer 10.3.1 (checked)",
)
def distinct_of_set_operation(plan: Distinct, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, SetOperation):
        return None
    match below.kind:
        case SetKind.INTERSECT_ALL:
            return evolve(below, kind=SetKind.INTERSECT)
        case SetKind.STRICT_DIFFERENCE:
            return evolve(below, kind=SetKind.EXCEPT)
        case SetKind.MAX_UNION:
            return Distinct(Union((below.left, below.right)))
    return None
