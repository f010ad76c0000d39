"""What is learned of one delay of a stream: how much older than the newest row its rows may be, so long afterwards."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from attrs import Factory, asdict, field, frozen

LEAST_ROWS = 50
"""A window of time that saw fewer rows has seen too little to forget by."""

BUCKETS = 64

TAIL = 0.7
"""k below: between exponential delays and heavy tails; with it the share comes within a factor of four for both."""


@frozen
class Window:
    """How long evidence counts: so many rows, or so much wall-clock time."""

    rows: int | None = None
    time: int | None = None

    def is_over(self, rows: int, time: int) -> bool:
        # The test of Fig. 4 is num > W, so a window holds W + 1 rows.
        return rows > self.rows if self.rows is not None else time >= (self.time or 0) and rows >= LEAST_ROWS


@frozen
class ForgettingMaximum:
    """The largest age seen; after every window without a larger one it falls towards the window's own (W, alpha).

    Srivastava & Widom 6.2. ``alpha`` 1 never forgets, 0 takes the window's maximum as it is.
    """

    window: Window
    alpha: float
    lag: int = 0
    widest: int = 0
    """The largest age of the window that is open."""
    rows: int = 0
    """Its rows."""
    began: int | None = None
    """The wall-clock instant of its first rows."""

    def after(self, age: int, rows: int, now: int) -> ForgettingMaximum:
        """With one more tick, whose oldest row has this age."""
        if age > self.lag:
            return ForgettingMaximum(self.window, self.alpha, age, began=now)
        began = now if self.began is None else self.began
        widest, rows = max(self.widest, age), self.rows + rows
        if not self.window.is_over(rows, now - began):
            return ForgettingMaximum(self.window, self.alpha, self.lag, widest, rows, began)
        return ForgettingMaximum(self.window, self.alpha, self._forgotten(widest), began=now)

    def forgotten(self) -> ForgettingMaximum:
        """Nothing has been seen."""
        return ForgettingMaximum(self.window, self.alpha)

    def _forgotten(self, widest: int) -> int:
        """Rounded up, so as never to promise more, but not so that the bound stands still above the window's maximum."""
        fallen = math.ceil(self.alpha * self.lag + (1 - self.alpha) * widest)
        return min(fallen, self.lag - 1) if self.alpha < 1 and widest < self.lag else fallen

    def to_manifest(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_manifest(cls, kept: dict[str, Any]) -> ForgettingMaximum:
        known: dict[str, Any] = dict(kept, window=Window(**kept["window"]))
        return cls(**known)


@frozen
class ForgettingQuantile:
    """The age that all but a given share of the rows stay below, from a histogram that forgets.

    A tick tells its oldest row and how many rows came; how old the others are is guessed: of c rows with the oldest of
    age m, c^(1 - (a/m)^k) are older than a. With k = 1 that is right for exponential delays, for heavier tails k is less.
    """

    window: Window
    share: float
    """Of the rows, how many may be older."""
    initial: int = 0
    """The bound until enough rows have come to say anything of so small a share."""
    unit: int = 1
    """The first bucket that is not for 0 ends here."""
    weights: tuple[float, ...] = field(default=(0.0,) * BUCKETS)
    largest: int = 0
    rows: int = 0
    seen_at: int | None = None
    lag: int = field(default=Factory(lambda self: self.initial, takes_self=True))

    def after(self, age: int, rows: int, now: int) -> ForgettingQuantile:
        """With one more tick, whose oldest row has this age."""
        weights = np.array(self.weights)
        weights *= self._kept(weights, rows, now)
        weights += self._spread(age, rows)
        largest, rows = max(self.largest, age), self.rows + rows
        lag = self._quantile(weights, largest, rows)
        known = self.window, self.share, self.initial, self.unit
        return ForgettingQuantile(*known, tuple(weights.tolist()), largest, rows, now, lag)

    def forgotten(self) -> ForgettingQuantile:
        """Nothing has been seen."""
        return ForgettingQuantile(self.window, self.share, self.initial, self.unit)

    def _quantile(self, weights: np.ndarray, largest: int, rows: int) -> int:
        below = weights.cumsum()
        bucket = int(below.searchsorted((1 - self.share) * below[-1]))
        lag = largest if bucket >= BUCKETS - 1 else min(math.ceil(bucket_ends(self.unit)[bucket]), largest)
        return max(lag, self.initial) if rows < self._enough else lag

    @property
    def _enough(self) -> float:
        """A share of 0.1 % is no share of fewer than a thousand rows; twice that, to be on the safe side."""
        return max(LEAST_ROWS, 2 / self.share)

    def _kept(self, weights: np.ndarray, rows: int, now: int) -> float:
        """What is left of older evidence. Silence alone forgets nothing that is needed for a quantile."""
        if self.window.rows is not None:
            return (1 - 1 / self.window.rows) ** rows
        passed = now - self.seen_at if self.seen_at is not None else 0
        kept = math.exp(-passed / (self.window.time or 1))
        return max(kept, min(1.0, self._enough / max(float(weights.sum()), 1.0)))

    def _spread(self, age: int, rows: int) -> np.ndarray:
        """The tick's rows by bucket."""
        found = np.zeros(BUCKETS)
        if age <= 0:
            found[0] = rows
            return found
        ends = bucket_ends(self.unit)
        older = np.where(ends < age, float(rows) ** (1 - np.minimum(ends / age, 1.0) ** TAIL), 0.0)
        older[-1] = 0.0
        found[0] = rows - older[0]
        found[1:] = older[:-1] - older[1:]
        return found

    def to_manifest(self) -> dict[str, Any]:
        return {**asdict(self), "weights": list(self.weights)}

    @classmethod
    def from_manifest(cls, kept: dict[str, Any]) -> ForgettingQuantile:
        known: dict[str, Any] = dict(kept, window=Window(**kept["window"]), weights=tuple(kept["weights"]))
        return cls(**known)


@cache
def bucket_ends(unit: int) -> np.ndarray:
    """0, then six decades and a half in equal steps, about 28 % each; the last bucket has no end."""
    return np.concatenate(([0.0], unit * np.geomspace(1, 10**6.5, BUCKETS - 1)))
