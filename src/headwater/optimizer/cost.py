"""The cost model: what running a plan takes, node by node and as a whole (Krämer chapter 22).

Rates and lifetimes go through a plan by one formula per operator (``estimation/characteristics.py``), which gives each
node's state and time (``estimation/resources.py``). A plan's cost is the sum over its different nodes: equal parts run once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headwater.algebra import nodes as n
from headwater.optimizer.estimation.characteristics import Characteristics
from headwater.optimizer.estimation.estimates import Column, Estimate, State
from headwater.optimizer.estimation.nodes import ESTIMATIONS
from headwater.optimizer.estimation.statistics import ColumnStatistics, Statistics, StreamStatistics

__all__ = [
    "Characteristics",
    "Column",
    "ColumnStatistics",
    "Cost",
    "Estimate",
    "Estimates",
    "Estimator",
    "State",
    "Statistics",
    "StreamStatistics",
    "estimate",
]

_MEGABYTE = float(2**20)
_MEMORY = 0.1
"""How much memory weighs against time: a thousand times as much of it is worth twice the time (1000^0.1)."""
_FOR_EVER = 1_000.0
"""State that grows for ever makes a plan this much dearer: in the end it does not run at all."""


class Cost(NamedTuple):
    """What a whole plan takes. Only costs of plans over the same sources can be compared."""

    time: float
    """Nanoseconds of one core for one instant of application time."""
    state: State
    nodes: int

    @property
    def score(self) -> float:
        """Time first, memory with a small weight. Products and powers, so that the unit of time does not matter."""
        weight = (1 + self.state.bytes / _MEGABYTE) ** _MEMORY
        return self.time * weight * (_FOR_EVER if self.state.grows else 1.0)


class Estimates:
    """The estimates of all nodes of a plan, by node.

    >>> from headwater.model.schema import Schema
    >>> window = n.TimeWindow(n.Source("s", Schema.of(x="BIGINT"), chronons=True), 60)
    >>> estimate(window)[window].alive
    60.0
    """

    def __init__(self, plan: n.Plan, by_node: dict[n.Plan, Estimate]) -> None:
        self.plan, self._by_node = plan, by_node

    def __getitem__(self, plan: n.Plan) -> Estimate:
        return self._by_node[plan]

    def __iter__(self) -> Iterator[n.Plan]:
        """The different nodes, inputs first."""
        return iter(self._by_node)

    @property
    def root(self) -> Estimate:
        return self._by_node[self.plan]

    @property
    def cost(self) -> Cost:
        time = rows = size = 0.0
        grows = False
        for node in self._by_node.values():
            time += node.cost
            rows, size, grows = rows + node.state.rows, size + node.state.bytes, grows or node.state.grows
        return Cost(time, State(rows, size, grows), len(self._by_node))


class Estimator:
    """Estimates plans over the same statistics; what plans have in common is estimated once."""

    def __init__(self, statistics: Statistics | None = None) -> None:
        self._statistics = statistics if statistics is not None else Statistics()
        self._known: dict[n.Plan, Estimate] = {}

    def estimate(self, plan: n.Plan) -> Estimates:
        found: dict[n.Plan, Estimate] = {}
        self._visit(plan, found)
        return Estimates(plan, found)

    def cost(self, plan: n.Plan) -> float:
        """The plan's score: what choices compare."""
        return self.estimate(plan).cost.score

    def _visit(self, plan: n.Plan, found: dict[n.Plan, Estimate]) -> Estimate:
        seen = found.get(plan)
        if seen is not None:
            return seen
        inputs = [self._visit(child, found) for child in plan.inputs]
        known = self._known.get(plan)
        if known is None:
            known = self._known[plan] = self._fresh(plan, inputs)
        found[plan] = known
        return known

    def _fresh(self, plan: n.Plan, inputs: list[Estimate]) -> Estimate:
        estimation = ESTIMATIONS[type(plan)]
        return estimation(plan, *inputs) if inputs else estimation(plan, self._statistics)


def estimate(plan: n.Plan, statistics: Statistics | None = None) -> Estimates:
    """What is to be expected of every node of the plan; without statistics, by the assumptions of ``statistics.py``."""
    return Estimator(statistics).estimate(plan)
