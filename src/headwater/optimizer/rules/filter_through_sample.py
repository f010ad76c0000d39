"""σ_p(sample(S)) ≐ sample(σ_p(S)), and the same for stamps: both are about the instant, not about the rows."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Filter, Plan, Sample, Stamp
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered, split_by


@rule(
    Filter,
    law="σ_p(sample(S)) ≐ sample(σ_p(S)), σ_p(stamp(S)) ≐ stamp(σ_p(S))",
    condition="p does not read the stamp",
    source="ours: both are functions of the snapshot and its instant",
)
def filter_through_sample(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, Sample | Stamp):
        return None
    inside, outside = split_by(plan.predicate, below.input.schema.names)
    return filtered(evolve(below, input=filtered(below.input, inside)), outside) if inside else None
