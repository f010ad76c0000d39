"""σ_p(S1 ∪ S2) ≐ σ_p(S1) ∪ σ_p(S2)."""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Plan, Union
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import positional


@rule(Filter, law="σ_p(S1 ∪ S2) ≐ σ_p(S1) ∪ σ_p(S2)", source="Krämer 10.5")
def filter_through_union(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, Union):
        return None
    other = positional(plan.predicate, below.left.schema, below.right.schema)
    return Union(Filter(below.left, plan.predicate), Filter(below.right, other))
