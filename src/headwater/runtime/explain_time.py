"""EXPLAIN HEARTBEAT: what a query waits for, from the promises of its streams to the labels of its operators."""

from __future__ import annotations

from headwater.algebra.nodes import Plan
from headwater.clock.clock import Clock
from headwater.clock.explain import explain_heartbeat
from headwater.clock.rules import rules_of
from headwater.language.introspection import Explain
from headwater.optimizer.cost import Statistics, estimate
from headwater.optimizer.physical.memory_aware import labeled


def heartbeat_text(
    request: Explain,
    plan: Plan,
    *,
    memory_aware: bool = False,
    statistics: Statistics | None = None,
    clock: Clock | None = None,
) -> str:
    """``plan``: as it runs. ``clock``: of an engine that runs; without one, only what is declared."""
    names = plan.streams
    running = clock if clock is not None and all(name in clock.progress for name in names) else None
    rules = running.rules if running is not None else rules_of(request.streams)  # nobody reads some of them yet
    links = None if memory_aware else {}
    estimates = estimate(plan, statistics)
    tree = labeled(plan, lambda node: estimates[node].rate)
    return explain_heartbeat(rules, names, running, plan=tree, links=links)
