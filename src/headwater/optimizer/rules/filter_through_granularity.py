"""σ_p(Γ_g(S)) ≐ Γ_g(σ_p(S)): at each instant Γ shows what was valid at the last granule."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Filter, Granularity, Plan
from headwater.optimizer.rule import Context, rule


@rule(Filter, law="σ_p(Γ_g(S)) ≐ Γ_g(σ_p(S))", source="ours: Γ takes rows as they are, Krämer 20.3")
def filter_through_granularity(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    return evolve(below, input=Filter(below.input, plan.predicate)) if isinstance(below, Granularity) else None
