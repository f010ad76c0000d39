"""The least of many instants, one a key, that only ever grow: without looking at the whole state.

Each key has one entry, which may be out of date: it is then a bound from below. Only when it has come to the head of
the queue is it renewed, so the work is proportional to how far the least has moved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.model.time import INFINITY
from headwater.state.columns import Columns, concat, rows_of
from headwater.state.manifest import State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_CHUNK = 64
_MOST_CHUNKS = 16  # each twice the one before
_NONE = np.empty(0, np.uint64)

Current = Callable[[Identity], Int64Array]
"""The instant of each of the keys now."""


class Heads(State):
    """A queue of (instant, key) that is renewed lazily."""

    layouts = ("_runs",)

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs = TimeRuns(store)

    def push(self, instant: Int64Array, key: Identity) -> None:
        """These keys are new."""
        if len(instant):
            columns: Columns = {"time": instant, "low": key.low}
            self._runs.append(columns | ({"high": key.high} if len(key.high) else {}))

    def least(self, current: Current) -> int:
        """The smallest instant, or a bound below it when that takes too long to find; INFINITY if there is no key."""
        chunk = _CHUNK
        for _ in range(_MOST_CHUNKS):
            heads = self._runs.between(self._runs.frontier, INFINITY)
            if not heads:
                return INFINITY
            first = min(heads, key=lambda part: part["time"][0])
            bound = int(first["time"][min(chunk, rows_of(first)) - 1])
            entries = concat(self._runs.between(self._runs.frontier, bound + 1))
            key = Identity(entries["low"], entries.get("high", _NONE))
            now = current(key)
            least = int(now.min())
            limit = min(least, bound + 1)
            passed = np.flatnonzero(entries["time"] < limit)
            self._runs.advance(limit)
            self.push(now[passed], key.take(passed))
            if least <= bound:
                return least
            chunk *= 2
        return self._runs.frontier

    def clear(self) -> None:
        self._runs = TimeRuns(self._store)
