"""Put rows of one key and one interval together before they are sent to their shard."""
#  in    (k, 3) |----)   (k, 4) |----)   (k, 5) |----)        SUM(v), COUNT(*) by k
#  out   (k, 12) |----)          2 x (k, 0) |----)            as many rows, the same sum

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from attrs import define

from headwater.expressions.aggregates import AGGREGATES
from headwater.kernels.slices import extreme_slices, group_slices, sum_slices
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING
from headwater.operators.aggregates.aggregate import Call
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.operators.words import fits_word, integers, to_words

_LEAST_ROWS = 1_000
_MOST_CALLS = 60
_LARGEST = 2**62
_NONE = np.empty(0, np.int64)


@define
class ReductionMeter:
    """Does it pay to put rows together? By what came of it the last times.

    On as soon as ``on`` rows become one, off below ``off``; what is off is tried again after a while.

    >>> meter = ReductionMeter()
    >>> meter.record(10_000, 9_900)
    >>> meter.is_due()
    False
    """

    on: float = 1.3
    off: float = 1.15
    patience: int = 16
    """How many times it stays off before it is tried again."""
    rows_in: int = 0
    rows_out: int = 0
    _active: bool = True
    _waiting: int = 0

    @property
    def ratio(self) -> float:
        """How many rows became one the last time that it was measured."""
        return self.rows_in / self.rows_out if self.rows_out else 1.0

    @property
    def pays(self) -> bool:
        """Did it, the last time?"""
        return self._active

    def is_due(self) -> bool:
        """Should the next rows be put together?"""
        if self._active:
            return True
        self._waiting -= 1
        return self._waiting < 0

    def record(self, rows_in: int, rows_out: int) -> None:
        if rows_in < _LEAST_ROWS:
            return  # too few to tell, and too few to matter
        self.rows_in, self.rows_out = rows_in, max(rows_out, 1)
        self._active = self.ratio >= (self.off if self._active else self.on)
        self._waiting = 0 if self._active else self.patience


class _Values(NamedTuple):
    """What one call takes of each row: where it takes part, and the values (words for sums, a column for extremes)."""

    call: Call
    valid: BoolArray
    words: Int64Array
    column: pa.Array | None


def partial_type(function: str, argument: pa.DataType | None) -> pa.DataType | None:
    """The type of the column that carries a call's part; None if rows cannot be put together for the call.

    Sums of DOUBLE are left out: how they are rounded would depend on the cut into ticks.
    """
    sees = AGGREGATES[function].sees
    if sees == "counts":
        return pa.bool_()
    if argument is None:
        return None
    if sees == "sums":
        if pa.types.is_integer(argument) and argument != pa.uint64():
            return pa.int64()
        return pa.decimal128(18, argument.scale) if pa.types.is_decimal(argument) and argument.precision <= 18 else None
    return argument if AGGREGATES[function].is_extreme and fits_word(argument) else None


class PreAggregateOperator(Operator):
    """Rows that agree in key, interval and in which values are NULL become at most two, of the same count and sums.

    One carries the sums; the others of the group, if there are more, have sums of 0 and differ in nothing, so they are one
    row of a higher weight. Counts and sums are linear, so a retraction in a later tick takes away what it must, whatever
    it was put together with. The least and the largest value stand in every row of the group: for streams that are never
    revised only.

    Stateless: the frontier passes. Whether rows are put together at all makes no difference above; it is done while it pays.
    """

    name = "pre-aggregate"

    def __init__(self, schema: Schema, keys: Sequence[str], calls: Sequence[Call]) -> None:
        assert len(calls) <= _MOST_CALLS
        self.schema = Schema((*(schema.field(k) for k in keys), *(Field(c.output, c.type) for c in calls)))
        self._keys, self._calls = tuple(keys), tuple(calls)
        self.meter = ReductionMeter()

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,)

    def describe(self) -> dict[str, object]:
        shown = [f"{c.function}({c.argument or '*'})" for c in self._calls] or ["COUNT(*)"]
        return {"keys": list(self._keys), "aggregates": shown}

    def step(self, state: Any, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        (delta,) = inputs
        values = [_values_of(call, delta) for call in self._calls]
        if len(delta) and self.meter.is_due():
            combined = self._combined(delta, values)
            if combined is not None:
                self.meter.record(len(delta), len(combined))
                return Step(combined, frontiers[0])
        return Step(self._one_by_one(delta, values), frontiers[0])

    # -- rows as they are -------------------------------------------------------------------------------------------

    def _one_by_one(self, delta: Delta, values: Sequence[_Values]) -> Delta:
        keys = [delta.column(k) for k in self._keys]
        every = np.arange(len(delta))
        parts = [_part(v, v.words, every, ~v.valid) for v in values]
        return delta.with_columns(self.schema, [*keys, *parts])

    # -- rows put together ------------------------------------------------------------------------------------------

    def _combined(self, delta: Delta, values: Sequence[_Values]) -> Delta | None:
        """None if a sum would not fit, or an extreme be taken back."""
        extremes = [v for v in values if v.column is not None]
        if extremes and (delta.weight < 0).any():
            return None
        low, high = delta.key(self._keys)
        pattern = _pattern(values, len(delta))
        group, first, weight = group_slices(low, high, delta.start, delta.end, pattern, delta.weight)
        sums: dict[str, Int64Array] = {}
        for v in values:
            if v.call.function == "SUM":
                words = np.where(v.valid, v.words, 0) if not v.valid.all() else v.words
                total, fits = sum_slices(group, len(first), delta.weight, words, _limit(v.call.type))
                if not fits:
                    return None
                sums[v.call.output] = total
        carries = np.zeros(len(first), np.bool_)
        for total in sums.values():
            carries |= total != 0
        # What carries a sum stands alone; the rest of its group is the row with sums of 0.
        one, rest = np.flatnonzero(carries | (weight != 0)), np.flatnonzero(carries & (weight != 1))
        chosen = np.concatenate([one, rest])
        new_weight = np.concatenate([np.where(carries[one], 1, weight[one]), weight[rest] - 1])
        rows = first[chosen]
        columns = [delta.column(k).take(pa.array(rows)) for k in self._keys]
        for v in values:
            none = ~v.valid[rows]
            if v.call.output in sums:
                words = np.where(np.arange(len(chosen)) < len(one), sums[v.call.output][chosen], 0)
                columns.append(_part(v, words, None, none))
            else:
                where = rows if v.column is None else self._extreme(v, group, len(first))[chosen]
                columns.append(_part(v, v.words, where, none))
        return Delta(self.schema, columns, delta.start[rows], delta.end[rows], new_weight)

    def _extreme(self, values: _Values, group: Int64Array, groups: int) -> Int64Array:
        return extreme_slices(group, groups, values.words, values.call.function == "MAX")


def _values_of(call: Call, delta: Delta) -> _Values:
    valid = np.ones(len(delta), np.bool_)
    column = None if call.argument is None else delta.column(call.argument)
    if column is not None and column.null_count:
        valid &= column.is_valid().to_numpy(zero_copy_only=False)
    if call.filter is not None:
        valid &= delta.column(call.filter).fill_null(False).to_numpy(zero_copy_only=False)
    if call.function == "COUNT" or column is None:
        return _Values(call, valid, _NONE, None)
    if call.function == "SUM":
        return _Values(call, valid, integers(column), None)
    return _Values(call, valid, to_words(column), column)


def _pattern(values: Sequence[_Values], rows: int) -> Int64Array:
    """Which calls a row takes part in, as bits; nothing where all take part everywhere."""
    partial = [v for v in values if not v.valid.all()]
    if not partial:
        return _NONE
    pattern = np.zeros(rows, np.int64)
    for bit, v in enumerate(partial):
        pattern |= v.valid.astype(np.int64) << bit
    return pattern


def _limit(type_: pa.DataType) -> int:
    return 10**18 - 1 if pa.types.is_decimal(type_) else _LARGEST


def _part(values: _Values, words: Int64Array, rows: Int64Array | None, none: BoolArray) -> pa.Array:
    """The column of a call: true where it counts, the sum, or the value of a row; NULL where it takes no part."""
    type_, mask = values.call.type, none if none.any() else None
    if values.call.function == "COUNT":
        return pa.array(np.ones(len(none), np.bool_), mask=mask)
    if values.column is not None:
        assert rows is not None
        return values.column.take(pa.array(rows, mask=mask))
    if pa.types.is_decimal(type_):
        return _decimals(words, mask, type_)
    return pa.array(words, mask=mask)


def _decimals(words: Int64Array, mask: BoolArray | None, type_: pa.DataType) -> pa.Array:
    """Unscaled numbers as a DECIMAL."""
    pairs = np.stack([words, words >> 63], axis=1)
    whole = pa.Array.from_buffers(type_, len(words), [None, pa.py_buffer(pairs)])
    return whole if mask is None else whole.take(pa.array(np.arange(len(words)), mask=mask))
