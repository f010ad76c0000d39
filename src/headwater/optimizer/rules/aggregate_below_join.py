"""γ_{g1∪g2,f}(S1 ⋈ S2) ≐ π(γ_{g1,f}(S1) ⋈ S2): grouping before a join that only adds columns to the groups.

Every row of S1 meets at most one row of S2, the same one for all rows of a group (Example 10.1).
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Aggregate, Join, JoinKind, Plan, Project
from headwater.algebra.properties import has_key
from headwater.expressions.rewrite import column
from headwater.optimizer.rule import Context, rule


@rule(
    Aggregate,
    law="γ_{g1∪g2,f}(S1 ⋈_{a=b} S2) ≐ π(γ_{g1,f}(S1) ⋈_{a=b} S2)",
    condition="a ⊆ g1 ⊆ S1, f reads S1 only, g2 ⊆ S2, b holds a key of S2, and there is no other condition",
    source="Krämer Example 10.1",
    choice=True,
)
def aggregate_below_join(plan: Aggregate, context: Context) -> Plan | None:
    join = plan.input
    if not isinstance(join, Join) or join.kind is not JoinKind.INNER or join.residual is not None or not join.keys:
        return None
    ours = set(join.left.schema.names)
    used = {name for c in plan.calls for name in (c.argument, c.filter) if name is not None}
    keys = tuple(k for k in plan.keys if k in ours)
    if not ours >= used or not {a for a, _ in join.keys} <= set(keys):
        return None
    if not has_key(join.right, [b for _, b in join.keys]):
        return None
    groups = evolve(plan, input=join.left, keys=keys)
    if {n.casefold() for n in groups.schema.names} & {n.casefold() for n in join.right.schema.names}:
        return None
    joined = evolve(join, left=groups)
    return Project(joined, tuple((f.name, column(f)) for f in plan.schema))
