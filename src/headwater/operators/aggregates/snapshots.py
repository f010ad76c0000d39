"""The values of many segments, for aggregates that need the values themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from headwater.kernels.extremes import (
    central_moments,
    count_rows,
    extreme_rows,
    list_rows,
    middle_values,
    most_frequent,
    rows_at,
)
from headwater.model.arrays import Int64Array
from headwater.model.order import canonical_ranks
from headwater.operators.ranking.sort_order import SortColumn, sort_words
from headwater.operators.words import fits_word, floats, integers, to_words

_MOST_PAIRS = 1 << 22  # so many (segment, row) pairs are spread out at once


def ranks_of(values: pa.Array) -> Int64Array:
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
        return self._chosen(self._values.is_valid().to_numpy(zero_copy_only=False)[self._rows])

    def _chosen(self, rows: np.ndarray) -> Snapshots:
        """Some of the rows, or all in another order."""
        return Snapshots(
            self.count, self._rows[rows], self._low[rows], self._high[rows], self._weight[rows], self._values
        )

    def ordered(self, ways: Sequence[str]) -> Snapshots:
        """Values that are STRUCTs in the order of their first fields (``DESC NULLS LAST``), then in that of all.

        Rows of different groups are in no segment together, so they need not stay apart.
        """
        fields = self._values.take(pa.array(self._rows)).flatten()
        words = [
            word
            for field, way in zip(fields, ways, strict=False)
            for word in sort_words(field, SortColumn("", way.startswith("DESC"), way.endswith("FIRST")))
        ]
        ranks = ranks_of(self._values)[self._rows]
        return self._chosen(np.lexsort((ranks, *reversed(words))))

    def last_fields(self, *, nulls: bool = True) -> Snapshots:
        """The last field of each value, in the order of the whole ones; perhaps without those that are NULL."""
        field = self._values.flatten()[-1]
        last = Snapshots(self.count, self._rows, self._low, self._high, self._weight, field)
        return last if nulls else last.without_nulls

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

    @cached_property
    def _copies(self) -> Int64Array:
        """How many values each segment has."""
        changes = np.zeros(self.count + 1, np.int64)
        np.add.at(changes, self._low, self._weight)
        np.subtract.at(changes, self._high, self._weight)
        return np.cumsum(changes)[: self.count]

    def _rows_at(self, places: Int64Array) -> Int64Array:
        """The row at a place of each segment, counted in copies from 0; -1 where there is none."""
        parts, begin = [np.empty(0, np.int64)], 0
        for offsets, rows in self.blocks():
            stop = begin + len(offsets) - 1
            parts.append(np.full(stop - begin, -1))
            rows_at(offsets, rows, self._weight, places[begin:stop], parts[-1])
            begin = stop
        return np.concatenate(parts)

    def percentiles(self, share: float, *, descending: bool) -> pa.Array:
        """Between the two values that have this share of the others before them, by how far it is from each.

        As Spark computes it; only what lies between two different values is rounded.
        """
        place = share * (self._copies - 1)
        lower, upper = np.floor(place), np.ceil(place)
        ends = [(self._copies - 1 - p if descending else p).astype(np.int64) for p in (lower, upper)]
        rows = [self._rows_at(np.maximum(end, 0)) for end in ends]
        values = floats(self._values)
        found = [values[self._rows[r]] if len(self._rows) else np.zeros(len(r)) for r in rows]
        with np.errstate(invalid="ignore"):
            between = (upper - place) * found[0] + (place - lower) * found[1]
        return pa.array(
            np.where(found[0] == found[1], found[0], np.where(upper == lower, found[0], between)), mask=rows[0] < 0
        )

    def values_at(self, share: float, *, descending: bool) -> pa.Array:
        """The first value that has this share of all up to it."""
        place = np.clip(np.ceil(share * self._copies).astype(np.int64) - 1, 0, None)
        return self._take(self._rows_at(np.maximum(self._copies - 1 - place, 0) if descending else place))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """The second, third and fourth central moment of each segment, and where there is none."""
        values = floats(self._values)[self._rows]
        parts = [np.empty((3, 0))]
        for offsets, rows in self.blocks():
            parts.append(np.zeros((3, len(offsets) - 1)))
            central_moments(offsets, rows, self._weight, values, parts[-1])
        return np.concatenate(parts, axis=1), self._counts == 0

    def bits(self, combine: np.ufunc, *, odd: bool = False) -> pa.Array:
        """All values of each segment combined bit by bit; ``odd``: of those only that occur an odd number of times."""
        values = integers(self._values)[self._rows]
        values = values * (self._weight & 1) if odd else values
        parts = [np.empty(0, np.int64)]
        for offsets, rows in self.blocks():
            some = np.flatnonzero(np.diff(offsets))
            parts.append(np.zeros(len(offsets) - 1, np.int64))
            if len(some):
                parts[-1][some] = combine.reduceat(values[rows], offsets[some])
        return pa.array(np.concatenate(parts), mask=self._counts == 0)

    def modes(self) -> pa.Array:
        """The most frequent value of each segment, the smallest of several; NULL where there is none."""
        ranks = ranks_of(self._values)[self._rows]
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
