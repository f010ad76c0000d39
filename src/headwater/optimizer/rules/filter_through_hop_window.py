"""σ_p(hop(S)) ≐ hop(σ_p(S)) for the conditions that do not read the window's ends."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Filter, HopWindow, Plan
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered, split_by


@rule(
    Filter,
    law="σ_p(hop_{w,a}(S)) ≐ hop_{w,a}(σ_p(S))",
    condition="p does not read window_start or window_end",
    source="ours: as for time windows, Krämer 10.8",
)
def filter_through_hop_window(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, HopWindow):
        return None
    inside, outside = split_by(plan.predicate, below.input.schema.names)
    return filtered(evolve(below, input=filtered(below.input, inside)), outside) if inside else None
