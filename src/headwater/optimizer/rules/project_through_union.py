"""μ_f(S1 ∪ S2) ≐ μ_f(S1) ∪ μ_f(S2): below the union it meets other projections, or lets columns go earlier."""

from __future__ import annotations

from headwater.algebra.nodes import Plan, Project, Union
from headwater.model.schema import Schema
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import positional, reads


@rule(
    Project,
    law="μ_f(S1 ∪ S2) ≐ μ_f(S1) ∪ μ_f(S2)",
    condition="f drops columns, or meets another projection on one of the sides",
    source="Krämer 10.3.1 (checked)",
)
def project_through_union(plan: Project, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, Union):
        return None
    narrows = len(reads(plan)) < len(below.schema.names)
    if not narrows and not any(isinstance(side, Project) for side in below.inputs):
        return None
    return below.with_inputs(*(_projected(plan, below.schema, side) for side in below.inputs))


def _projected(plan: Project, ours: Schema, side: Plan) -> Plan:
    return Project(side, tuple((name, positional(s, ours, side.schema)) for name, s in plan.expressions))
