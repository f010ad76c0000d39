"""How good a promise about time was: which rows came after it, and how long the others waited for it."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from benchmarks.time.worlds import MILLISECOND, Rows
from headwater.model.arrays import Int64Array

NEVER = -(2**62)
"""The heartbeat before anything is promised."""


@frozen(eq=False)
class Heartbeats:
    """From each wall-clock instant on: nothing at or before the heartbeat comes any more. Both never decrease."""

    at: Int64Array
    heartbeat: Int64Array

    def before(self, instants: Int64Array) -> Int64Array:
        """What had been promised when a row came: rows that come at the instant of a promise are not covered by it."""
        found = np.searchsorted(self.at, instants, side="left")
        return np.concatenate(([NEVER], self.heartbeat))[found]

    def least(self, other: Heartbeats) -> Heartbeats:
        """Both streams together: of two series over the same instants."""
        return Heartbeats(self.at, np.minimum(self.heartbeat, other.heartbeat))


@frozen
class Score:
    """Of all rows; waits are from when a row was sent until it was final, in milliseconds of wall clock."""

    rows: int
    late: int
    stuck: int
    """Rows that were never final."""
    mean: float
    median: float
    p99: float

    @property
    def late_share(self) -> float:
        return self.late / self.rows


def late_rows(rows: Rows, beats: Heartbeats) -> np.ndarray:
    """Which rows came after they were promised not to."""
    return rows.time <= beats.before(rows.arrival)


def score(rows: Rows, beats: Heartbeats, *, judged: Heartbeats | None = None) -> Score:
    """How it went. ``judged``: what decides whether a row is late, where that is another series than the one waited for."""
    late = late_rows(rows, judged or beats)
    time, sent = rows.time[~late], rows.sent[~late]
    found = np.searchsorted(beats.heartbeat, time, side="left")
    final = found < len(beats.at)
    waits = (beats.at[found[final]] - sent[final]) / MILLISECOND
    mean, median, p99 = (
        (float(waits.mean()), float(np.median(waits)), float(np.percentile(waits, 99)))
        if len(waits)
        else (float("nan"),) * 3
    )
    return Score(len(rows), int(late.sum()), int((~final).sum()), mean, median, p99)
