"""π_A(γ_{g,f}(S)) ≐ π_A(γ_{g,f'}(S)): aggregates that nobody reads are not computed."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Aggregate, Plan, Project
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import reads


@rule(
    Project,
    law="π_A(γ_{g,f}(S)) ≐ π_A(γ_{g,f'}(S))",
    condition="f' holds the aggregates that A reads, and at least one if there are no groups",
    source="ours",
)
def unused_aggregates(plan: Project, context: Context) -> Plan | None:
    aggregate = plan.input
    if not isinstance(aggregate, Aggregate):
        return None
    wanted = reads(plan)
    calls = tuple(c for c in aggregate.calls if c.output in wanted)
    if not calls and not aggregate.keys:
        calls = aggregate.calls[:1]
    if calls == aggregate.calls:
        return None
    return evolve(plan, input=evolve(aggregate, calls=calls))
