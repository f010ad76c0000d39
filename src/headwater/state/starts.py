"""The earliest start among rows that come and go, by counting: +weight when a row comes, -weight when it goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from headwater.kernels.sort import sort_by_time
from headwater.model.arrays import Int64Array
from headwater.model.time import INFINITY
from headwater.state.columns import Columns
from headwater.state.manifest import Route, State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_CHUNK = 1024
_SLACK = 65_536


class StartCounts(State):
    """How many rows are kept at each start; only the head is ever looked at."""

    layouts = ("_runs",)

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs = TimeRuns(store)

    def add(self, start: Int64Array, weight: Int64Array) -> None:
        if len(start):
            time, counted = _sums(Columns({"time": start, "weight": weight}))  # very many rows may begin at one instant
            self._runs.append({"time": time, "weight": counted})

    def least(self, rows: int, frontier: int) -> int:
        """The smallest start with rows; INFINITY if there is none. Rows may still come from the frontier on."""
        low = self._runs.frontier
        while heads := self._runs.between(low, INFINITY):
            first = min(heads, key=lambda part: part.time[0])
            bound = int(first.time[min(_CHUNK, first.rows) - 1])
            time, weight = _sums(Columns.concat(self._runs.between(low, bound + 1)))
            kept = np.flatnonzero(weight)
            low = int(time[kept[0]]) if len(kept) else bound + 1
            self._runs.advance(min(low, frontier))
            if len(kept):
                break
        else:
            return INFINITY
        if self._runs.rows > 2 * rows + _SLACK:
            self._compact()
        return low

    def _compact(self) -> None:
        time, weight = _sums(Columns.concat(self._runs.between(self._runs.frontier, INFINITY)))
        frontier, self._runs = self._runs.frontier, TimeRuns(self._store)
        self._runs.frontier = frontier
        self.add(time[weight != 0], weight[weight != 0])

    def clear(self) -> None:
        self._runs = TimeRuns(self._store)

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        """Counts do not say whose starts they are: the operator counts again what its new states keep."""


def _sums(entries: Columns) -> tuple[Int64Array, Int64Array]:
    entries = entries.take(sort_by_time(entries.time))
    time, weight = entries.time, entries["weight"]
    begins = np.flatnonzero(np.append(True, time[1:] != time[:-1]))
    return time[begins], np.add.reduceat(weight, begins, dtype=np.int64)
