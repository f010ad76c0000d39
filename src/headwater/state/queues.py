"""A first-in-first-out queue of rows per key, as a log-structured set of segments sorted by key hash.

Rows enter at the back and are numbered 1, 2, 3, …; how many have left at the front follows from how many have entered.
So a tick writes only the rows that enter, whatever the queues hold, and those that have left fall out when segments
merge: neighbours do while the older one is not several times the newer. A key's count is that of its newest entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from headwater.kernels.directory import build_directory
from headwater.kernels.groups import group_rows
from headwater.kernels.queues import copy_joined, find_entries, joined_rows, locate_rows, merge_queues
from headwater.model.arrays import Int64Array, view
from headwater.model.identity import Identity
from headwater.state.columns import Column, Columns, concat_column, take_column, take_either
from headwater.state.manifest import Route, Scalars, StateLayout, rows_by_shard
from headwater.state.store import Segment, Store

_RATIO = 4
_ROW, _SCALAR = "row.", "scalar."


class Queued(NamedTuple):
    """For each key asked for: how many rows have entered, and its entry in each segment (-1: none)."""

    count: Int64Array
    entries: list[Int64Array]


class Located(NamedTuple):
    """Rows of keys asked for, key after key: the segment that has each, and where."""

    offsets: Int64Array
    segment: Int64Array
    row: Int64Array


class KeyQueues(StateLayout):
    """Queues of rows with an instant and columns of the given types.

    ``gone(counts)`` says how many rows have left when so many have entered; it never falls.
    """

    scalars: ClassVar[Scalars] = {"rows": None, "keys": None}

    def __init__(
        self, store: Store, types: Mapping[str, pa.DataType], gone: Callable[[Int64Array], Int64Array]
    ) -> None:
        self._store, self._types, self._gone = store, types, gone
        self._segments: list[Segment] = []  # oldest first; ``most`` is the number of rows
        self.rows = 0
        self.keys = 0

    def clear(self) -> None:
        self._segments, self.rows, self.keys = [], 0, 0

    # -- looking ----------------------------------------------------------------------------------------------------

    def find(self, key: Identity) -> Queued:
        """What is known of the keys. Keys in sorted order probe fastest."""
        count = np.zeros(len(key.low), np.int64)
        entries: list[Int64Array] = []
        for segment in self._segments:
            columns, entry = segment.columns, np.empty(len(key.low), np.int64)
            find_entries(*columns.key, columns["directory"], columns["count"], *key, entry, count)
            entries.append(entry)
        return Queued(count, entries)

    def locate(self, queued: Queued, first: Int64Array, last: Int64Array) -> Located:
        """The rows with numbers first to last of each key; none of them may have left."""
        sizes = np.maximum(last - first + 1, 0)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        segment, row = np.full(offsets[-1], -1, np.int64), np.empty(offsets[-1], np.int64)
        if offsets[-1]:
            for i, (stored, entry) in enumerate(zip(self._segments, queued.entries, strict=True)):
                locate_rows(i, entry, stored["offsets"], stored["count"], first, last, offsets, segment, row)
        return Located(offsets, segment, row)

    def times(self, located: Located) -> Int64Array:
        """The instants of the located rows."""
        out = np.empty(len(located.row), np.int64)
        for i, segment in enumerate(self._segments):
            here = np.flatnonzero(located.segment == i)
            out[here] = segment.array("row.time")[located.row[here]]
        return out

    def take(self, located: Located, chosen: Int64Array) -> tuple[Int64Array, list[Columns]]:
        """The columns of the chosen located rows, a part per segment, and in which order those come."""
        order: list[Int64Array] = []
        parts: list[Columns] = []
        origin, row = located.segment[chosen], located.row[chosen]
        for i, segment in enumerate(self._segments):
            here = np.flatnonzero(origin == i)
            if len(here):
                order.append(here)
                rows = row[here]
                taken = {n: to_arrow(take_column(segment[_ROW + n], rows), t) for n, t in self._types.items()}
                parts.append(Columns(taken))
        return np.concatenate(order) if order else np.empty(0, np.int64), parts

    # -- changing ---------------------------------------------------------------------------------------------------

    def push(
        self,
        key: Identity,
        queued: Queued,
        count: Int64Array,
        offsets: Int64Array,
        time: Int64Array,
        columns: Columns,
        scalars: Columns,
    ) -> None:
        """Rows enter at the back of the keys' queues (sorted, distinct), whose counts become these.

        Rows that have left already may be left out, the oldest first. ``scalars``: columns of the keys themselves.
        """
        if len(key.low) == 0:
            return
        self.keys += int(np.count_nonzero(queued.count == 0))
        self.rows += int((count - self._gone(count)).sum() - (queued.count - self._gone(queued.count)).sum())
        whole = {_ROW + n: to_numpy(c) for n, c in columns.items()} | {_SCALAR + n: c for n, c in scalars.items()}
        whole |= {"count": count, "offsets": offsets, "row.time": time}
        self._segments.append(self._write(Columns.under(key, whole)))
        while len(self._segments) > 1 and _size(self._segments[-2]) < _RATIO * _size(self._segments[-1]):
            self._merge_last()

    def _write(self, columns: Columns) -> Segment:
        low = columns.key.low
        packed = columns | {"directory": build_directory(low)}
        return self._store.write(packed, rows=len(low), most=int(columns["offsets"][-1]))

    def _merge_last(self) -> None:
        """The two newest segments become one."""
        bottom = len(self._segments) == 2
        a, b = (segment.columns for segment in self._segments[-2:])
        left = [columns["count"] - self._gone(columns.array("count")) for columns in (a, b)]
        entries, *plan = merge_queues(*a.key, a["offsets"], left[0], *b.key, b["offsets"], left[1], bottom)
        merged = {"offsets": plan[0]}
        rows: Int64Array | None = None
        for name in a:
            x, y = a[name], b[name]
            if name in ("directory", "offsets"):
                continue
            if not name.startswith(_ROW):
                merged[name] = take_either(x, y, entries)
            elif isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
                merged[name] = copy_joined(x, y, *plan)
            else:
                rows = joined_rows(a["offsets"][-1], *plan) if rows is None else rows
                type_ = self._types[name.removeprefix(_ROW)]
                merged[name] = concat_column([to_arrow(x, type_), to_arrow(y, type_)]).take(pa.array(rows))
        self._segments[-2:] = [self._write(Columns(merged))] if len(entries) else []

    # -- the end of time --------------------------------------------------------------------------------------------

    def live(self) -> tuple[Identity, Int64Array, Int64Array, Columns, Columns]:
        """(keys, counts, offsets, columns with ``time``, scalars) of all queues; rows that have left may come first."""
        while len(self._segments) > 1:
            self._merge_last()
        if not self._segments:
            nothing = np.empty(0, np.int64)
            return Identity.empty(), nothing, np.zeros(1, np.int64), Columns(), Columns()
        columns = self._segments[0].columns
        rows = {n: to_arrow(columns[_ROW + n], t) for n, t in self._types.items()} | {"time": columns["row.time"]}
        scalars = Columns({n.removeprefix(_SCALAR): c for n, c in columns.items() if n.startswith(_SCALAR)})
        return columns.key, columns.array("count"), columns.array("offsets"), Columns(rows), scalars

    def move_to(self, targets: Sequence[Self], route: Route) -> None:
        key, count, offsets, columns, scalars = self.live()
        for shard, chosen in rows_by_shard(route(Columns({"low": key.low}))):
            rows = columns.take(group_rows(offsets, chosen))
            places = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(offsets)[chosen])])
            new = Queued(np.zeros(len(chosen), np.int64), [])
            payload = rows.without("time"), scalars.take(chosen)
            targets[shard].push(key.take(chosen), new, count[chosen], places, rows.time, *payload)


def _size(segment: Segment) -> int:
    return segment.rows + segment.most


def to_numpy(column: pa.Array) -> Column:
    """Fixed-width values without NULLs as a numpy array, without a copy; other columns as they are."""
    type_ = column.type
    plain = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_temporal(type_)
    if not plain or column.null_count or pa.types.is_float16(type_) or pa.types.is_interval(type_):
        return column
    dtype = f"{'f' if pa.types.is_floating(type_) else 'i'}{type_.bit_width // 8}"
    return view(column.buffers()[1], dtype)[column.offset : column.offset + len(column)]


def to_arrow(column: Column, type_: pa.DataType) -> pa.Array:
    """The opposite of ``to_numpy``."""
    return pa.array(column).view(type_) if isinstance(column, np.ndarray) else column
