"""π_A(top(S)) where A does not read the row's number: it is not computed, and without a limit nothing is."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Plan, Project, TopK
from headwater.model.time import INFINITY
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import reads


@rule(
    Project,
    TopK,
    law="π_A(top_{k,n}(S)) ≐ π_A(top_k(S)), top_∞(S) ≐ S",
    condition="A does not read the rank n; the second where there is neither rank nor offset",
    source="ours",
)
def unused_rank(plan: Project | TopK, context: Context) -> Plan | None:
    if isinstance(plan, TopK):
        return plan.input if plan.rank is None and plan.limit == INFINITY and not plan.offset else None
    top = plan.input
    if not isinstance(top, TopK) or top.rank is None or top.rank in reads(plan):
        return None
    return evolve(plan, input=evolve(top, rank=None))
