"""δ(S1 ∪ S2) ≐ δ(δS1 ∪ δS2): duplicates can go before the union where they are many."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Distinct, Plan, Union
from headwater.algebra.properties import properties
from headwater.optimizer.rule import Context, rule


@rule(Distinct, law="δ(S1 ∪ S2) ≐ δ(δS1 ∪ δS2)", source="Krämer 10.3.1 (checked)", choice=True)
def distinct_below_union(plan: Distinct, context: Context) -> Plan | None:
    union = plan.input
    if not isinstance(union, Union):
        return None
    sides = [side if properties(side).duplicate_free else Distinct(side) for side in union.inputs]
    changed = union.with_new_inputs(sides)
    return None if changed is union else evolve(plan, input=changed)
