"""δ(S1 ⋈ S2) ≐ δ(S1) ⋈ δ(S2), in either direction: before the join if that makes it small, after it if it does anyway."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Distinct, Join, JoinKind, Plan
from headwater.algebra.properties import properties
from headwater.optimizer.rule import Context, rule


@rule(
    Distinct,
    Join,
    law="δ(S1 × S2) ≐ δ(S1) × δ(S2)",
    condition="an inner join",
    source="Krämer 10.6",
    choice=True,
)
def distinct_over_join(plan: Distinct | Join, context: Context) -> Plan | None:
    match plan:
        case Distinct(input=Join(kind=JoinKind.INNER) as join):
            return evolve(join, left=_distinct(join.left), right=_distinct(join.right))
        case Join(kind=JoinKind.INNER, left=Distinct() as left, right=Distinct() as right):
            return Distinct(evolve(plan, left=left.input, right=right.input))
    return None


def _distinct(plan: Plan) -> Plan:
    return plan if properties(plan).duplicate_free else Distinct(plan)
