"""σ_p(S1 − S2) ≐ σ_p(S1) − σ_p(S2), and the same for ∩, ∪max and the strict difference.

All of them decide a row's multiplicity from its multiplicities in the inputs, and a filter keeps all of a row or nothing.
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Filter, Plan, SetOperation
from headwater.expressions.rewrite import can_fail
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import positional


@rule(
    Filter,
    law="σ_p(S1 − S2) ≐ σ_p(S1) − σ_p(S2)",
    condition="p cannot fail for rows that the other input drops",
    source="Krämer 10.3.1 (checked)",
)
def filter_through_set_operation(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, SetOperation) or can_fail(plan.predicate):
        return None
    other = positional(plan.predicate, below.left.schema, below.right.schema)
    return evolve(below, left=Filter(below.left, plan.predicate), right=Filter(below.right, other))
