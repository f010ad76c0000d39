"""π_A(S1 ⟕ S2) ≐ π_A(S1) where A reads S1 only and no row of S1 has more than one partner."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Join, JoinKind, Plan, Project
from headwater.algebra.properties import has_key
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import reads


@rule(
    Project,
    law="π_A(S1 ⟕ S2) ≐ π_A(S1)",
    condition="A reads S1 only; the join's columns of S2 hold a key of S2",
    source="ours: snapshot-reducible, so the relational law holds (Krämer lemma 10.2)",
)
def unused_outer_join(plan: Project, context: Context) -> Plan | None:
    join = plan.input
    if not isinstance(join, Join) or join.kind is not JoinKind.LEFT or not reads(plan):
        return None
    if not set(join.left.schema.names) >= reads(plan) or not has_key(join.right, [b for _, b in join.keys]):
        return None
    return evolve(plan, input=join.left)
