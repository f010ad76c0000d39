"""Latest wins, a group of rows per key: a log-structured set of CSR segments sorted by key hash.

The layout of ``state.latest`` with a small list of rows instead of one row: a key's list is rewritten whole when the
key is touched. A segment is probed through its radix directory in O(1); neighbours merge while the older one is not
several times the newer, by rows; a dead group hides older ones and falls out when it reaches the bottom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from headwater.kernels.directory import build_directory
from headwater.kernels.groups import (
    copy_groups,
    group_rows,
    group_sizes,
    merge_group_column,
    merged_group_rows,
    merged_offsets,
)
from headwater.kernels.latest import find_keys
from headwater.kernels.merge import merge_latest
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.identity import Identity
from headwater.state.columns import Column, Columns, concat_column, once, take_column, take_either
from headwater.state.latest import Found
from headwater.state.manifest import Route, Scalars, StateLayout, rows_by_shard
from headwater.state.store import Segment, Store

_RATIO = 4
_ROW, _SCALAR = "row.", "scalar."


class Groups(NamedTuple):
    """Group k has the rows offsets[k] to offsets[k + 1] of the columns, and entry k of the scalars."""

    offsets: Int64Array
    columns: Columns
    scalars: Columns


class LatestGroups(StateLayout):
    """The newest group of each key.

    ``columns`` and ``scalars`` are examples (of any length) of what ``put`` will bring: with them ``gather`` has every
    column from the start; without them it returns none until something was put.
    """

    scalars: ClassVar[Scalars] = {"rows": None, "keys": None}

    def __init__(
        self, store: Store, *, columns: Mapping[str, Column] | None = None, scalars: Mapping[str, Column] | None = None
    ) -> None:
        self._store = store
        self._segments: list[Segment] = []  # oldest first; ``most`` is the number of group rows
        self._examples: dict[str, Column] = {_ROW + n: _none_of(c) for n, c in (columns or {}).items()}
        self._examples |= {_SCALAR + n: _none_of(c) for n, c in (scalars or {}).items()}
        self.rows = 0
        self.keys = 0

    def clear(self) -> None:
        self._segments, self.rows, self.keys = [], 0, 0

    # -- looking ----------------------------------------------------------------------------------------------------

    def find(self, key: Identity) -> Found:
        """Where the newest group of each key is. Keys in sorted order probe fastest."""
        segment, row = np.full(len(key.low), -2, np.int64), np.zeros(len(key.low), np.int64)
        for i in range(len(self._segments) - 1, -1, -1):
            columns = self._segments[i].columns
            find_keys(*columns.key, columns["directory"], once(columns["dead"]), *key, i, segment, row)
        return Found(segment, row)

    def gather(self, found: Found) -> Groups:
        """The groups of the keys asked for, in their order; empty groups and zeros (NULLs) for those that have none."""
        sizes = self._sizes(found)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = [np.flatnonzero(found.segment == i) for i in range(len(self._segments))]
        taken = [(s, p, found.row[p]) for s, p in zip(self._segments, places, strict=True) if len(p)]
        columns: dict[str, Column] = {}
        scalars: dict[str, Column] = {}
        for name, example in self._examples.items():
            if name.startswith(_ROW):
                columns[name.removeprefix(_ROW)] = _gather_rows(taken, name, example, offsets)
            else:
                scalars[name.removeprefix(_SCALAR)] = _gather_scalars(taken, name, example, len(sizes))
        return Groups(offsets, Columns(columns), Columns(scalars))

    def live(self) -> tuple[Identity, Groups]:
        """Every key and its group: for the end of time only."""
        while len(self._segments) > 1:
            self._merge_last()
        if not self._segments:
            nothing = np.empty(0, np.int64)
            return Identity.empty(), self.gather(Found(nothing, nothing))
        columns = self._segments[0].columns
        alive = np.flatnonzero(columns["dead"] == 0)
        return columns.key.take(alive), self.gather(Found(np.zeros(len(alive), np.int64), alive))

    def _sizes(self, found: Found) -> Int64Array:
        sizes = np.zeros(len(found.row), np.int64)
        for i, segment in enumerate(self._segments):
            places = np.flatnonzero(found.segment == i)
            group_sizes(segment.array("offsets"), found.row[places], places, sizes)
        return sizes

    # -- changing ---------------------------------------------------------------------------------------------------

    def put(
        self,
        key: Identity,
        offsets: Int64Array,
        columns: Mapping[str, Column],
        scalars: Mapping[str, Column],
        dead: BoolArray,
        found: Found,
    ) -> None:
        """New groups for the keys (sorted, distinct; a dead one has no rows); ``found``: what ``find`` said of them."""
        if len(key.low) == 0:
            return
        self.keys += int(np.count_nonzero(~dead)) - int(np.count_nonzero(found.segment >= 0))
        self.rows += int(offsets[-1]) - int(self._sizes(found).sum())
        whole = {_ROW + n: c for n, c in columns.items()} | {_SCALAR + n: c for n, c in scalars.items()}
        if not self._examples:
            self._examples = {n: _none_of(c) for n, c in whole.items()}
        groups = Columns.under(key, whole | {"dead": dead.astype(np.uint8), "offsets": offsets})
        if not self._segments and dead.any():  # there is nothing to hide
            alive = np.flatnonzero(~dead)
            living = {
                n: c if n.startswith(_ROW) else take_column(c, alive) for n, c in groups.items() if n != "offsets"
            }
            groups = Columns(living | {"offsets": offsets[np.append(alive, len(dead))]})
        if len(groups.key.low):
            self._segments.append(self._write(groups))
        while len(self._segments) > 1 and _size(self._segments[-2]) < _RATIO * _size(self._segments[-1]):
            self._merge_last()

    def _write(self, columns: Columns) -> Segment:
        low = columns.key.low
        packed = columns.compress(["dead"]) | {"directory": build_directory(low)}
        return self._store.write(packed, rows=len(low), most=int(columns["offsets"][-1]))

    def _merge_last(self) -> None:
        """The two newest segments become one."""
        bottom = len(self._segments) == 2
        a, b = (segment.columns for segment in self._segments[-2:])
        dead = np.ascontiguousarray(a["dead"]), np.ascontiguousarray(b["dead"])
        order = merge_latest(*a.key, *b.key, *dead, bottom)
        offsets = merged_offsets(a["offsets"], b["offsets"], order)
        merged = {"offsets": offsets}
        rows: Int64Array | None = None
        for name in a:
            x, y = a[name], b[name]
            if name in ("directory", "offsets"):
                continue
            if not name.startswith(_ROW):
                merged[name] = take_either(x, y, order)
            elif isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
                x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
                merged[name] = merge_group_column(x, a["offsets"], y, b["offsets"], order, offsets[-1])
            else:
                rows = merged_group_rows(a["offsets"], b["offsets"], order, offsets[-1]) if rows is None else rows
                merged[name] = take_column(concat_column([x, y]), rows)
        self._segments[-2:] = [self._write(Columns(merged))] if len(order) else []

    def move_to(self, targets: Sequence[Self], route: Route) -> None:
        key, (offsets, columns, scalars) = self.live()
        for shard, chosen in rows_by_shard(route(scalars | {"low": key.low})):
            rows = group_rows(offsets, chosen)
            places = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(offsets)[chosen])])
            new, living = np.full(len(chosen), -1, np.int64), np.zeros(len(chosen), np.bool_)
            group = columns.take(rows), scalars.take(chosen)
            targets[shard].put(key.take(chosen), places, *group, living, Found(new, new))


def _none_of(column: Column) -> Column:
    return np.empty(0, column.dtype) if isinstance(column, np.ndarray) else pa.array([], column.type)


def _size(segment: Segment) -> int:
    return segment.rows + segment.most


_Taken = list[tuple[Segment, Int64Array, Int64Array]]  # segment, places among the keys asked for, groups


def _gather_rows(taken: _Taken, name: str, example: Column, offsets: Int64Array) -> Column:
    if isinstance(example, np.ndarray):
        out = np.empty(offsets[-1], example.dtype)
        for segment, places, groups in taken:
            copy_groups(segment.array(name), segment["offsets"], groups, places, out, offsets)
        return out
    parts = [take_column(s[name], group_rows(s["offsets"], groups)) for s, _, groups in taken]
    if not parts:
        return example
    back = np.concatenate([group_rows(offsets, places) for _, places, _ in taken])
    return _in_places(concat_column(parts), back)


def _gather_scalars(taken: _Taken, name: str, example: Column, keys: int) -> Column:
    if isinstance(example, np.ndarray):
        out = np.zeros(keys, example.dtype)
        for segment, places, groups in taken:
            out[places] = segment.array(name)[groups]
        return out
    parts = [take_column(s[name], groups) for s, _, groups in taken]
    where = np.full(keys, -1, np.int64)
    back = np.concatenate([places for _, places, _ in taken]) if taken else np.empty(0, np.int64)
    where[back] = np.arange(len(back))
    together = concat_column([*parts, pa.nulls(1, example.type)])  # index -1, that is no group, becomes NULL
    return take_column(together, np.where(where < 0, len(back), where))


def _in_places(column: Column, places: Int64Array) -> Column:
    """The column with row i moved to places[i]."""
    if (places == np.arange(len(places))).all():
        return column
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    return take_column(column, order)
