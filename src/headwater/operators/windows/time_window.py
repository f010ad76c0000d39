"""Keep every element in view for a span of time, moving on in slides (Krämer 8.17, 17.1; Alg. 12, 18)."""
#  in                 a |)      b |)
#  RANGE 4            a |---)   b |---)
#  RANGE 4 SLIDE 2     a |---)   b |---)      ends and starts only at instants 2k - 1

from __future__ import annotations

import numpy as np

from headwater.errors import StreamError
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY, saturating_add
from headwater.operators.base import Frontiers, Inputs, Operator, Step

_MOST_STEPS = 1_000_000
_MOST_ROWS = 50_000_000


class TimeWindowOperator(Operator):
    """An element of a chronon stream at s is valid from the first slide that sees it until the first that does not any
    more: the window that begins to show at ka - 1 covers the w instants up to there. Stateless.

    A row [h, INFINITY) is the tail of an element that never ends (``SplitOperator``): it occurs at every instant from h
    on, so its multiplicity grows until the whole window is full of it.
    """

    name = "time window"

    def __init__(self, schema: Schema, size: int, slide: int = 1) -> None:
        self.schema, self._size, self._slide = schema, size, slide

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,)

    def describe(self) -> dict[str, object]:
        return {"size": self._size, "slide": self._slide}

    def step(self, state: None, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], frontiers[0]
        if BEGINNING < frontier < INFINITY:
            frontier = int(self._begins(np.array([frontier]))[0])
        tail = delta.end - delta.start != 1
        if tail.any():
            parts = [self._widen(delta.filter(~tail)), self._fill(delta.filter(tail))]
            return Step(Delta.concat(self.schema, parts), frontier)
        return Step(self._widen(delta), frontier)

    def _widen(self, delta: Delta) -> Delta:
        end = self._begins(saturating_add(delta.start, self._size))
        return delta.with_times(self._begins(delta.start), end)

    def _begins(self, instants: Int64Array) -> Int64Array:
        """The first instant ka - 1 that is not before each."""
        if self._slide == 1:
            return instants
        room = self._slide - 1 - instants % self._slide
        return np.where(instants > INFINITY - room, INFINITY, instants + room)

    def _fill(self, tails: Delta) -> Delta:
        """At ka - 1 the window shows min(w, ka - h) instants of the tail: that many copies, open-ended."""
        size, slide = self._size, self._slide
        if size == INFINITY:
            raise StreamError(
                "UNBOUNDED_MULTIPLICITY",
                f"an unbounded window cannot hold the element {tails.rows()[0][0]}, which recurs for ever",
                hint="Let the elements end, or use a window of finite size.",
            )
        steps = -(-size // slide) + 1
        if steps > _MOST_STEPS or steps * len(tails) > _MOST_ROWS:
            raise StreamError(
                "WINDOW_TOO_FINE",
                f"a window over {len(tails)} elements that never end takes {steps} steps to fill",
                hint="Let the elements end, or use a larger SLIDE.",
            )
        assert (tails.end == INFINITY).all(), "only single instants and endless tails come here"
        first = self._begins(tails.start)
        row, step = np.repeat(np.arange(len(tails)), steps), np.tile(np.arange(steps), len(tails))
        moved = step * slide
        seen = first[row] - tails.start[row] + 1 + moved
        new = np.minimum(seen, size) - np.where(step == 0, 0, np.minimum(seen - slide, size))
        start = np.where(first[row] > INFINITY - moved, INFINITY, first[row] + moved)
        shown = np.flatnonzero((new > 0) & (start < INFINITY))
        filled = tails.take(row[shown])
        end = np.full(len(shown), INFINITY, np.int64)
        return Delta(self.schema, filled.columns, start[shown], end, filled.weight * new[shown])
