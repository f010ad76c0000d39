"""Keys by the start they have held, for letting go of what has been held for too long."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.state.columns import Columns, concat, take
from headwater.state.manifest import State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_NONE = np.empty(0, np.uint64)

Current = Callable[[Identity], Int64Array]
"""The start that each of the keys holds now."""


class AgingKeys(State):
    """A queue of (start, key); an entry whose key holds another start by now is stale, and left out when its time comes."""

    layouts = ("_runs",)

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs = TimeRuns(store)

    def push(self, start: Int64Array, key: Identity) -> None:
        """The keys hold these starts from now on."""
        columns: Columns = {"time": start, "low": key.low}
        self._runs.append(columns | ({"high": key.high} if len(key.high) else {}))

    def before(self, time: int, current: Current) -> Identity:
        """The keys (sorted) that hold a start before the time; they leave the queue."""
        parts = self._runs.advance(time)
        if not parts:
            return Identity(_NONE, _NONE)
        entries = concat(parts)
        held = current(Identity(entries["low"], entries.get("high", _NONE)))
        valid = take(entries, np.flatnonzero(held == entries["time"]))
        key = Identity(valid["low"], valid.get("high", _NONE))
        order, groups = sort_by_key_time(*key, valid["time"])
        return key.take(order[groups[:-1]])

    def clear(self) -> None:
        self._runs = TimeRuns(self._store)
