"""μ_f(ς(S)) ≐ ς(μ_f(S)) and the same for ζ: both commute with every snapshot-reducible operator."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Coalesce, Plan, Project, Split
from headwater.optimizer.rule import Context, rule


@rule(Project, law="μ_f(ς(S)) ≐ ς(μ_f(S)), μ_f(ζ(S)) ≐ ζ(μ_f(S))", source="Krämer lemma 12.1")
def project_through_split(plan: Project, context: Context) -> Plan | None:
    below = plan.input
    return evolve(below, input=evolve(plan, input=below.input)) if isinstance(below, Split | Coalesce) else None
