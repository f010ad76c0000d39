"""Cut long intervals into pieces: the same snapshots in more elements (Krämer 11.7.1, Alg. 15, 16)."""
#  in        a |--------)       b |------------ …
#  length 3  a |--)|--)|)       b |--)|--)|--)      b goes on as far as the frontier

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from headwater.errors import StreamError
from headwater.model.arrays import Int64Array, UInt64Array
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY, saturating_add
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.state.columns import Columns
from headwater.state.manifest import Scalars, State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_MOST_OF_A_ROW = 100_000
"""So many pieces may one row have: a limit that does not depend on what comes together with it."""
_MOST_PIECES = 50_000_000


class SplitState(State):
    """Rows that never end, by the start of their next piece."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    layouts = ("open",)

    def __init__(self, store: Store) -> None:
        self.open = TimeRuns(store, constants=("weight",))
        self.frontier = BEGINNING

    @property
    def rows(self) -> int:
        return self.open.rows


class SplitOperator(Operator):
    """Pieces of ``length`` from each element's own start on; the last may be shorter. Length 1: chronons (Rstream).

    An element that ends is cut at once. One that never ends gives the pieces that start before the frontier, and at the
    end of time what is left as one row [h, INFINITY): windows read that as an element at every instant from h on.
    State: elements that never end, until they are adjusted.
    """

    name = "split"

    def __init__(self, schema: Schema, length: int = 1, *, for_window: bool = False) -> None:
        assert length == 1 or not for_window, "windows count single instants"
        self.schema, self._length, self._for_window = schema, length, for_window
        self._waiting = Schema((*schema.fields, Field(" since", pa.int64(), nullable=False)))

    def new_state(self, store: Store) -> SplitState:
        return SplitState(store)

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self.schema.names,)

    def describe(self) -> dict[str, object]:
        return {"length": self._length, "for_window": self._for_window}

    def step(self, state: SplitState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], max(frontiers[0], state.frontier)
        first = self._first_piece(delta.start, state.frontier)
        cut = (delta.end > saturating_add(delta.start, self._length)) | (first != delta.start)
        results: list[Delta] = []
        if cut.any():
            results.append(delta.filter(~cut))
            delta, first = delta.filter(cut), first[cut]
            finite = delta.end != INFINITY
            self._check_length(delta.filter(finite), delta.start[finite], delta.end[finite])
            results.append(self._pieces(delta.filter(finite), first[finite], delta.end[finite]))
            results.append(self._open(state, delta.filter(~finite), first[~finite]))
        else:
            results.append(delta)
        results.append(self._continue(state, frontier))
        state.frontier = frontier
        return Step(Delta.concat(self.schema, results), frontier)

    def _check_length(self, delta: Delta, since: Int64Array, until: Int64Array) -> None:
        """One row must not become too many."""
        long = np.flatnonzero(_distance(since, until) // np.uint64(self._length) > _MOST_OF_A_ROW)
        if len(long):
            row = delta.take(long[:1]).rows()[0][0]
            lasts = f"the element {row} begins at {since[long[0]]} and is still there at {until[long[0]] - 1}"
            raise self._too_long(f"{lasts}: more than {_MOST_OF_A_ROW} pieces of length {self._length}")

    def _too_long(self, message: str) -> StreamError:
        return StreamError(
            "SPLIT_TOO_LONG",
            message,
            detail="A RANGE window or RSTREAM over elements that last cuts them into their single instants.",
            hint="Use elements of one instant, ISTREAM( … ) of those that last, or no window: each has its own time.",
        )

    def _first_piece(self, start: Int64Array, frontier: int) -> Int64Array:
        """Where the first piece begins that is not over by the frontier.

        Earlier pieces cannot change any more: rows that began before the frontier reach it, and cancel by (row, start).
        """
        behind = start < frontier
        if frontier == BEGINNING or not behind.any():
            return start
        passed = np.where(behind, _distance(start, np.int64(frontier)), np.uint64(0))
        return start + (passed // np.uint64(self._length) * np.uint64(self._length)).astype(np.int64)

    def _pieces(self, delta: Delta, first: Int64Array, last: Int64Array) -> Delta:
        """The pieces of each row that start in [first, last)."""
        length = np.uint64(self._length)
        distance = np.where(first < last, _distance(first, last), np.uint64(0))
        count = distance // length + (distance % length > 0)
        total = float(count.astype(np.float64).sum())
        if total > _MOST_PIECES:
            raise self._too_long(f"{len(delta)} rows have {total:.0f} pieces of length {self._length} at once")
        row = np.repeat(np.arange(len(delta)), count.astype(np.int64))
        begun = np.cumsum(count.astype(np.int64)) - count.astype(np.int64)
        start = first[row] + (np.arange(len(row)) - begun[row]) * self._length
        pieces = delta.take(row)
        pieces = pieces.with_times(start, np.minimum(pieces.end, saturating_add(start, self._length)))
        return pieces.consolidate() if (pieces.weight < 0).any() else pieces

    def _open(self, state: SplitState, delta: Delta, first: Int64Array) -> Delta:
        """Rows that never end: the piece that reaches over the frontier has come before, the others wait."""
        over = first < state.frontier
        after = np.where(over, saturating_add(first, self._length), first)
        self._wait(state, delta, delta.start, after)
        crossing = delta.filter(over)
        return crossing.with_times(first[over], after[over])

    def _wait(self, state: SplitState, delta: Delta, since: Int64Array, after: Int64Array) -> None:
        columns = {"time": after, "weight": delta.weight, "since": since} | Columns.numbered(delta.columns)
        state.open.append(columns.where(after != INFINITY))

    def _continue(self, state: SplitState, frontier: int) -> Delta:
        """The pieces of rows that never end between the old frontier and the new one."""
        due = [part for part in state.open.advance(frontier) if part.rows]
        if not due:
            return Delta.empty(self.schema)
        rows = Columns.concat(due)
        end = np.full(rows.rows, INFINITY, np.int64)
        payload = [*rows.payload(len(self.schema)), pa.array(rows["since"])]
        open_ = Delta(self._waiting, payload, rows.time, end, rows.weight)
        if (open_.weight < 0).any():
            open_ = open_.consolidate()
        since = open_.columns[-1].to_numpy()
        open_ = open_.with_columns(self.schema, open_.columns[:-1])
        if frontier == INFINITY:
            return open_
        self._check_length(open_, since, np.full(len(open_), frontier, np.int64))
        pieces = self._pieces(open_, open_.start, np.full(len(open_), frontier, np.int64))
        steps = (_distance(open_.start, np.int64(frontier)) - np.uint64(1)) // np.uint64(self._length)
        last = open_.start + (steps * np.uint64(self._length)).astype(np.int64)
        self._wait(state, open_, since, saturating_add(last, self._length))
        return pieces


def _distance(first: Int64Array, last: Int64Array | np.int64) -> UInt64Array:
    """last - first, which is not negative, for any two instants."""
    return np.asarray(last).view(np.uint64) - first.view(np.uint64)
