"""σ_p(γ_{g,f}(S)) ≐ γ_{g,f}(σ_p(S)) where p reads only grouping attributes: whole groups go or stay."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Aggregate, Filter, Plan
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered, split_by


@rule(
    Filter,
    law="σ_p(γ_{g,f}(S)) ≐ γ_{g,f}(σ_p(S))",
    condition="p reads grouping attributes only",
    source="Krämer 10.3.1 (checked)",
)
def filter_through_aggregate(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, Aggregate):
        return None
    inside, outside = split_by(plan.predicate, below.keys)
    return filtered(evolve(below, input=filtered(below.input, inside)), outside) if inside else None
