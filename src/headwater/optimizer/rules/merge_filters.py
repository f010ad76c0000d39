"""σ_p(σ_q(S)) ≐ σ_{q∧p}(S): two filters are one."""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Plan
from headwater.expressions.rewrite import conjunction, conjuncts
from headwater.optimizer.rule import Context, rule


@rule(Filter, law="σ_p(σ_q(S)) ≐ σ_{q∧p}(S)", source="Krämer 10.3.1")
def merge_filters(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, Filter):
        return None
    return Filter(below.input, conjunction([*conjuncts(below.predicate), *conjuncts(plan.predicate)]))
