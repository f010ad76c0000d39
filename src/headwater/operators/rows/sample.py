"""Look only now and then: the answer at every period, as single instants (the refreshes of Golab 3.3.4)."""
#  in                   a |----------)   b |)
#  period 4, offset 3   a    |)  |)            b was there at no instant 4k + 3

from __future__ import annotations

from typing import ClassVar

import numpy as np

from headwater.errors import StreamError
from headwater.model.arrays import Int64Array, UInt64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY, round_up, saturating_add
from headwater.operators.base import Frontiers, Inputs, Operator, Routing, Step
from headwater.state.columns import Columns
from headwater.state.manifest import Scalars, State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_MOST_ROWS = 50_000_000


class SampleState(State):
    """Rows by the next instant at which they are seen; the instants before ``shown`` have been."""

    # Of shards that have come unequally far the furthest counts: rows that wait for an earlier instant are due at once.
    scalars: ClassVar[Scalars] = {"frontier": min, "shown": max}
    layouts = ("waiting",)

    def __init__(self, store: Store) -> None:
        self.waiting = TimeRuns(store, constants=("weight",))
        self.frontier = self.shown = BEGINNING

    @property
    def rows(self) -> int:
        return self.waiting.rows


class SampleOperator(Operator):
    """An element [s, e) becomes one element [t, t+1) for each t = k*period + offset in it.

    Strong: an instant is shown when the frontier has passed it, so nothing is taken back whatever becomes of the ends.
    Speculative: as far as time has come, and repaired. State: each row that has instants still to come, once.

    When the streams have ended, what never ends is shown up to the first instant at which all that follows from their last
    row has begun: so long after it is ``delay``.
    """

    name = "sample"

    def __init__(
        self, schema: Schema, period: int, offset: int = 0, *, speculative: bool = False, delay: int = 0
    ) -> None:
        self.schema, self._period, self._offset = schema, period, offset % period
        self._speculative, self._delay = speculative, delay

    def new_state(self, store: Store) -> SampleState:
        return SampleState(store)

    def routing(self) -> Routing:
        return (self.schema.names,)

    def describe(self) -> dict[str, object]:
        return {"period": self._period, "offset": self._offset, "speculative": self._speculative}

    def step(self, state: SampleState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], max(frontiers[0], state.frontier)
        shown = max(frontier, state.shown)
        if self._speculative:
            shown = max(shown, min(max(reached, delta.largest_start()), INFINITY - 2) + 1)
        repaired = Delta.empty(self.schema)
        if state.shown > state.frontier:
            # What lies before the old frontier cannot change: rows that began before it cancel there by (row, start).
            repaired = self._instants(self._from(delta, state.frontier), state.shown)
        rows = Delta.concat(self.schema, [self._from(delta, state.shown), self._due(state, shown)])
        if (rows.weight < 0).any():
            rows = rows.consolidate()
        if shown == INFINITY:
            rows = self._until_the_end(rows, reached)
        result = Delta.concat(self.schema, [repaired, self._instants(rows, shown)])
        self._wait(state, self._from(rows, shown))
        state.frontier, state.shown = frontier, shown
        if BEGINNING < frontier < INFINITY:
            frontier = int(round_up(np.array([frontier]), self._period, self._offset)[0])
        return Step(result.consolidate() if (result.weight < 0).any() else result, frontier)

    def _until_the_end(self, rows: Delta, newest: int) -> Delta:
        """What never ends, no longer than there is something new to see. That is the same for all shards."""
        last = saturating_add(np.array([newest]), self._delay) if newest > BEGINNING else np.array([BEGINNING])
        end = saturating_add(round_up(last, self._period, self._offset), 1)
        return rows.with_times(rows.start, np.where(rows.end == INFINITY, end, rows.end))

    def _from(self, rows: Delta, instant: int) -> Delta:
        """The rows from where they are next seen, at that instant or later."""
        return rows.with_times(round_up(np.maximum(rows.start, instant), self._period, self._offset), rows.end)

    def _instants(self, rows: Delta, until: int) -> Delta:
        """The instants before ``until`` at which the rows are seen; they begin with the first."""
        rows = rows.filter(rows.start < until)
        period, distance = np.uint64(self._period), _distance(rows.start, np.minimum(rows.end, until))
        count = distance // period + (distance % period > 0)
        total = float(count.astype(np.float64).sum())
        if total > _MOST_ROWS:
            raise StreamError(
                "SAMPLE_TOO_FINE",
                f"an answer that is shown every {self._period} instants gives {total:.0f} rows at once",
                hint="Use a larger SLIDE, or a longer period for EMIT EVERY.",
            )
        count = count.astype(np.int64)
        nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        instants = rows.take(np.repeat(np.arange(len(rows)), count))
        start = instants.start + nth * self._period
        return instants.with_times(start, start + 1)

    def _due(self, state: SampleState, until: int) -> Delta:
        """The rows that waited for an instant before ``until``."""
        due = [part for part in state.waiting.advance(until) if part.rows]
        if not due:
            return Delta.empty(self.schema)
        rows = Columns.concat(due)
        return Delta(self.schema, rows.payload(len(self.schema)), rows.time, rows.array("end"), rows.weight)

    def _wait(self, state: SampleState, rows: Delta) -> None:
        times = {"time": rows.start, "end": rows.end, "weight": rows.weight}
        state.waiting.append(times | Columns.numbered(rows.columns))


def _distance(first: Int64Array, last: Int64Array) -> UInt64Array:
    """last - first, which is not negative, for any two instants."""
    return last.view(np.uint64) - first.view(np.uint64)
