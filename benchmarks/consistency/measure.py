"""One level over the world: how much it says, how long its answers wait, what it keeps, and how much is right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from attrs import frozen

from benchmarks.consistency.world import SECOND, World
from headwater.language.consistency import Consistency
from headwater.language.emission import Form
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.time import INFINITY
from headwater.runtime.stepping import Stepped, StepRunner


@frozen
class Measured:
    """One level."""

    level: Consistency
    elements: int
    """Inserts and changes that it gave out."""
    waits: Int64Array
    """Of each answer that lasted: how far time had come past its start when it showed for good."""
    kept: int
    """Rows of state, on average over the ticks."""
    forgotten: int
    history: History
    form: Form | None = None
    """When final rows go out; None where answers may be repaired."""

    def __str__(self) -> str:
        return f"{self.level}, EMIT {self.form}" if self.form else str(self.level)

    def chattiness(self, truth: History) -> float:
        """Elements out for each of the final answer."""
        return self.elements / len(truth)

    @property
    def mean_wait(self) -> float:
        return float(self.waits.mean()) / SECOND if len(self.waits) else 0.0

    @property
    def late_wait(self) -> float:
        """What 99 % wait less than."""
        return float(np.quantile(self.waits, 0.99)) / SECOND if len(self.waits) else 0.0

    def right(self, truth: History) -> float:
        """How much of the answer's time it has right: what is in its history and in the truth, of what is in either."""
        wrong = sum(abs(n) * (e - s) for _, s, e, n in self.history.difference(truth) if e < INFINITY)
        either = sum(int((h.count * (h.end - h.start))[h.end < INFINITY].sum()) for h in (self.history, truth))
        return 1 - wrong / max(either, 1)


def measured(level: Consistency, world: World, form: Form | None = None) -> Measured:
    """Run the query of the world with this level, tick by tick."""
    stream = next(node for node in world.plan.walk() if not node.inputs)
    name = getattr(stream, "name", "")
    runner = StepRunner([Stepped("query", world.plan, consistency=level, opens=form is Form.START)])
    said: list[_Said] = []
    kept = 0
    for moment in world.ticks:
        step = runner.tick({name: moment.delta}, {name: moment.frontier})["query"]
        said.append(_Said(step.delta.consolidate(), moment.newest))
        kept += runner.buffered().rows
    schema = world.plan.schema
    groups = _groups(Delta.concat(schema, [s.delta for s in said]), np.array([len(s.delta) for s in said]))
    newest = np.array([s.newest for s in said])
    history = History.of(schema, [s.delta for s in said])
    forgotten = runner.counts("forgotten")
    return Measured(level, groups.elements(), groups.waits(newest), kept // len(said), forgotten, history, form)


class _Said(NamedTuple):
    delta: Delta
    newest: int


class _Groups(NamedTuple):
    """All output by (row, start, tick), sorted: how many came and went in it."""

    same: np.ndarray
    """The number of the (row, start)."""
    start: Int64Array
    tick: Int64Array
    comes: Int64Array
    goes: Int64Array

    def elements(self) -> int:
        """What goes and what comes of one row and start in one tick is one change of its end."""
        return int(np.maximum(self.comes, self.goes).sum())

    def waits(self, newest: Int64Array) -> Int64Array:
        """For every row and start that is there in the end: since when it is."""
        net = self.comes - self.goes
        there = np.cumsum(net)
        first = np.flatnonzero(np.diff(self.same, prepend=-1))
        there -= (there - net)[first][self.same]
        appears = np.flatnonzero((there > 0) & (there - net == 0))
        last = np.append(first[1:], len(self.same)) - 1
        since = np.full(len(first), -1)
        since[self.same[appears]] = appears  # the latest one wins
        stays = since[there[last] > 0]
        return np.maximum(newest[self.tick[stays]] - self.start[stays], 0)


def _groups(delta: Delta, sizes: Int64Array) -> _Groups:
    low, high = delta.key()
    tick = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((tick, delta.start, high if len(high) else low, low))
    low, start, tick, weight = low[order], delta.start[order], tick[order], delta.weight[order]
    other = np.ones(len(low), np.bool_)
    other[1:] = (low[1:] != low[:-1]) | (start[1:] != start[:-1])
    new = other.copy()
    new[1:] |= tick[1:] != tick[:-1]
    first = np.flatnonzero(new)
    comes, goes = (np.add.reduceat(np.maximum(sign * weight, 0), first) for sign in (1, -1))
    return _Groups((np.cumsum(other) - 1)[first], start[first], tick[first], comes, goes)
