"""Rows that are elements: inserts, adjusts, deletes and stable points, as our changelogs write them; or intervals alone.

==========  =======================================================================================
``_op``     what the row does
==========  =======================================================================================
insert      the row is valid in ``[_start, _end)``; an ``_end`` of NULL is for ever
adjust      the row that was valid in ``[_start, _end)`` is so in ``[_start, _new_end)``; NULL is for ever,
            ``_start`` takes it away
delete      the row that was valid in ``[_start, _end)`` is taken away
stable      nothing before ``_start`` changes any more
cti         exactly ``_count`` events of the stream have their sync time in ``[_start, _end)`` (CEDR A.1)
==========  =======================================================================================

Without ``_op`` a row is valid in its interval ``_weight`` times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.language.changes import COUNT, NEW_END, OP
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.schema import END, START, WEIGHT, Field
from headwater.model.time import BEGINNING, INFINITY
from headwater.sources.columns import joined, nulls, places_in, shortened, valid
from headwater.sources.conform import UnfitError, convert, first_reasons
from headwater.sources.punctuation import backward
from headwater.sources.timed import TIMESTAMP, Decoded, Timed

_OPS = ("insert", "adjust", "delete", "stable", "cti")


def has_elements(batch: pa.RecordBatch) -> bool:
    """Do the rows carry intervals?"""
    return START in batch.schema.names


def decode_elements(
    batch: pa.RecordBatch, rows: pa.RecordBatch, wrong: pa.Array | None, *, ordered: bool = True, counted: bool = False
) -> Decoded:
    """``rows`` are the declared columns of the batch, ``wrong`` says what is wrong with those."""
    read = _Read(batch, counted=counted)
    carry = read.op < _OPS.index("stable")  # the others have no row
    if wrong is not None:
        read.refuse(valid(wrong) & carry, wrong)
    if ordered:
        stable = read.good & (read.op == _OPS.index("stable"))
        read.refuse(backward(read.start, stable), "_start of a stable point is before that of an earlier one")
    good = read.good
    at = np.flatnonzero(good & carry)
    timed = _changes(rows, read, at)
    stable = read.start[good & (read.op == _OPS.index("stable"))]
    promise = int(stable.max()) if len(stable) else BEGINNING
    told = np.flatnonzero(good & (read.op == _OPS.index("cti")))
    intervals = zip(*(x[told].tolist() for x in (read.start, read.end, read.count)), strict=True)
    return Decoded(timed, read.reasons, promise, tuple(intervals), _syncs(read, at) if counted else ())


class _Read:
    """The columns of the elements, and what is wrong with them."""

    def __init__(self, batch: pa.RecordBatch, *, counted: bool) -> None:
        self.reasons: pa.Array | None = None
        self._batch, rows = batch, batch.num_rows
        self.op = self._ops()
        told = np.full(rows, OP in batch.schema.names)
        self.start = self._whole(START, np.ones(rows, np.bool_), 0)
        self.end = self._whole(END, self.op == _OPS.index("cti"), INFINITY)
        adjusts = self.op == _OPS.index("adjust")
        self.new_end = np.where(adjusts, self._whole(NEW_END, np.zeros(rows, np.bool_), INFINITY), self.start)
        self.weight = self._whole(WEIGHT, np.zeros(rows, np.bool_), 1)
        self.count = self._whole(COUNT, self.op == _OPS.index("cti"), 0)
        timeless = self.op == _OPS.index("stable")
        self.refuse(
            ((self.end <= self.start) | (self.start <= BEGINNING)) & ~timeless,
            "the interval is empty or begins before all time",
        )
        self.refuse(self.new_end < self.start, f"{NEW_END} is before {START}")
        self.refuse((self.weight < 1) & told, f"{WEIGHT} is not 1 or more, as it must be beside {OP}")
        self.refuse(self.count < 0, f"{COUNT} is negative")
        if not counted:
            undeclared = "events are counted, which is not declared (counted => true)"
            self.refuse(self.op == _OPS.index("cti"), undeclared)

    @property
    def good(self) -> BoolArray:
        return np.ones(len(self.op), np.bool_) if self.reasons is None else nulls(self.reasons)

    def refuse(self, failed: BoolArray, reason: pa.Array | str) -> None:
        if failed.any():
            self.reasons = first_reasons(self.reasons, failed, reason)

    def _ops(self) -> Int64Array:
        """The place of each operation in the list of all; rows without one are inserts."""
        if OP not in self._batch.schema.names:
            return np.zeros(self._batch.num_rows, np.int64)
        column, _ = convert(self._batch.column(OP), Field(OP, pa.string()))
        found = places_in(column, pa.array(_OPS))
        self.refuse(nulls(column), f"{OP} is NULL")
        unknown = nulls(found) & valid(column)
        if unknown.any():
            self.refuse(unknown, joined(f'{OP} is "', shortened(column), f'", which is none of {", ".join(_OPS)}'))
        return pc.fill_null(found, 0).to_numpy(zero_copy_only=False).astype(np.int64)

    def _whole(self, name: str, needed: BoolArray, default: int) -> Int64Array:
        """Instants or numbers; NULL is the default unless it is needed."""
        if name not in self._batch.schema.names:
            self.refuse(needed, f"{name} is missing")
            return np.full(self._batch.num_rows, default, np.int64)
        given = self._batch.column(name)
        column, failed = _as_whole(given, name)
        wrong = needed & nulls(given)
        if failed is not None:
            wrong = wrong | failed
        self.refuse(wrong, f"{name} is not a whole number of instants")
        filled = pc.fill_null(column, default) if column.null_count else column
        return filled.to_numpy(zero_copy_only=False)


class _Signs(NamedTuple):
    place: Int64Array
    end: Int64Array
    weight: Int64Array


def _as_whole(column: pa.Array, name: str) -> tuple[pa.Array, BoolArray | None]:
    """Numbers as they are, times in microseconds."""
    if not (pa.types.is_temporal(column.type) or pa.types.is_string(column.type)):
        return convert(column, Field(name, pa.int64()))
    try:
        numbers, failed = convert(column, Field(name, pa.int64()))
        if failed is None:
            return numbers, None
    except UnfitError:
        pass
    times, failed = convert(column, Field(name, TIMESTAMP))
    return times.cast(pa.int64()), failed


def _changes(rows: pa.RecordBatch, read: _Read, at: Int64Array) -> Timed:
    """An adjust takes a row away and brings it again with its new end; a delete takes it away."""
    takes = read.op[at] > 0
    gives = read.new_end[at] > read.start[at]
    comes = at[~takes]
    parts = (
        _Signs(comes, read.end[comes], read.weight[comes]),
        _Signs(at[takes], read.end[at[takes]], -read.weight[at[takes]]),
        _Signs(at[takes & gives], read.new_end[at[takes & gives]], read.weight[at[takes & gives]]),
    )
    place, end, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    # In the order in which they came: what takes away stands before what it gives back.
    order = np.argsort(place, kind="stable")
    place, end, weight = place[order], end[order], weight[order]
    if len(place) == rows.num_rows and not takes.any():
        return Timed(rows, read.start, end, weight)
    second = np.diff(place, prepend=-1) == 0
    return Timed(rows.take(pa.array(place)), read.start[place], end, weight, second)


def _syncs(read: _Read, at: Int64Array) -> tuple[tuple[int, int], ...]:
    """An insert counts at its start, a change at the earlier of its ends: there it is felt (CEDR A.1; ends may grow)."""
    takes = read.op[at] > 0
    sync = np.where(takes, np.minimum(read.end[at], read.new_end[at]), read.start[at])
    times, place = np.unique(sync, return_inverse=True)
    number = np.zeros(len(times), np.int64)
    np.add.at(number, place.reshape(-1), np.abs(read.weight[at]))
    return tuple(zip(times.tolist(), number.tolist(), strict=True))
