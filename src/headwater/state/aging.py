"""Keys by the start they have held, for letting go of what has been held for too long."""

from __future__ import annotations

from collections.abc import Callable

from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.state.columns import Columns
from headwater.state.manifest import State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

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
        self._runs.append(Columns.under(key, {"time": start}))

    def before(self, time: int, current: Current) -> Identity:
        """The keys (sorted) that hold a start before the time; they leave the queue."""
        parts = self._runs.advance(time)
        if not parts:
            return Identity.empty()
        entries = Columns.concat(parts)
        valid = entries.where(current(entries.key) == entries.time)
        order, groups = sort_by_key_time(*valid.key, valid.time)
        return valid.key.take(order[groups[:-1]])

    def clear(self) -> None:
        self._runs = TimeRuns(self._store)
