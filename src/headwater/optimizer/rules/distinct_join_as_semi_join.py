"""δ(π_A(S1 ⋈ S2)) ≐ δ(π_A(S1 ⋉ S2)) where A reads S1 only: one partner is enough."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Distinct, Join, JoinKind, Plan, Project
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import reads


@rule(
    Distinct,
    law="δ(π_A(S1 ⋈ S2)) ≐ δ(π_A(S1 ⋉ S2))",
    condition="A reads S1 only",
    source="ours: snapshot-reducible, so the relational law holds (Krämer lemma 10.2)",
    choice=True,
)
def distinct_join_as_semi_join(plan: Distinct, context: Context) -> Plan | None:
    project = plan.input
    if not isinstance(project, Project) or not isinstance(project.input, Join) or not reads(project):
        return None
    join = project.input
    if join.kind is not JoinKind.INNER or not set(join.left.schema.names) >= reads(project):
        return None
    return evolve(plan, input=evolve(project, input=evolve(join, kind=JoinKind.SEMI)))
