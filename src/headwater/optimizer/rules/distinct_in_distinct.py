"""Below a δ another δ is not needed where what lies between only copies rows.

δ(S1 ∪ δS2) ≐ δ(S1 ∪ S2), δμ_fδ ≐ δμ_f, δ(ω_w(δS)) ≐ δ(ω_w S).
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Distinct, Filter, Plan, Project, TimeWindow, Union
from headwater.optimizer.rule import Context, rule


@rule(
    Distinct,
    law="δ(S1 ∪ δS2) ≐ δ(S1 ∪ S2), δμ_fδ ≐ δμ_f, δ(ω_w(δS)) ≐ δ(ω_w S)",
    condition="only σ, μ, ∪ and time windows lie between",
    source="Krämer 10.3.1 (checked)",
)
def distinct_in_distinct(plan: Distinct, context: Context) -> Plan | None:
    below = _without(plan.input)
    return None if below is plan.input else evolve(plan, input=below)


def _without(plan: Plan) -> Plan:
    match plan:
        case Distinct():
            return _without(plan.input)
        case Filter() | Project() | TimeWindow() | Union():
            return plan.with_new_inputs(_without(child) for child in plan.inputs)
    return plan
