"""Time-sorted runs: rows that wait for their instant.

One run a tick, neighbours merged geometrically, so that a tick opens only the runs whose range meets its own: a few,
whatever the state. A run is dropped whole when its last instant has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from headwater.kernels.merge import merge_times, take_two
from headwater.kernels.sort import sort_by_time
from headwater.model.time import BEGINNING, INFINITY
from headwater.state.columns import Columns, compress, concat_column, rows_of, slice_rows, take, take_column
from headwater.state.manifest import Layout, Route, Scalars, rows_by_shard
from headwater.state.store import Segment, Store

_RATIO = 2
_MOST_ROWS = 262_144


class TimeRuns(Layout):
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

    def append(self, columns: Columns) -> None:
        """Add rows (any order, none before the frontier); ``time`` is one of the columns."""
        count = rows_of(columns)
        if count == 0:
            return
        order = sort_by_time(columns["time"])
        self.rows += count
        self._segments.append(self._write(take(columns, order)))
        while len(self._segments) > 1:
            older, newer = self._segments[-2], self._segments[-1]
            if older.rows >= _RATIO * newer.rows or older.rows + newer.rows > _MOST_ROWS:
                break
            self._segments[-2:] = [self._merge(older, newer)]

    def _write(self, columns: Columns) -> Segment:
        time = columns["time"]
        assert isinstance(time, np.ndarray)
        packed = compress(columns, self._constants)
        return self._store.write(packed, rows=len(time), least=int(time[0]), most=int(time[-1]))

    def _merge(self, older: Segment, newer: Segment) -> Segment:
        a, b = (self._part(run, self.frontier, INFINITY) for run in (older, newer))
        order = merge_times(a["time"], b["time"])
        merged: Columns = {}
        for name in a:
            x, y = a[name], b[name]
            if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
                merged[name] = take_two(np.ascontiguousarray(x), np.ascontiguousarray(y), order)
            else:
                merged[name] = take_column(concat_column([x, y]), order)
        return self._write(merged)

    @staticmethod
    def _part(run: Segment, low: int, high: int) -> Columns:
        if low <= run.least and run.most < high:
            return run.columns
        first, last = np.searchsorted(run.array("time"), [low, high])
        return slice_rows(run.columns, int(first), int(last))

    def between(self, low: int, high: int) -> list[Columns]:
        """Slices with low <= time < high, and not before the frontier."""
        low = max(low, self.frontier)
        parts = [self._part(run, low, high) for run in self._segments if run.least < high and run.most >= low]
        return [part for part in parts if rows_of(part)]

    def advance(self, frontier: int) -> list[Columns]:
        """Take out everything before the frontier."""
        if frontier <= self.frontier:
            return []
        parts = self.between(self.frontier, frontier)
        self.frontier = frontier
        self.rows -= sum(map(rows_of, parts))
        self._segments = [run for run in self._segments if run.most >= frontier]
        return parts

    def move_to(self, targets: Sequence[Self], route: Route) -> None:
        for part in self.between(self.frontier, INFINITY):
            for shard, rows in rows_by_shard(route(part)):
                targets[shard].append(take(part, rows))
