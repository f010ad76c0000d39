"""S1 ⋉ δS2 ≐ S1 ⋉ S2, and the same for ▷: whether there is a partner does not depend on how many there are.

In either direction: without δ there is one operator less, with it the join meets fewer rows.
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Distinct, Join, JoinKind, Plan
from headwater.algebra.properties import properties
from headwater.optimizer.rule import Context, rule


@rule(
    Join,
    law="S1 ⋉ δS2 ≐ S1 ⋉ S2, S1 ▷ δS2 ≐ S1 ▷ S2",
    source="Krämer 8.11, 8.16 (with the left multiplicity)",
    choice=True,
)
def distinct_in_semi_join(plan: Join, context: Context) -> Plan | None:
    if plan.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        return None
    if isinstance(plan.right, Distinct):
        return evolve(plan, right=plan.right.input)
    return None if properties(plan.right).duplicate_free else evolve(plan, right=Distinct(plan.right))
