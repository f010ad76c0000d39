"""σ_p(ω_{w,a}(S)) ≐ ω_{w,a}(σ_p(S)): a filter does not touch validity, so it goes below a time window."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Filter, Plan, TimeWindow
from headwater.optimizer.rule import Context, rule


@rule(Filter, law="σ_p(ω_{w,a}(S)) ≐ ω_{w,a}(σ_p(S))", source="Krämer 10.8, with slide 17.1")
def filter_through_time_window(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    return evolve(below, input=Filter(below.input, plan.predicate)) if isinstance(below, TimeWindow) else None
