"""σ_p(session_g(S)) ≐ session_g(σ_p(S)) where p reads only what the sessions are partitioned by.

Any other filter below it would take rows out of sessions and so change where they end.
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Filter, Plan, SessionWindow
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered, split_by


@rule(
    Filter,
    law="σ_p(session_g(S)) ≐ session_g(σ_p(S))",
    condition="p reads columns of PARTITION BY only",
    source="ours: as for partitioned windows, Krämer 10.3.2",
)
def filter_through_session_window(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, SessionWindow):
        return None
    inside, outside = split_by(plan.predicate, below.partition)
    return filtered(evolve(below, input=filtered(below.input, inside)), outside) if inside else None
