"""σ_p(δ(S)) ≐ δ(σ_p(S))."""

from __future__ import annotations

from headwater.algebra.nodes import Distinct, Filter, Plan
from headwater.optimizer.rule import Context, rule


@rule(Filter, law="σ_p(δ(S)) ≐ δ(σ_p(S))", source="Krämer 10.3.1 (checked)")
def filter_through_distinct(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    return Distinct(Filter(below.input, plan.predicate)) if isinstance(below, Distinct) else None
