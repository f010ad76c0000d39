"""What an operator sees of an input: often less than its rows. Rows that look alike to it can be put together.

Most see of an interval only that something begins here and something ends there, not which beginning goes with which
end: then a row [s, e) is one from s on, less one from e on. Of a column that is only added up they see the sums: rows of
one instant become a few with the same count and sum. Of one whose largest value is asked, the largest at each instant.
So the pairs of n rows with m rows come down to about as many rows as there are instants, n + m.
"""
#  SUM(x)   3 |-----)   4 |--------)        7 |------…, 0 |------…         two rows begin, with the sum 7,
#                                                 -(3) |--…, -(4) |--…     and go one after the other
#  MAX(x)   3 |-----)   4 |-----)           3 |-), 4 |-----), and rows without x so that there are as many as before

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.kernels.extremes import cover_instants, extreme_rows
from headwater.kernels.group_sums import sum_floats, sum_integers, sum_wides
from headwater.kernels.slices import group_slices
from headwater.kernels.sort import sort_by_key_time
from headwater.kernels.sweep_totals import LARGE
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity, identify
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.words import decimal_words, fits_word, floats, integers, to_words

_NOTHING: frozenset[str] = frozenset()
_MOST_COUNTED = 60


@frozen
class Sight:
    """What is seen of the columns: the names of those of which each counts."""

    values: frozenset[str] = _NOTHING
    """All values."""
    sums: frozenset[str] = _NOTHING
    """How many are not NULL, and their sum."""
    counts: frozenset[str] = _NOTHING
    """How many are not NULL."""
    least: frozenset[str] = _NOTHING
    """The least, of rows that are never taken away; how many there are is not seen."""
    most: frozenset[str] = _NOTHING
    """The largest, likewise."""
    every: bool = False
    """All values of all columns, whatever their names."""

    def plus(self, other: Sight) -> Sight:
        """What two see together."""
        return Sight(
            self.values | other.values,
            self.sums | other.sums,
            self.counts | other.counts,
            self.least | other.least,
            self.most | other.most,
            self.every or other.every,
        )

    def of(self, schema: Schema) -> Sight | None:
        """With each column in one place; None where rows must stay what they are."""
        values = frozenset(schema.names) if self.every else self.values
        values |= {name for name in self.sums if not _can_be_summed(schema.field(name).type)}
        sums, extremes = self.sums - values, self.least | self.most
        if extremes & (values | self.sums | self.counts) or len(self.sums | self.counts) > _MOST_COUNTED:
            return None
        return Sight(values, sums, self.counts - values - sums, self.least, self.most)


def seen_together(sights: Iterable[Sight | None], schema: Schema) -> Sight | None:
    """What several operators see of one input; None if one of them sees rows."""
    known = list(sights)
    return reduce(Sight.plus, [sight for sight in known if sight is not None]).of(schema) if all(known) else None


def put_together(delta: Delta, sight: Sight) -> Delta:
    """Fewer rows that look the same."""
    carriers = [_extremes(delta, sight, name, largest=False) for name in sorted(sight.least)]
    carriers += [_extremes(delta, sight, name, largest=True) for name in sorted(sight.most)]
    rows = without(delta, sight.least | sight.most)
    # They come on top of all the rows, so as many without a value go.
    rows = Delta.concat(delta.schema, [rows, *(without(c, sight.least | sight.most).negate() for c in carriers)])
    return Delta.concat(delta.schema, [*_ends(rows, sight), *carriers])


def without(delta: Delta, names: frozenset[str]) -> Delta:
    """The same rows with NULL in some columns."""
    if not names:
        return delta
    columns = [
        pa.nulls(len(delta), f.type) if f.name in names else c for f, c in zip(delta.schema, delta.columns, strict=True)
    ]
    return delta.with_columns(delta.schema, columns)


# -- the largest and the least at each instant ------------------------------------------------------------------------


def _extremes(delta: Delta, sight: Sight, name: str, *, largest: bool) -> Delta:
    """One row at each instant, which has the extreme value of the column, and nothing in those that are counted."""
    rows = delta.filter(delta.column(name).is_valid().to_numpy(zero_copy_only=False))
    if len(rows) == 0:
        return rows
    key = _key(rows, sight)
    ends = np.flatnonzero(rows.end < INFINITY)
    time = np.concatenate([rows.start, rows.end[ends]])
    every, none = Identity.concat([key, key.take(ends)]), np.zeros_like(time)
    group, some, _ = group_slices(*every, time, none, none[:0], none)
    order, first = sort_by_key_time(*every.take(some), time[some])
    instants, of = time[some][order], np.empty(len(some), np.int64)
    of[order] = np.repeat(np.arange(len(first) - 1), np.diff(first))
    by_value = np.argsort(to_words(rows.column(name)))  # of all keys, for they have no instant in common
    low, high = cover_instants(first, instants, of[group[by_value]], rows.start[by_value], rows.end[by_value])
    found = extreme_rows(low, high, len(instants), largest)
    until = np.append(instants[1:], INFINITY)
    until[first[1:] - 1] = INFINITY  # only what never ends is valid after the last instant of a key
    there = np.flatnonzero(found >= 0)
    row = by_value[found[there]]
    begins = np.append(True, (row[1:] != row[:-1]) | (until[there[:-1]] != instants[there[1:]]))[: len(row)]
    last = np.append(np.flatnonzero(begins)[1:] - 1, len(row) - 1)
    chosen = rows.take(row[begins])
    one = np.ones(len(chosen), np.int64)
    alone = Delta(delta.schema, chosen.columns, instants[there[begins]], until[there[last]], one)
    return without(alone, frozenset(delta.schema.names) - sight.values - {name})


# -- beginnings and ends ----------------------------------------------------------------------------------------------


class _Groups(NamedTuple):
    """Endpoints put together: of each its group, its row and its weight; of each group the sign of all its weights."""

    group: np.ndarray
    row: Int64Array
    weight: Int64Array
    signs: Int64Array


class _Sum(NamedTuple):
    """The sum of one column in each group, times its sign: what single rows have, and how often ``large`` occurs besides.

    Decimals have two words per value.
    """

    digits: Sequence[np.ndarray]
    large: np.ndarray | None = None
    times: Int64Array | None = None


def _ends(delta: Delta, sight: Sight) -> list[Delta]:
    """For each instant, and the values that are seen, a few rows that never end, with the count and the sums of all.

    Where rows only end, all weights are negative: speculation goes as far as something begins.
    """
    single = _singles(delta, sight)
    if single.any():  # sums that have one of these have lost the others
        alone = _ends(delta.filter(single), Sight(sight.values | sight.sums, counts=sight.counts))
        return [*alone, *_ends(delta.filter(~single), sight)]
    if len(delta) == 0:
        return []
    last = np.flatnonzero(delta.end < INFINITY)
    row = np.concatenate([np.arange(len(delta)), last])
    time = np.concatenate([delta.start, delta.end[last]])
    weight = np.concatenate([delta.weight, -delta.weight[last]])
    pattern = _pattern(delta, sight)
    pattern = pattern.take(row) if len(pattern) else pattern
    group, first, total = group_slices(*_key(delta, sight).take(row), time, np.zeros_like(time), pattern, weight)
    groups = _Groups(group, row, weight, np.where(total < 0, -1, 1))
    sums = {name: _sum(delta.column(name), groups) for name in sorted(sight.sums)}
    forever = np.full(len(first), INFINITY)
    some = Delta(delta.schema, delta.take(row[first]).columns, time[first], forever, total)
    return _carrying(some, sums, groups.signs)


def _carrying(some: Delta, sums: dict[str, _Sum], signs: Int64Array) -> list[Delta]:
    """Rows of each group with these sums; ``some`` has one of each, with their number as its weight."""
    parts: list[Delta] = []
    rest = some.weight
    for k in range(max((len(sum_.digits) for sum_ in sums.values()), default=0)):
        digits = {name: sum_.digits[k] for name, sum_ in sums.items() if k < len(sum_.digits)}
        has = [digit != 0 if digit.ndim == 1 else (digit != 0).any(axis=1) for digit in digits.values()]
        weight = signs * np.logical_or.reduce(has)
        parts.append(_filled(some.with_weight(weight), sums, digits))
        rest = rest - weight
    for name, sum_ in sums.items():
        if sum_.large is not None and sum_.times is not None:
            weight = signs * sum_.times
            parts.append(_filled(some.with_weight(weight), sums, {name: sum_.large}))
            rest = rest - weight
    return [*parts, _filled(some.with_weight(rest), sums, {})]


def _filled(some: Delta, sums: Iterable[str], digits: dict[str, np.ndarray]) -> Delta:
    """The rows that have a weight, with other values where they had some: the digits, or 0."""
    chosen = np.flatnonzero(some.weight)
    rows = some.take(chosen)
    columns = list(rows.columns)
    for name in sums:
        i = rows.schema.index(name)
        shape = (len(chosen), 2) if pa.types.is_decimal(columns[i].type) else len(chosen)
        words = digits[name][chosen] if name in digits else np.zeros(shape, np.int64)
        none = ~_valid(columns[i]) if columns[i].null_count else None
        columns[i] = _column(columns[i].type, words, none)
    return rows.with_columns(rows.schema, columns)


def _column(type_: pa.DataType, words: np.ndarray, none: BoolArray | None) -> pa.Array:
    if not pa.types.is_decimal(type_):
        return pa.array(words, mask=none).cast(type_)
    whole = pa.Array.from_buffers(type_, len(words), [None, pa.py_buffer(np.ascontiguousarray(words))])
    return whole if none is None else whole.take(pa.array(np.arange(len(words)), mask=none))


def _sum(column: pa.Array, groups: _Groups) -> _Sum:
    of = (groups.group, groups.row, groups.weight, _valid(column).view(np.uint8))
    type_ = column.type
    if pa.types.is_floating(type_):
        return _Sum(sum_floats(*of, floats(column), groups.signs))
    bits = _bits(type_)
    if not fits_word(type_):
        left, large, times = sum_wides(*of, *decimal_words(column), groups.signs, bits)
        return _Sum([left], large, times)
    most = 10**type_.precision - 1 if pa.types.is_decimal(type_) else 2 ** (bits + 1) - 1
    left, large, times = sum_integers(*of, integers(column), groups.signs, bits, most)
    if pa.types.is_decimal(type_):
        left, large = (np.stack([words, words >> 63], axis=1) for words in (left, large))
    return _Sum([left], large, times)


def _bits(type_: pa.DataType) -> int:
    """Of the largest power of two in a type of whole numbers: a sum of n values has it about n times at most."""
    return (10**type_.precision - 1).bit_length() - 1 if pa.types.is_decimal(type_) else type_.bit_width - 2


def _can_be_summed(type_: pa.DataType) -> bool:
    if pa.types.is_decimal(type_):
        return type_.bit_width == 128
    return pa.types.is_signed_integer(type_) or type_ == pa.float64()


def _singles(delta: Delta, sight: Sight) -> BoolArray:
    """Rows with values that no sum of floats can have: not finite, or very large."""
    single = np.zeros(len(delta), np.bool_)
    for name in sight.sums:
        column = delta.column(name)
        if pa.types.is_floating(column.type):
            single |= ~(np.abs(floats(column)) < LARGE) & _valid(column)
    return single


def _key(delta: Delta, sight: Sight) -> Identity:
    return identify([c for f, c in zip(delta.schema, delta.columns, strict=True) if f.name in sight.values], len(delta))


def _pattern(delta: Delta, sight: Sight) -> Int64Array:
    """Which of the values that are counted a row has, as bits; nothing where it has all."""
    partial = [delta.column(name) for name in sorted(sight.sums | sight.counts) if delta.column(name).null_count]
    pattern = np.zeros(len(delta) if partial else 0, np.int64)
    for bit, column in enumerate(partial):
        pattern |= _valid(column).astype(np.int64) << bit
    return pattern


def _valid(column: pa.Array) -> BoolArray:
    return column.is_valid().to_numpy(zero_copy_only=False)
