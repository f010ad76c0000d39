"""δ(S) ≐ S where S has no duplicates: δδ ≐ δ, and groups, sets and keys need no δ."""

from __future__ import annotations

from headwater.algebra.nodes import Distinct, Plan
from headwater.algebra.properties import properties
from headwater.optimizer.rule import Context, rule


@rule(Distinct, law="δ(S) ≐ S", condition="S is duplicate-free", source="Krämer 10.3.1 (checked)")
def drop_distinct(plan: Distinct, context: Context) -> Plan | None:
    return plan.input if properties(plan.input).duplicate_free else None
