"""Latest wins: one row per key, the newest; a log-structured set of segments sorted by key hash.

A segment is probed through its radix directory in O(1). Neighbours merge while the older one is not several times the
newer, so one to three segments remain. A dead row hides older ones and falls out when it reaches the bottom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from headwater.kernels.directory import build_directory
from headwater.kernels.latest import find_keys, gather_records
from headwater.kernels.merge import merge_latest, take_two_records
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.identity import Identity
from headwater.state.columns import Column, Columns, once, take_either
from headwater.state.manifest import Route, Scalars, StateLayout, rows_by_shard
from headwater.state.store import Segment, Store

_RATIO = 4


class Found(NamedTuple):
    """For each key asked for: the segment that has its newest row (-1: none, or dead) and where."""

    segment: Int64Array
    row: Int64Array


class LatestWins(StateLayout):
    """The newest row of each key."""

    scalars: ClassVar[Scalars] = {"rows": None}

    def __init__(self, store: Store) -> None:
        self._store = store
        self._segments: list[Segment] = []  # oldest first
        self.rows = 0

    def find(self, key: Identity) -> Found:
        """Where the newest row of each key is. Keys in sorted order probe fastest."""
        segment, row = np.full(len(key.low), -2, np.int64), np.zeros(len(key.low), np.int64)
        for i in range(len(self._segments) - 1, -1, -1):
            columns = self._segments[i].columns
            find_keys(*columns.key, columns["directory"], once(columns["dead"]), *key, i, segment, row)
        return Found(segment, row)

    def records(self, found: Found, width: int) -> Int64Array:
        """The fixed-width records (a row per key) of the keys; zeros where there is none."""
        out = np.zeros((len(found.row), width), np.int64)
        for i, segment in enumerate(self._segments):
            gather_records(segment.array("record"), i, found.segment, found.row, out)
        return out

    def gather_where(self, found: Found, names: list[str]) -> tuple[Int64Array, Columns]:
        """The found rows' columns of any kind, and to which of the keys asked for they belong."""
        places: list[np.ndarray] = []
        parts: list[Columns] = []
        for i, segment in enumerate(self._segments):
            here = np.flatnonzero(found.segment == i)
            if len(here):
                places.append(here)
                parts.append(segment.columns.only(names).take(found.row[here]))
        if not parts:
            return np.empty(0, np.int64), Columns()
        return np.concatenate(places), Columns.concat(parts)

    def put(
        self, key: Identity, record: Int64Array, columns: Mapping[str, Column], dead: BoolArray, found: Found
    ) -> None:
        """New rows for the keys (sorted, distinct): a record of int64 words each, and other columns.

        ``found`` is what ``find`` said of the keys.
        """
        if len(key.low) == 0:
            return
        self.rows += int(np.count_nonzero(~dead)) - int(np.count_nonzero(found.segment >= 0))
        columns = Columns.under(key, {**columns, "record": record, "dead": dead.astype(np.uint8)})
        if not self._segments and dead.any():
            columns = columns.where(~dead)
            if columns.rows == 0:
                return
        self._segments.append(self._write(columns))
        while len(self._segments) > 1:
            older, newer = self._segments[-2:]
            if older.rows >= _RATIO * newer.rows:
                break
            merged = self._merge(older, newer, bottom=len(self._segments) == 2)
            self._segments[-2:] = [merged] if merged.rows else []

    def _write(self, columns: Columns) -> Segment:
        directory = build_directory(columns.key.low)
        return self._store.write(columns.compress(["dead"]) | {"directory": directory}, rows=columns.rows)

    def _merge(self, older: Segment, newer: Segment, *, bottom: bool) -> Segment:
        a, b = older.columns, newer.columns
        dead = np.ascontiguousarray(a["dead"]), np.ascontiguousarray(b["dead"])
        order = merge_latest(*a.key, *b.key, *dead, bottom)
        merged = {n: take_either(a[n], b[n], order) for n in a if n not in ("directory", "record")}
        return self._write(Columns(merged | {"record": take_two_records(a["record"], b["record"], order)}))

    def live(self) -> tuple[Identity, Columns]:
        """Every key and its newest row: for the end of time only."""
        while len(self._segments) > 1:
            merged = self._merge(*self._segments[-2:], bottom=len(self._segments) == 2)
            self._segments[-2:] = [merged] if merged.rows else []
        if not self._segments:
            return Identity.empty(), Columns()
        columns = self._segments[0].columns.without("directory")
        columns = columns.where(columns["dead"] == 0)
        return columns.key, columns

    def clear(self) -> None:
        self._segments, self.rows = [], 0

    def move_to(self, targets: Sequence[Self], route: Route) -> None:
        key, columns = self.live()
        rest = columns.without("record", "low", "high", "dead")
        for shard, rows in rows_by_shard(route(columns)) if columns else ():
            new, living = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.bool_)
            targets[shard].put(key.take(rows), columns.array("record")[rows], rest.take(rows), living, Found(new, new))
