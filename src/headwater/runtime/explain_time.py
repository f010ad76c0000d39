"""EXPLAIN HEARTBEAT: what a query waits for, from the promises of its streams to the labels of its operators."""

from __future__ import annotations

from itertools import count

from headwater.algebra.nodes import Plan, Source
from headwater.clock.clock import Clock
from headwater.clock.explain import explain_heartbeat
from headwater.clock.labels import Labeled
from headwater.clock.rules import rules_of
from headwater.language.introspection import Explain
from headwater.optimizer.cost import Estimates, Statistics, estimate
from headwater.optimizer.labels import is_timed, label


def heartbeat_text(
    request: Explain, plan: Plan, *, statistics: Statistics | None = None, clock: Clock | None = None
) -> str:
    """``plan``: as it runs. ``clock``: of an engine that runs; without one, only what is declared."""
    rules = clock.rules if clock is not None and clock.progress else rules_of(request.streams)
    names = list(dict.fromkeys(node.name for node in plan.walk() if isinstance(node, Source)))
    running = clock if clock is not None and all(name in clock.progress for name in names) else None
    return explain_heartbeat(rules, names, running, plan=labeled(plan, statistics))


def labeled(plan: Plan, statistics: Statistics | None = None) -> Labeled | None:
    """The plan as the labels see it: operators, and how many rows each is expected to put out for one that it takes."""
    return _Walk(plan, estimate(plan, statistics)).operator(plan) if not isinstance(plan, Source) else None


class _Walk:
    def __init__(self, plan: Plan, estimates: Estimates) -> None:
        self._estimates, self._timed, self._numbers = estimates, is_timed(plan), count(1)

    def operator(self, plan: Plan) -> Labeled:
        if isinstance(plan, Source):
            return Labeled(plan.name)
        inputs = tuple(self.operator(child) for child in plan.inputs)
        taken = sum(self._estimates[child].rate for child in plan.inputs)
        out = self._estimates[plan].rate / taken if taken else 1.0
        return Labeled(f"{next(self._numbers)} {label(plan, timed=self._timed)}", inputs, out)
