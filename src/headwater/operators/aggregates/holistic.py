"""Aggregates that need the rows themselves, also those of users.

A fingerprint among a group's totals cuts its segments where the multiset of values changes, so one instant of a segment
stands for all of it. The rows of the groups that have segments are looked up, and each becomes the range of segments in
which it is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.expressions.aggregates import AGGREGATES
from headwater.kernels.extremes import (
    count_rows,
    cover_instants,
    extreme_rows,
    list_rows,
    middle_values,
    most_frequent,
    net_ranges,
)
from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.model.order import canonical_ranks
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.aggregates.user_aggregates import UserAggregate
from headwater.operators.sweeps.endpoints import Segments
from headwater.operators.words import fits_word, floats, to_words
from headwater.state.buckets import ExpiryBuckets
from headwater.state.columns import concat_column, take_column
from headwater.state.manifest import Scalars, State, agreed
from headwater.state.store import Store

_MOST_PAIRS = 1 << 22  # so many (segment, row) pairs are spread out at once
_SEPARATOR = ""  # of LISTAGG, as in Spark


class HolisticRows(State):
    """The rows of each measure that needs them, by group, until nothing that is still to come can show them."""

    # The instants that segments are looked at depend on it, so keys that have come unequally far cannot be in one shard.
    scalars: ClassVar[Scalars] = {"_frontier": agreed}
    layouts = ("_kept",)

    def __init__(self, store: Store, measures: Sequence[int]) -> None:
        self._frontier = BEGINNING
        self._kept = {
            measure: ExpiryBuckets(store, constants=("weight",), identity=("start", "value")) for measure in measures
        }

    @property
    def rows(self) -> int:
        return sum(rows.rows for rows in self._kept.values())

    def take_over(self, old: HolisticRows, measures: Mapping[int, int]) -> None:
        """Go on with the rows of another state: by measure, the one that it was there."""
        self._frontier = old._frontier
        self._kept |= {now: old._kept[was] for now, was in measures.items() if was in old._kept}

    def append(
        self, measure: int, key: Identity, start: Int64Array, end: Int64Array, weight: Int64Array, values: pa.Array
    ) -> None:
        self._kept[measure].append(key, end, {"start": start, "weight": weight, "value": values})

    def expire(self, frontier: int) -> None:
        """A segment that is open at the frontier may show rows that end there; those that ended earlier may go."""
        for rows in self._kept.values():
            self._frontier = frontier
            if frontier > BEGINNING:
                rows.expire(frontier if frontier == INFINITY else frontier - 1)

    def snapshots(
        self, measure: int, type_: pa.DataType, key: Identity, segments: Segments, frontier: int
    ) -> Snapshots:
        """The values of each segment; ``frontier``: rows that ended before it may be gone."""
        touched = np.concatenate([[True], segments.key[1:] != segments.key[:-1]])[: len(segments.key)]
        first = np.append(np.flatnonzero(touched), len(segments.key))
        asked = key.take(segments.key[first[:-1]])
        # Any instant of a segment will do. Not the first: its rows may have ended, and others of like value have followed.
        # What is open at the frontier is known to hold just before it.
        instants = np.minimum(np.maximum(segments.start, max(frontier, BEGINNING + 1) - 1), segments.end - 1)
        parts: list[tuple[np.ndarray | pa.Array, ...]] = []
        for segment, query, row in self._kept[measure].matches(asked):
            low, high = cover_instants(
                first, instants, query, segment.array("start")[row], segment.array("expiry")[row]
            )
            valid = np.flatnonzero(low < high)
            if len(valid):
                values = take_column(segment["value"], row[valid])
                parts.append((query[valid], low[valid], high[valid], segment.array("weight")[row[valid]], values))
        if not parts:
            nothing = np.empty(0, np.int64)
            return Snapshots(len(instants), nothing, nothing, nothing, nothing, pa.array([], type_))
        group, *columns = (concat_column(column) for column in zip(*parts, strict=True))
        return Snapshots(len(instants), *_arrange(asked.take(group), *columns))


def _arrange(
    key: Identity, low: Int64Array, high: Int64Array, weight: Int64Array, values: pa.Array
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, pa.Array]:
    """Sort by (group, value), and where some rows take others away keep only what is left."""
    ranks = _ranks(values)
    order, groups = sort_by_key_time(key.low, key.high, ranks)
    if weight.min() < 0:
        return *net_ranges(order, groups, ranks, low, high, weight), values
    return order, low[order], high[order], weight[order], values


def _ranks(values: pa.Array) -> Int64Array:
    """Numbers in the order of the values, equal where they are."""
    return to_words(values) if fits_word(values.type) and values.null_count == 0 else canonical_ranks([values])


class Snapshots:
    """The values of many segments: rows in the order of (group, value), each with the range of segments that show it."""

    def __init__(
        self, count: int, rows: Int64Array, low: Int64Array, high: Int64Array, weight: Int64Array, values: pa.Array
    ) -> None:
        self.count = count
        self._rows, self._values = rows, values  # row i has the value values[rows[i]]
        self._low, self._high, self._weight = low, high, weight

    @property
    def type(self) -> pa.DataType:
        return self._values.type

    @cached_property
    def without_nulls(self) -> Snapshots:
        if self._values.null_count == 0:
            return self
        kept = self._values.is_valid().to_numpy(zero_copy_only=False)[self._rows]
        return Snapshots(
            self.count, self._rows[kept], self._low[kept], self._high[kept], self._weight[kept], self._values
        )

    @cached_property
    def _counts(self) -> Int64Array:
        return count_rows(self._low, self._high, self.count)

    def _take(self, rows: Int64Array) -> pa.Array:
        """The values of some rows; NULL for row -1."""
        none = rows < 0
        return self._values.take(pa.array(self._rows[rows] if len(self._rows) else rows, mask=none))

    def ranges(self) -> tuple[Int64Array, Int64Array, Int64Array, pa.Array]:
        """Every row: the range [low, high) of segments in which it is valid, how many copies, and its value."""
        return self._low, self._high, self._weight, self._values.take(pa.array(self._rows))

    def extremes(self, *, largest: bool) -> pa.Array:
        """The smallest or largest value of each segment; NULL where there is none."""
        return self._take(extreme_rows(self._low, self._high, self.count, largest))

    def blocks(self) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Offsets (one per segment and the end) and rows of the segments' lists, some segments at a time."""
        sums = np.cumsum(self._counts)
        begin = 0
        while begin < self.count:
            before = sums[begin - 1] if begin else 0
            stop = max(int(np.searchsorted(sums, before + _MOST_PAIRS, side="right")), begin + 1)
            yield list_rows(self._low, self._high, self._counts, begin, stop)
            begin = stop

    def medians(self) -> pa.Array:
        values = floats(self._values)[self._rows]
        parts = []
        for offsets, rows in self.blocks():
            middle = np.zeros(len(offsets) - 1)
            middle_values(offsets, rows, self._weight, values, middle)
            parts.append(middle)
        found = np.concatenate(parts) if parts else np.empty(0)
        return pa.array(found, mask=self._counts == 0)

    def modes(self) -> pa.Array:
        """The most frequent value of each segment, the smallest of several; NULL where there is none."""
        ranks = _ranks(self._values)[self._rows]
        parts = [np.empty(0, np.int64)]
        for offsets, rows in self.blocks():
            parts.append(np.full(len(offsets) - 1, -1))
            most_frequent(offsets, rows, self._weight, ranks, parts[-1])
        return self._take(np.concatenate(parts))

    def lists(self, type_: pa.DataType) -> pa.Array:
        """All values of each segment, ascending, each as often as it occurs; NULL where there is none."""
        parts = [self._list(offsets, rows).cast(type_) for offsets, rows in self.blocks()]
        return pa.concat_arrays(parts) if parts else pa.array([], type_)

    def _list(self, offsets: Int64Array, rows: Int64Array) -> pa.Array:
        copies = self._weight[rows]
        if (copies != 1).any():
            offsets = np.concatenate([[0], np.cumsum(copies)])[offsets]
            rows = np.repeat(rows, copies)
        none = pa.array(offsets[1:] == offsets[:-1])
        return pa.LargeListArray.from_arrays(pa.array(offsets), self._take(rows), mask=none)


def evaluate(
    function: str | UserAggregate, type_: pa.DataType, snapshots: Snapshots, parameters: tuple[object, ...]
) -> pa.Array:
    """The aggregate of each segment."""
    if isinstance(function, UserAggregate):
        values = snapshots.without_nulls
        if function.inverse is not None:
            return function.column(lambda: function.follow(*values.ranges(), values.count)).cast(type_)
        lists = values.lists(pa.large_list(values.type))
        return function.column(lambda: function.evaluate(lists)).cast(type_)
    values = snapshots if AGGREGATES[function].nulls else snapshots.without_nulls
    return VALUES[function](values, type_, parameters).cast(type_)


def _joined(values: Snapshots, type_: pa.DataType, parameters: tuple[object, ...]) -> pa.Array:
    separator = str(parameters[0]) if parameters else _SEPARATOR
    lists = values.lists(pa.large_list(pa.large_string()))
    return pc.call_function("binary_join", [lists, pa.scalar(separator, pa.large_string())])


VALUES: dict[str, Callable[[Snapshots, pa.DataType, tuple[object, ...]], pa.Array]] = {
    "MIN": lambda values, type_, parameters: values.extremes(largest=False),
    "MAX": lambda values, type_, parameters: values.extremes(largest=True),
    "MEDIAN": lambda values, type_, parameters: values.medians(),
    "MODE": lambda values, type_, parameters: values.modes(),
    "ARRAY_AGG": lambda values, type_, parameters: values.lists(type_),
    "LISTAGG": _joined,
}
"""The aggregates of the values themselves."""
