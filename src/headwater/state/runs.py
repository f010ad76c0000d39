"""Time-sorted runs: rows that wait for their instant.

One run a tick, neighbours merged geometrically, so that a tick opens only the runs whose range meets its own: a few,
whatever the state. A run is dropped whole when its last instant has passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np

from headwater.kernels.merge import merge_times
from headwater.kernels.sort import sort_by_time
from headwater.model.time import BEGINNING, INFINITY
from headwater.state.columns import (
    Column,
    Columns,
    take_either,
)
from headwater.state.manifest import Route, Scalars, StateLayout, rows_by_shard
from headwater.state.store import Segment, Store

_RATIO = 2
_MOST_ROWS = 262_144


class TimeRuns(StateLayout):
    """Rows by ``time``; those before ``frontier`` have been taken out."""

    scalars: ClassVar[Scalars] = {"frontier": min, "rows": None}

    def __init__(self, store: Store, *, constants: Sequence[str] = ()) -> None:
        self._store, self._constants = store, tuple(constants)
        self._segments: list[Segment] = []
        self.frontier = BEGINNING
        self.rows = 0

    @property
    def store(self) -> Store:
        return self._store

    def append(self, rows: Mapping[str, Column]) -> None:
        """Add rows (any order, none before the frontier); ``time`` is one of the columns."""
        columns = Columns(rows)
        if columns.rows == 0:
            return
        self.rows += columns.rows
        self._segments.append(self._write(columns.take(sort_by_time(columns.time))))
        while len(self._segments) > 1:
            older, newer = self._segments[-2], self._segments[-1]
            if older.rows >= _RATIO * newer.rows or older.rows + newer.rows > _MOST_ROWS:
                break
            self._segments[-2:] = [self._merge(older, newer)]

    def _write(self, columns: Columns) -> Segment:
        time = columns.time
        packed = columns.compress(self._constants)
        return self._store.write(packed, rows=len(time), least=int(time[0]), most=int(time[-1]))

    def _merge(self, older: Segment, newer: Segment) -> Segment:
        a, b = (self._part(run, self.frontier, INFINITY) for run in (older, newer))
        order = merge_times(a.time, b.time)
        return self._write(Columns({name: take_either(a[name], b[name], order) for name in a}))

    @staticmethod
    def _part(run: Segment, low: int, high: int) -> Columns:
        if low <= run.least and run.most < high:
            return run.columns
        first, last = np.searchsorted(run.columns.time, [low, high])
        return run.columns.slice(int(first), int(last))

    def between(self, low: int, high: int) -> list[Columns]:
        """Slices with low <= time < high, and not before the frontier."""
        low = max(low, self.frontier)
        parts = [self._part(run, low, high) for run in self._segments if run.least < high and run.most >= low]
        return [part for part in parts if part.rows]

    def advance(self, frontier: int) -> list[Columns]:
        """Take out everything before the frontier."""
        if frontier <= self.frontier:
            return []
        parts = self.between(self.frontier, frontier)
        self.frontier = frontier
        self.rows -= sum(part.rows for part in parts)
        self._segments = [run for run in self._segments if run.most >= frontier]
        return parts

    def move_to(self, targets: Sequence[Self], route: Route) -> None:
        for part in self.between(self.frontier, INFINITY):
            for shard, rows in rows_by_shard(route(part)):
                targets[shard].append(part.take(rows))
