"""Bounds that nobody declared: learned from how much older than the newest row the rows of a stream are when they come.

For each delay of a grid the estimator learns how old a row may still be that comes so much later than the newest one
did. What it learns is what is seen on arrival, network included: no latency is added (Srivastava & Widom 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import asdict, evolve, frozen

from headwater.clock.bounds import Bound, Bounds, reduced
from headwater.clock.learners import ForgettingMaximum, ForgettingQuantile, Window
from headwater.language.time_clauses import HeartbeatEstimated
from headwater.model.time import BEGINNING, MICROSECONDS

_SECOND = MICROSECONDS["SECOND"]
_SHORTEST = _SECOND // 5
"""The first delay above 0."""
_STEPS = (2.5, 2.0, 2.0)
""".2 .5 1, 2 5 10, …"""
INITIAL = _SECOND
"""Where time is measured in microseconds, INITIAL 1 SECOND."""
BUDGET_ROWS = 2_000
"""How many rows LATE BUDGET remembers at least; more where the share is so small that it needs them."""

Learner = ForgettingMaximum | ForgettingQuantile


@frozen
class Estimator:
    """What has been learned of one stream. Immutable: ``learn`` gives the next one."""

    clause: HeartbeatEstimated
    delays: tuple[int, ...]
    """Wall clock, from 0 up to the horizon."""
    learners: tuple[Learner, ...]
    """One a delay."""
    rows: int = 0
    """All that have come, late ones too."""
    caught_up: int = BEGINNING
    """The last wall-clock instant at which rows were still waiting to be read."""

    @classmethod
    def of(cls, clause: HeartbeatEstimated, *, has_unit: bool) -> Estimator:
        """Nothing learned yet. ``has_unit``: application time is in microseconds, like the wall clock.

        >>> Estimator.of(HeartbeatEstimated(warmup_rows=0, margin=0.0), has_unit=True).bounds()[:2]
        (Bound(after=0, lag=1000000), Bound(after=200000, lag=800000))
        """
        delays = tuple(_grid(clause.horizon))
        learners = tuple(new_learner(clause, _initial(clause, delay, has_unit), has_unit=has_unit) for delay in delays)
        return cls(clause, delays, learners)

    def learn(self, oldest: int, rows: int, now: int, newest_at: Callable[[int], int], backlog: bool) -> Estimator:
        """With the rows of one more tick, late ones included: a late row is what teaches most.

        ``newest_at(wall)`` is the largest time seen by that instant, these rows excluded: else rows in order would
        seem to need a bound of 1. With a ``backlog`` rows have waited for us, not for the network, so only
        their order says something.
        """
        if rows <= 0:
            return self
        caught_up = now if backlog else self.caught_up
        learners = list(self.learners)
        for at, delay in enumerate(self.delays):
            if delay and now - delay <= caught_up:
                break  # what had been read by then is no measure of what had arrived
            newest = newest_at(now - delay)
            if newest > BEGINNING:
                learners[at] = learners[at].after(max(newest - oldest + 1, 0), rows, now)
        return evolve(self, learners=tuple(learners), rows=self.rows + rows, caught_up=caught_up)

    def bounds(self) -> Bounds:
        """What may be offered now, delays increasing and lags decreasing; nothing while it warms up."""
        if self.rows < self.clause.warmup_rows:
            return ()
        pairs = zip(self.delays, self.learners, strict=True)
        return reduced(self._with_margin(delay, learner.lag) for delay, learner in pairs)

    def frontier(self, upto: int, newest_at: Callable[[int], int]) -> int:
        """What holds once everything that arrived by ``upto`` has been taken: the most that any bound gives.

        Bounds are applied to the past afresh, not put into a staircase when a row comes: what was scheduled under a bound
        that has since grown is known to be false. With scheduled promises ten times as many rows are late in bursts.

        >>> Estimator.of(HeartbeatEstimated(warmup_rows=0, margin=0.0), has_unit=True).frontier(0, lambda wall: 5_000_000)
        5000001
        """
        found = BEGINNING
        for after, lag in self.bounds():
            newest = newest_at(upto - after)
            if newest > BEGINNING:
                found = max(found, newest - lag + 1)
        return found

    def next_rise(self, past: Iterable[tuple[int, int]], frontier: int) -> int | None:
        """The wall-clock instant at which the frontier rises though no row comes; None if it does not.

        ``past`` are (wall clock, largest time seen by then).
        """
        bounds = self.bounds()
        dues = [wall + after for wall, newest in past for after, lag in bounds if newest - lag + 1 > frontier]
        return min(dues, default=None)

    @property
    def delta(self) -> int | None:
        """The bound that holds at once, for people; None while it warms up."""
        offered = self.bounds()
        return offered[0].lag if offered else None

    def _with_margin(self, delay: int, lag: int) -> Bound:
        """Delays get the margin too: a factor on a lag of 0 would be none.

        With a margin the bound that holds at once is at least 1, since a tick may part rows with equal times.
        """
        if self.clause.late_budget is not None or not self.clause.margin:
            return Bound(delay, lag)
        factor = 1 + self.clause.margin
        return Bound(math.ceil(delay * factor), max(math.ceil(lag * factor), 0 if delay else 1))

    def to_manifest(self) -> dict[str, Any]:
        return {
            "clause": asdict(self.clause),
            "delays": list(self.delays),
            "learners": [learner.to_manifest() for learner in self.learners],
            "rows": self.rows,
            "caught_up": self.caught_up,
        }

    @classmethod
    def from_manifest(cls, kept: dict[str, Any]) -> Estimator:
        clause = HeartbeatEstimated(**kept["clause"])
        kind = ForgettingMaximum if clause.late_budget is None else ForgettingQuantile
        learners: tuple[Learner, ...] = tuple(kind.from_manifest(learner) for learner in kept["learners"])
        return cls(clause, tuple(kept["delays"]), learners, kept["rows"], kept["caught_up"])


def _grid(horizon: int) -> Iterator[int]:
    """0, .2, .5, 1, 2, 5, 10 s and so on below the horizon, and the horizon itself: any set of delays is sound."""
    yield 0
    delay, step = _SHORTEST, 0
    while delay < horizon:
        yield delay
        delay, step = int(delay * _STEPS[step % len(_STEPS)]), step + 1
    yield horizon


def _initial(clause: HeartbeatEstimated, delay: int, has_unit: bool) -> int:
    """The bound before anything is learned.

    It falls with the delay, for a row cannot be late by what has already been waited for. Where time is plain numbers,
    waiting and times have no common measure: there it falls evenly to 0 at the horizon, and it is 0 if not given, since
    nothing says how far apart such times lie; the warm-up finds out.
    """
    if has_unit:
        return max((INITIAL if clause.initial is None else clause.initial) - delay, 0)
    return -(-(clause.initial or 0) * (clause.horizon - delay) // clause.horizon)


def new_learner(clause: HeartbeatEstimated, initial: int, *, has_unit: bool) -> Learner:
    """As the clause asks for it, with what it takes for granted at first."""
    window = Window(clause.window_rows, clause.window_time)
    if clause.late_budget is None:
        return ForgettingMaximum(Window(None, _SECOND) if window == Window() else window, clause.alpha, initial)
    if window == Window():
        window = Window(rows=max(BUDGET_ROWS, math.ceil(2 / clause.late_budget)))
    return ForgettingQuantile(window, clause.late_budget, initial, unit=_SECOND // 1000 if has_unit else 1)
