"""σ_p(top_{g,k}(S)) ≐ top_{g,k}(σ_p(S)) where p reads only what the rows are numbered in."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Filter, Plan, TopK
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered, split_by


@rule(
    Filter,
    law="σ_p(top_{g,k}(S)) ≐ top_{g,k}(σ_p(S))",
    condition="p reads columns of PARTITION BY only",
    source="ours: as for groups, Krämer 10.3.1",
)
def filter_through_top_k(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, TopK):
        return None
    inside, outside = split_by(plan.predicate, below.partition)
    return filtered(evolve(below, input=filtered(below.input, inside)), outside) if inside else None
