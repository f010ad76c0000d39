"""S1 ▷_= S2 ≐ S1 −strict S2: one sweep over counts instead of a join and a sweep."""

from __future__ import annotations

from headwater.algebra.nodes import Join, JoinKind, Plan, Project, SetKind, SetOperation
from headwater.algebra.properties import nullable
from headwater.expressions.rewrite import column
from headwater.optimizer.rule import Context, rule


@rule(
    Join,
    law="S1 ▷_= S2 ≐ S1 −strict S2",
    condition="all columns of S1 are compared, and none of them can be NULL (NULL equals no NULL in a join)",
    source="Krämer 10.3.1 (checked)",
)
def anti_join_as_difference(plan: Join, context: Context) -> Plan | None:
    if plan.kind is not JoinKind.ANTI or plan.residual is not None:
        return None
    partner = dict(plan.keys)
    names = plan.left.schema.names
    if len(partner) != len(plan.keys) or set(partner) != set(names) or any(nullable(plan.left, n) for n in names):
        return None
    chosen = tuple((n, column(plan.right.schema.field(partner[n]))) for n in names)
    return SetOperation(plan.left, Project(plan.right, chosen), SetKind.STRICT_DIFFERENCE)
