"""The earliest start among what is held back, without looking at the whole state.

A key's entry is pushed whenever its held start changes; an entry is stale when the key holds another start by now. Only
the head of the queue is ever checked, so the work is proportional to what was pushed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.model.time import INFINITY
from headwater.state.columns import Columns, concat, rows_of, take
from headwater.state.runs import TimeRuns
from headwater.state.store import Segment, Store

_CHUNK = 1024
_MOST_CHUNKS = 16
_NONE = np.empty(0, np.uint64)

Current = Callable[[Identity], Int64Array]
"""The start that each of the keys holds now; INFINITY where it holds nothing."""


class Holds:
    """A lazily validated queue of (start, key)."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs = TimeRuns(store)

    @property
    def bytes(self) -> int:
        return self._runs.bytes

    def segments(self) -> list[Segment]:
        return self._runs.segments()

    def push(self, start: Int64Array, key: Identity) -> None:
        """The keys hold these starts from now on."""
        if len(start) == 0:
            return
        if int(start.min()) < self._runs.frontier:  # a bound that was given out holds: nothing may start before it
            start = np.maximum(start, self._runs.frontier)
        columns: Columns = {"time": start, "low": key.low}
        self._runs.append(columns | ({"high": key.high} if len(key.high) else {}))

    def least(self, current: Current, live: int) -> int:
        """The smallest start held now, or a bound below it when that takes too long to find; INFINITY if none."""
        for _ in range(_MOST_CHUNKS):
            if not self._runs.runs:
                return INFINITY
            heads = self._runs.between(self._runs.frontier, INFINITY)
            if not heads:
                self._runs.runs = []
                return INFINITY
            first = min(heads, key=lambda part: part["time"][0])
            bound = int(first["time"][min(_CHUNK, rows_of(first)) - 1])
            valid = self._valid(concat(self._runs.between(self._runs.frontier, bound + 1)), current)
            if rows_of(valid):
                self._runs.advance(int(valid["time"].min()))
                break
            self._runs.advance(bound + 1)
        if self._runs.rows > 4 * live + 64 * _CHUNK:
            self._compact(current)
        return self._runs.frontier

    def before(self, time: int, current: Current) -> Identity:
        """The keys (sorted) that hold a start before the time; they leave the queue."""
        entries = self._runs.advance(time)
        if not entries:
            return Identity(_NONE, _NONE)
        valid = self._valid(concat(entries), current)
        key = Identity(valid["low"], valid.get("high", _NONE))
        order, groups = sort_by_key_time(*key, valid["time"])
        return key.take(order[groups[:-1]])

    @staticmethod
    def _valid(entries: Columns, current: Current) -> Columns:
        key = Identity(entries["low"], entries.get("high", _NONE))
        return take(entries, np.flatnonzero(current(key) == entries["time"]))

    def _compact(self, current: Current) -> None:
        entries = self._valid(concat(self._runs.between(self._runs.frontier, INFINITY)), current)
        frontier, self._runs = self._runs.frontier, TimeRuns(self._store)
        self._runs.frontier = frontier
        self._runs.append(entries)

    def clear(self) -> None:
        self._runs = TimeRuns(self._store)
