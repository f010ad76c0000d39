"""S1 ⋉ S2 ≐ π_{S1}(S1 ⋈ S2) where no row of S1 has more than one partner: a join needs no counting."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Join, JoinKind, Plan, Project
from headwater.algebra.properties import has_key
from headwater.expressions.rewrite import column
from headwater.optimizer.rule import Context, rule


@rule(
    Join,
    law="S1 ⋉_θ S2 ≐ π_{S1}(S1 ⋈_θ S2)",
    condition="the join's columns of S2 hold a key of S2, and no column has the same name on both sides",
    source="Krämer 8.11 (δ(S2) is S2 where S2 has a key)",
)
def semi_join_of_unique(plan: Join, context: Context) -> Plan | None:
    if plan.kind is not JoinKind.SEMI or not has_key(plan.right, [b for _, b in plan.keys]):
        return None
    if {n.casefold() for n in plan.left.schema.names} & {n.casefold() for n in plan.right.schema.names}:
        return None
    return Project(evolve(plan, kind=JoinKind.INNER), tuple((f.name, column(f)) for f in plan.left.schema))
