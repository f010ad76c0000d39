"""σ_p(μ_f(S)) ≐ μ_f(σ_{p∘f}(S)): rows are dropped before they are computed."""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Plan, Project
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import through


@rule(
    Filter,
    law="σ_p(μ_f(S)) ≐ μ_f(σ_{p∘f}(S))",
    condition="p does not read the result of a function of the user's, which would run twice",
    source="Krämer 10.3.1",
)
def filter_through_project(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, Project):
        return None
    if any(s.functions for name, s in below.expressions if name in plan.predicate.columns):
        return None
    return Project(Filter(below.input, through(plan.predicate, below)), below.expressions)
