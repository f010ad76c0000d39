"""ω_1(S) ≐ S: the now-window is the identity."""

from __future__ import annotations

from headwater.algebra.nodes import Plan, TimeWindow
from headwater.optimizer.rule import Context, rule


@rule(TimeWindow, law="ω_1(S) ≐ S", source="Krämer 10.7")
def now_window(plan: TimeWindow, context: Context) -> Plan | None:
    return plan.input if plan.size == plan.slide == 1 else None
