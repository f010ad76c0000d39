"""(S1 ∪ S2) ∪ S3 ≐ ∪(S1, S2, S3): one operator for all."""

from __future__ import annotations

from headwater.algebra.nodes import Plan, Union
from headwater.optimizer.rule import Context, rule


@rule(Union, law="(S1 ∪ S2) ∪ S3 ≐ ∪(S1, S2, S3)", source="Krämer 8.3: multiplicities add")
def merge_unions(plan: Union, context: Context) -> Plan | None:
    if not any(isinstance(side, Union) for side in plan.inputs):
        return None
    sides = ((side.inputs if isinstance(side, Union) else (side,)) for side in plan.inputs)
    return Union(tuple(side for inner in sides for side in inner))
