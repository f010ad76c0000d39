"""σ_p(Istream(S)) ≐ Istream(σ_p(S)), and the same for Dstream: both compare a row with itself an instant before."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Dstream, Filter, Istream, Plan
from headwater.optimizer.rule import Context, rule


@rule(
    Filter,
    law="σ_p(Istream(S)) ≐ Istream(σ_p(S)), σ_p(Dstream(S)) ≐ Dstream(σ_p(S))",
    source="ours: both are differences, Krämer 17.2 and 10.3.1",
)
def filter_through_changes(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    return evolve(below, input=Filter(below.input, plan.predicate)) if isinstance(below, Istream | Dstream) else None
