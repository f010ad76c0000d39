"""γ_{g,f}(δS) ≐ γ_{g,f}(S) where f does not count duplicates: MIN, MAX and DISTINCT aggregates."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Aggregate, Distinct, Plan
from headwater.optimizer.rule import Context, rule


@rule(
    Aggregate,
    law="γ_{g,f}(δS) ≐ γ_{g,f}(S)",
    condition="f is made of MIN, MAX and aggregates with DISTINCT",
    source="ours: after SJS01, duplicates are not relevant",
)
def distinct_in_aggregate(plan: Aggregate, context: Context) -> Plan | None:
    if not isinstance(plan.input, Distinct):
        return None
    deaf = all(c.is_deaf or c.distinct for c in plan.calls)
    return evolve(plan, input=plan.input.input) if deaf else None
