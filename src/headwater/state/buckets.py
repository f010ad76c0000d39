"""Rows that are found by key and forgotten by time: a handful of buckets by expiry, each a few segments sorted by key hash.

A segment is probed through its radix directory in O(1), so a probe costs O(keys asked for + rows found) at any size of the
state. Inside a bucket neighbours merge geometrically; a bucket is dropped whole when its last row has expired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from headwater.kernels.directory import build_directory, find_first
from headwater.kernels.hash import hash_words
from headwater.kernels.join import match_keys, merge_keys, sum_equal_rows
from headwater.kernels.sort import sort_by_key, sort_by_key_time
from headwater.model.arrays import BoolArray, Int64Array, UInt64Array
from headwater.model.identity import Identity, identify
from headwater.model.time import BEGINNING, INFINITY
from headwater.state.columns import (
    Column,
    Columns,
    is_constant,
    take_either,
)
from headwater.state.manifest import Route, SavedState, Scalars, State, StateLayout, rows_by_shard
from headwater.state.store import Segment, Store

_RATIO = 4  # merge while the older segment is less than so many times the newer
_SPAN = 4  # so many buckets cover a typical lifetime: each is one more probe, but fewer keep more expired rows
_FAR = 2 * _SPAN  # lifetimes of more buckets than this count as far, and get wider buckets
_MOST_BUCKETS = 8
_IDLE = 4  # a bucket that so many appends have passed by is made one segment
_SAMPLE = 256
_LEAST_ROOM, _MOST_ROOM = 1024, 1 << 20


class Match(NamedTuple):
    """Pairs of a query row and a row of one segment."""

    segment: Segment
    query: Int64Array
    row: Int64Array


class _Bucket:
    """Segments (oldest first) of rows that expire in [least, most]."""

    __slots__ = ("idle", "least", "most", "segments")

    def __init__(self, least: int, most: int, segments: list[Segment]) -> None:
        self.least, self.most, self.segments = least, most, segments
        self.idle = 0

    @property
    def rows(self) -> int:
        return sum(s.rows for s in self.segments)

    @property
    def last(self) -> int:
        return max((s.most for s in self.segments), default=BEGINNING)


class ExpiryBuckets(StateLayout):
    """Rows under a key, until their expiry has passed.

    ``constants`` names columns that are likely to hold one value in a whole segment and are then kept as that one value.
    ``identity`` names the columns by which two rows of a key with the same expiry are the same: when segments merge, their
    ``weight`` is summed, and what cancels is gone. None: rows are only ever added.
    """

    scalars: ClassVar[Scalars] = {"frontier": min, "_width": max, "_earliest": min}

    def __init__(
        self,
        store: Store,
        *,
        constants: Sequence[str] = (),
        identity: Sequence[str] | None = None,
        weight: str = "weight",
    ) -> None:
        self._store, self._constants = store, tuple(constants)
        self._identity, self._weight = identity, weight
        self._buckets: list[_Bucket] = []
        self._width = 0
        self._earliest = INFINITY
        self.frontier = BEGINNING

    def cancel_by(self, identity: Sequence[str] | None) -> None:
        """From now on rows that are the same in these columns take each other away."""
        self._identity = identity

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return sum(bucket.rows for bucket in self._buckets)

    def segments(self) -> Iterator[Segment]:
        return (segment for bucket in self._buckets for segment in bucket.segments)

    def all(self) -> Columns:
        """Every row with every column; none when there is no row."""
        parts = [segment.columns.without("directory") for segment in self.segments()]
        return Columns.concat(parts) if parts else Columns()

    def matches(self, key: Identity) -> Iterator[Match]:
        """Pairs of equal keys, in blocks of bounded size. Keys in sorted order probe fastest."""
        for segment in self.segments():
            stored = segment.columns.key
            which, first = find_first(key.low, stored.low, segment["directory"])
            room = min(max(_LEAST_ROOM, 2 * len(which)), _MOST_ROOM)
            at, offset = 0, 0
            while at < len(which):
                query, row = np.empty(room, np.int64), np.empty(room, np.int64)
                at, offset, found = match_keys(which, first, *key, *stored, at, offset, query, row)
                yield Match(segment, query[:found], row[:found])

    def probe(self, key: Identity, names: Sequence[str] | None = None) -> tuple[Int64Array, Columns]:
        """For every stored row of a key asked for: which of the keys it was, and the row's columns (or the named ones).

        Rows that have expired may still be among them. No row: no columns either.
        """
        queries: list[Int64Array] = []
        parts: list[Columns] = []
        for segment, query, row in self.matches(key):
            queries.append(query)
            columns = segment.columns.without("directory") if names is None else segment.columns.only(names)
            parts.append(columns.take(row))
        return (np.concatenate(queries), Columns.concat(parts)) if parts else (np.empty(0, np.int64), Columns())

    # -- changing ---------------------------------------------------------------------------------------------------

    def append(
        self, key: Identity, expiry: Int64Array, columns: Mapping[str, Column], *, order: Int64Array | None = None
    ) -> None:
        """Add rows; the columns ``low``, ``high`` (of wide keys) and ``expiry`` are added to the others.

        The rows come in any order; ``order`` is the permutation that sorts them by key, for a caller who knows it.
        """
        if len(expiry) == 0:
            return
        order = sort_by_key(*key) if order is None else order
        whole = Columns.under(key, {**columns, "expiry": expiry})
        for bucket in self._buckets:
            bucket.idle += 1
        live = expiry > self.frontier
        for bucket, mask in self._place(expiry, live):
            self._add(bucket, whole.take(order[mask[order]]))
        self._limit_buckets()
        self._compact_idle()
        self._buckets = [bucket for bucket in self._buckets if bucket.segments]  # all of a bucket may have cancelled

    def expire(self, frontier: int) -> None:
        """Rows with expiry <= frontier are not needed any more; buckets of nothing else are dropped."""
        self.frontier = max(self.frontier, frontier)
        self._buckets = [b for b in self._buckets if b.last > self.frontier]

    # -- which bucket -----------------------------------------------------------------------------------------------

    def _place(self, expiry: Int64Array, left: BoolArray) -> Iterator[tuple[_Bucket, BoolArray]]:
        """The buckets that take the rows that are left, and which rows."""
        endless = left & (expiry == INFINITY)
        if endless.any():
            yield self._bucket(INFINITY, INFINITY), endless
            left = left & ~endless
        finite = expiry[left]
        if len(finite) == 0:
            return
        least, most = int(finite.min()), int(finite.max())
        origin, width = self._measure(finite, least), self._width
        while True:
            while origin + _FAR * width < least:
                width *= 2
            horizon = min(most, origin + _FAR * width)  # what lives longer gets wider buckets
            for bucket in self._covering(least, horizon, width):
                mask = left & (expiry >= bucket.least) & (expiry <= min(bucket.most, horizon))
                if mask.any():
                    yield bucket, mask
                    left = left & ~mask
            if horizon == most:
                return
            least = int(expiry[left].min())

    def _measure(self, expiry: Int64Array, least: int) -> int:
        """Adapt the width of new buckets to the lifetimes seen; returns the instant from which these are counted."""
        self._earliest = min(self._earliest, least)
        origin = self._earliest if self.frontier == BEGINNING else self.frontier
        sample = np.sort(expiry[:: max(1, len(expiry) // _SAMPLE)])
        typical = max(int(sample[len(sample) * 9 // 10]) - origin, 1)
        if not self._width * _SPAN <= 2 * typical <= 3 * self._width * _SPAN:
            self._width = max(1, typical // _SPAN)
        return origin

    def _covering(self, least: int, most: int, width: int) -> Iterator[_Bucket]:
        """Buckets of about this width that together take [least, most]: those there are, then new ones."""
        known = [b for b in self._buckets if b.most - b.least < 2 * width and b.most >= least and b.least <= most]
        yield from sorted(known, key=lambda b: b.most - b.least)
        for index in range(least // width, most // width + 1):
            if not any(b.least <= index * width and (index + 1) * width - 1 <= b.most for b in known):
                yield self._bucket(index * width, (index + 1) * width - 1)

    def _bucket(self, least: int, most: int) -> _Bucket:
        for bucket in self._buckets:
            if bucket.least == least and bucket.most == most:
                return bucket
        self._buckets.append(_Bucket(least, most, []))
        return self._buckets[-1]

    def _limit_buckets(self) -> None:
        """Join neighbours where that keeps the fewest rows for the shortest time longer than needed."""
        finite = sorted((b for b in self._buckets if b.segments and b.least != INFINITY), key=lambda b: b.last)
        while len(finite) > _MOST_BUCKETS:
            waste = [a.rows * (b.last - a.last) for a, b in pairwise(finite)]
            at = waste.index(min(waste))
            a, b = finite[at : at + 2]
            segments = sorted(a.segments + b.segments, key=lambda s: -s.rows)
            joined = _Bucket(min(a.least, b.least), max(a.most, b.most), segments)
            self._settle(joined)
            finite[at : at + 2] = [joined]
            self._buckets = [c for c in self._buckets if c is not a and c is not b] + [joined]

    # -- segments ---------------------------------------------------------------------------------------------------

    def _add(self, bucket: _Bucket, columns: Columns) -> None:
        """One more segment (rows sorted by key), then merge neighbours of like size."""
        bucket.idle = 0
        columns = self._cancel(columns)
        if columns.rows:
            bucket.segments.append(self._write(columns))
        self._settle(bucket)

    def _settle(self, bucket: _Bucket) -> None:
        """Merge neighbours of like size, the newest first."""
        at = len(bucket.segments) - 1
        while at > 0:
            if bucket.segments[at - 1].rows < _RATIO * bucket.segments[at].rows:
                self._merge(bucket, at)
                at = len(bucket.segments)
            at -= 1

    def _compact_idle(self) -> None:
        """One bucket that does not grow any more becomes one segment, unless little would be merged into much."""
        for bucket in self._buckets:
            sizes = [s.rows for s in bucket.segments]
            if bucket.idle >= _IDLE and len(sizes) > 1 and _RATIO**2 * sum(sizes[1:]) >= sizes[0]:
                while len(bucket.segments) > 1:
                    self._merge(bucket, len(bucket.segments) - 1)
                break

    def _merge(self, bucket: _Bucket, at: int) -> None:
        """Segment ``at`` and the one before it become one, without what has expired."""
        a, b = (segment.columns for segment in bucket.segments[at - 1 : at + 1])
        until = np.ascontiguousarray(a["expiry"]), np.ascontiguousarray(b["expiry"])
        order = merge_keys(*a.key, until[0], *b.key, until[1], self.frontier)
        merged = self._cancel(Columns({n: _merge_column(a[n], b[n], order) for n in a if n != "directory"}))
        bucket.segments[at - 1 : at + 1] = [self._write(merged)] if merged.rows else []

    def _write(self, columns: Columns) -> Segment:
        low, expiry = columns.key.low, columns.array("expiry")
        least, most = int(expiry.min()), int(expiry.max())
        packed = columns.compress([*self._constants, *(["expiry"] if least == most else [])])
        return self._store.write(packed | {"directory": build_directory(low)}, rows=len(low), least=least, most=most)

    def _cancel(self, columns: Columns) -> Columns:
        """Without the rows that take each other away (and still sorted by key)."""
        if self._identity is None:
            return columns
        weight = np.ascontiguousarray(columns[self._weight])
        if len(weight) == 0 or weight.min() >= 0:
            return columns
        print_1, print_2 = _fingerprint([columns[n] for n in ("expiry", *self._identity)], len(weight))
        order, _ = sort_by_key_time(*columns.key, print_1.view(np.int64))
        kept, weight = sum_equal_rows(order, *columns.key, print_1, print_2, weight)
        return columns.take(kept) | {self._weight: weight}

    # -- keeping ----------------------------------------------------------------------------------------------------

    def to_manifest(self) -> SavedState:
        """Names and ranges of everything kept."""
        buckets = [
            {"least": b.least, "most": b.most, "idle": b.idle, "segments": [s.to_manifest() for s in b.segments]}
            for b in self._buckets
        ]
        return State.to_manifest(self) | {"buckets": buckets}

    def from_manifest(self, manifest: SavedState) -> None:
        """Become what ``to_manifest`` described, with the segments of this store."""
        State.from_manifest(self, manifest)
        self._buckets = []
        for described in manifest["buckets"]:
            segments = [self._store.open(s) for s in described["segments"]]
            bucket = _Bucket(described["least"], described["most"], segments)
            bucket.idle = described["idle"]
            self._buckets.append(bucket)

    def move_to(self, targets: Sequence[Self], route: Route) -> None:
        for segment in self.segments():
            columns = segment.columns.without("directory").where(segment["expiry"] > self.frontier)
            for shard, rows in rows_by_shard(route(columns)):
                part = columns.take(rows)  # still sorted by key
                rest = part.without("low", "high", "expiry")
                targets[shard].append(part.key, part.array("expiry"), rest, order=np.arange(len(rows)))


def _merge_column(a: Column, b: Column, order: Int64Array) -> Column:
    if is_constant(a) and is_constant(b) and a[0] == b[0]:
        return np.broadcast_to(a[:1], len(order))
    return take_either(a, b, order)


def _fingerprint(columns: Sequence[Column], rows: int) -> tuple[UInt64Array, UInt64Array]:
    """128 bits by which rows are told apart."""
    print_1, print_2 = np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)
    for column in columns:
        if isinstance(column, np.ndarray):
            words = np.ascontiguousarray(column) if column.itemsize == 8 else column.astype(np.int64)
            hash_words(words.view(np.uint64), print_1, print_2)
    payload = identify([c for c in columns if isinstance(c, pa.Array)], rows)
    for lane in payload:
        if len(lane):
            hash_words(lane, print_1, print_2)
    return print_1, print_2
