"""γ_{g,f}(S) ≐ γ_{g,f}(π_A(S)) where A holds what g and f read."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Aggregate, Plan, Source
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import narrowed


@rule(
    Aggregate,
    law="γ_{g,f}(S) ≐ γ_{g,f}(π_A(S))",
    condition="A holds what g and f read; S is computed, so that there is something to save",
    source="Krämer 10.3.1, after SJS01",
)
def narrow_aggregate(plan: Aggregate, context: Context) -> Plan | None:
    if isinstance(plan.input, Source):
        return None  # it reads just the columns that it needs
    used = {*plan.keys, *(name for c in plan.calls for name in (c.argument, c.filter) if name is not None)}
    names = plan.input.schema.names
    narrow = narrowed(plan.input, used or {names[0]})  # COUNT(*) alone needs rows, not columns
    return None if narrow is plan.input else evolve(plan, input=narrow)
