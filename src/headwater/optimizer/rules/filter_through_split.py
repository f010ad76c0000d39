"""σ_p(ς(S)) ≐ ς(σ_p(S)) and σ_p(ζ(S)) ≐ ζ(σ_p(S)): both commute with every snapshot-reducible operator."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Coalesce, Filter, Plan, Split
from headwater.optimizer.rule import Context, rule


@rule(Filter, law="σ_p(ς(S)) ≐ ς(σ_p(S)), σ_p(ζ(S)) ≐ ζ(σ_p(S))", source="Krämer lemma 12.1")
def filter_through_split(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    return evolve(below, input=Filter(below.input, plan.predicate)) if isinstance(below, Split | Coalesce) else None
