"""Aggregates that follow from running totals: which totals an aggregate needs, and its value from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.errors import StreamError
from headwater.expressions.aggregates import AGGREGATES, PAIR_TOTALS
from headwater.kernels import sweep_totals as kernel
from headwater.kernels.hash import mix_all
from headwater.model.arrays import BoolArray, Float64Array, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import identify
from headwater.operators.aggregates.pair_values import PAIR_VALUES
from headwater.operators.aggregates.totals import TotalsAt, as_array, with_special
from headwater.operators.sight import Sight
from headwater.operators.words import decimal_words, fits_word, floats, from_words, integers, to_words

_SALT = np.int64(0x5A17ED)  # so that no common value has the fingerprint 0
_NOTHING = np.int64(0x4E554C4C)  # the fingerprint of NULL

_BOTH = (0, 1)
_OF_PAIRS = (
    (kernel.COUNT, "", _BOTH),
    *((kind, "float", (part,)) for kind in (kernel.FLOAT, kernel.SQUARES) for part in _BOTH),
    (kernel.PRODUCTS, "float", _BOTH),
)
"""The totals of aggregates of two numbers, in the order in which ``pair_values`` reads them."""

Walk = tuple[Int64Array, Int64Array, Int64Array]
"""Where each instant begins among the endpoints, the first instant of each key, and the endpoints' weights."""


@frozen
class Measure:
    """One running total over the values of a column, or over rows (no argument)."""

    kind: int
    encoding: str = ""
    """The values as words: integer, wide (two words), float (bits), hash; none for a count."""
    argument: str | None = None
    filter: str | None = None
    port: int = 0
    """Which input brings the values (DISTINCT aggregates have one of their own)."""
    parts: tuple[int, ...] = ()
    """Of a STRUCT: the fields that it is of. Then only values of which no field is NULL take part."""

    @property
    def words(self) -> int:
        return kernel.WORDS[self.kind]

    @property
    def is_extreme(self) -> bool:
        return self.kind in (kernel.LEAST, kernel.MOST)

    @property
    def counted(self) -> Measure:
        """The count of the values it takes."""
        return Measure(kernel.COUNT, "", self.argument, self.filter, self.port, _BOTH if self.parts else ())

    @property
    def valid_name(self) -> str:
        """The column that says which endpoints take part; measures of the same values share it."""
        nulls = " with nulls" if self.kind == kernel.FINGERPRINT else " in pairs" if self.parts else ""
        return f"valid {self.port} {self.argument}{nulls} where {self.filter}"

    @property
    def value_names(self) -> tuple[str, ...]:
        """The columns of values, shared likewise."""
        if self.kind == kernel.COUNT:
            return ()
        name = f"{self.encoding} {self.port} {self.argument}"
        if self.parts:
            return tuple(f"{name} field {part}" for part in self.parts)
        return (name, f"{name} upper") if self.kind == kernel.WIDE else (name,)

    def takes_part(self, delta: Delta) -> np.ndarray:
        """Where the argument is not NULL (unless NULLs count) and the filter is true."""
        valid = np.ones(len(delta), np.bool_)
        if self.argument is not None and self.kind != kernel.FINGERPRINT:
            column = delta.column(self.argument)
            for part in (column, *(column.flatten() if self.parts else ())):
                if part.null_count:
                    valid &= part.is_valid().to_numpy(zero_copy_only=False)
        if self.filter is not None:
            valid &= delta.column(self.filter).fill_null(False).to_numpy(zero_copy_only=False)
        return valid.view(np.uint8)

    def values(self, delta: Delta) -> tuple[Int64Array, ...]:
        """The columns of values; NULLs are arbitrary."""
        assert self.argument is not None
        column = delta.column(self.argument)
        if self.parts:
            fields = column.flatten()
            return tuple(floats(fields[part]).view(np.int64) for part in self.parts)
        if self.encoding == "float":
            return (floats(column).view(np.int64),)
        if self.encoding == "wide":
            return decimal_words(column)
        return (integers(column) if self.encoding == "integer" else fingerprints(column),)

    def follow(
        self,
        walk: Walk,
        valid: np.ndarray,
        values: Sequence[np.ndarray],
        counts: Int64Array,
        words: Int64Array,
        changed: np.ndarray,
    ) -> None:
        """Run the total over the endpoints; ``counts`` and ``words`` begin with what each key had at the outset."""
        if self.kind == kernel.COUNT:
            kernel.follow_count(*walk, valid, words[0], changed)
        elif self.kind == kernel.FINGERPRINT:
            kernel.follow_fingerprint(*walk, valid, values[0], words[0], changed)
        elif self.kind == kernel.INTEGER:
            kernel.follow_integer(*walk, valid, values[0], words[0], words[1], changed)
        elif self.kind == kernel.WIDE:
            kernel.follow_wide(*walk, valid, values[0], values[1], words[0], words[1], words[2], changed)
        elif self.kind == kernel.FLOAT:
            x, sums = values[0].view(np.float64), words.view(np.float64)
            kernel.follow_float(*walk, valid, x, counts, sums[0], sums[1], words[2], changed)
        elif self.kind == kernel.SQUARES:
            x, sums = values[0].view(np.float64), words.view(np.float64)
            kernel.follow_squares(*walk, valid, x, counts, sums[0], sums[1], sums[2], words[3], changed)
        else:
            (x, y), sums = (column.view(np.float64) for column in values), words.view(np.float64)
            kernel.follow_products(*walk, valid, x, y, counts, sums[0], sums[1], sums[2], words[3], changed)


def arrange_ties(
    walk: Walk, valid: np.ndarray, values: list[np.ndarray]
) -> tuple[Int64Array, np.ndarray, list[np.ndarray]]:
    """Weights and values with the endpoints of each instant in the order of the values: sums round alike then."""
    bounds, _, weight = walk
    if len(values) == 1:
        weight, valid, arranged = kernel.arrange_ties(bounds, weight, valid, values[0])
        return weight, valid, [arranged]
    instant = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    order = np.lexsort((weight, *reversed(values), instant))
    return weight[order], valid[order], [column[order] for column in values]


def needed_measures(
    function: str, argument: str, type_: pa.DataType, filter_: str | None, port: int, *, staircase: bool
) -> tuple[Measure, ...]:
    """The least that the function needs to know of its argument."""
    decimal = pa.types.is_decimal(type_)
    known = AGGREGATES.get(function)
    if known is not None and known.is_extreme and staircase:
        encoding = "float" if pa.types.is_floating(type_) else "integer"
        kinds = [(kernel.MOST if known.sees == "most" else kernel.LEAST, encoding)]
    elif known is None or not known.additive:
        return (Measure(kernel.FINGERPRINT, "hash", argument, filter_, port),)
    elif known.totals == PAIR_TOTALS:
        return tuple(Measure(kind, encoding, argument, filter_, port, parts) for kind, encoding, parts in _OF_PAIRS)
    elif known.totals == 0:
        kinds = []
    elif known.totals == 2:
        kinds = [(kernel.FLOAT, "float"), (kernel.SQUARES, "float")]
    elif pa.types.is_floating(type_):
        kinds = [(kernel.FLOAT, "float")]
    else:
        kinds = [(kernel.WIDE, "wide") if decimal and not fits_word(type_) else (kernel.INTEGER, "integer")]
    kinds = [(kernel.COUNT, ""), *kinds]
    return tuple(Measure(kind, encoding, argument, filter_, port) for kind, encoding in kinds)


def seen_by(keys: Iterable[str], calls: Iterable[tuple[str, str | None, str | None]]) -> Sight:
    """What totals and staircases know of the columns; calls: function, argument and filter."""
    seen = Sight(values=frozenset(keys))
    for function, argument, filter_ in calls:
        how = {"values": frozenset(() if filter_ is None else (filter_,))}
        if argument is not None:
            place = AGGREGATES[function].sees if function in AGGREGATES else "values"
            how[place] = how.get(place, frozenset()) | {argument}
        seen = seen.plus(Sight(**how))
    return seen


def value_of(function: str, type_: pa.DataType, argument: pa.DataType, kind: int, words: TotalsAt) -> pa.Array:
    """The aggregate's column from the totals of its measures: first the count, then those of its own (``kind``)."""
    if kind in (kernel.LEAST, kernel.MOST):
        return from_words(words[1], words[0] <= 0, argument).cast(type_)
    return VALUES[function](type_, argument, kind, words)


def _count(type_: pa.DataType, argument: pa.DataType, kind: int, words: TotalsAt) -> pa.Array:
    return pa.array(words[0])


def _sum(type_: pa.DataType, argument: pa.DataType, kind: int, words: TotalsAt) -> pa.Array:
    none = words[0] <= 0
    if kind == kernel.FLOAT:
        return as_array(_float_sum(words), none, type_)
    return _integer_sum(words, none, type_, wide=kind == kernel.WIDE)


def _mean(type_: pa.DataType, argument: pa.DataType, kind: int, words: TotalsAt) -> pa.Array:
    none = words[0] <= 0
    divisor = np.where(none, 1, words[0]).astype(np.float64)
    if kind == kernel.FLOAT:
        return as_array(_float_mean(words, divisor), none, type_)
    scale = 10.0**argument.scale if pa.types.is_decimal(argument) else 1.0
    return as_array(_integer_to_float(words, wide=kind == kernel.WIDE) / (divisor * scale), none, type_)


def _integer_sum(words: TotalsAt, none: BoolArray, type_: pa.DataType, *, wide: bool) -> pa.Array:
    low, high = words[1], words[2]
    if not pa.types.is_decimal(type_):
        if (high != low >> 63).any():
            raise _overflow("BIGINT", "Cast the argument to DECIMAL(38,0) or DOUBLE.")
        return as_array(low, none, type_)
    if (wide and (words[3] != high >> 63).any()) or _exceeds(low, high, type_.precision):
        raise _overflow(f"DECIMAL({type_.precision},{type_.scale})", "Cast the argument to DOUBLE.")
    pairs = np.stack([low, high], axis=1)
    whole = pa.Array.from_buffers(type_, len(low), [None, pa.py_buffer(pairs)])
    return whole.take(pa.array(np.arange(len(low)), mask=none)) if none.any() else whole


def _overflow(type_: str, hint: str) -> StreamError:
    return StreamError("NUMERIC_OVERFLOW", f"a SUM does not fit into {type_}", hint=hint)


def _exceeds(low: Int64Array, high: Int64Array, digits: int) -> bool:
    """Has any of the numbers more digits?"""
    one = np.uint64(1)
    negative = high < 0
    size, top = low.view(np.uint64), high.view(np.uint64)
    top = np.where(negative, ~top + np.where(size == 0, one, np.uint64(0)), top)
    size = np.where(negative, ~size + one, size)
    limit, limit_top = np.uint64(10**digits % 2**64), np.uint64(10**digits // 2**64)
    return bool(((top > limit_top) | ((top == limit_top) & (size >= limit))).any())


def _spread(
    type_: pa.DataType, argument: pa.DataType, kind: int, words: TotalsAt, *, sample: bool, root: bool
) -> pa.Array:
    """Variance as (n*S2 - S1*S1) / n / (n or n-1)."""
    none = words[0] <= 0
    count = np.where(none, 1, words[0]).astype(np.float64)
    left = kernel.squared_spreads(count, *(words[w].view(np.float64) for w in (1, 2, 4, 5, 6)))
    divisor = np.where(count > 1, count - 1, 1.0) if sample else count
    spread = left / (count * divisor)
    if words.any(7):  # NaN or an infinity among the values, or a square that no float holds
        spread = np.where(words[3] & ~kernel.SCALED, np.nan, np.where(words[7] != 0, np.inf, spread))
    empty = none | (count < 2) if sample else none
    return as_array(np.sqrt(spread) if root else spread, empty, type_)


def _float_sum(words: TotalsAt) -> Float64Array:
    return with_special(words[1].view(np.float64), words, 3)


def _float_mean(words: TotalsAt, count: Float64Array) -> Float64Array:
    return with_special(words[1].view(np.float64) / count, words, 3)


def _integer_to_float(words: TotalsAt, *, wide: bool) -> Float64Array:
    low, high = words[1], words[2]
    if not wide and (high == low >> 63).all():
        return low.astype(np.float64)
    top = words[3] if wide else high >> 63
    upper = np.where(top == high >> 63, high.astype(np.float64), top * 2.0**64 + high.view(np.uint64))
    return np.where((high == low >> 63) & (top == high >> 63), low, upper * 2.0**64 + low.view(np.uint64))


VALUES: dict[str, Callable[[pa.DataType, pa.DataType, int, TotalsAt], pa.Array]] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _mean,
    "VAR_SAMP": partial(_spread, sample=True, root=False),
    "VAR_POP": partial(_spread, sample=False, root=False),
    "STDDEV_SAMP": partial(_spread, sample=True, root=True),
    "STDDEV_POP": partial(_spread, sample=False, root=True),
    **PAIR_VALUES,
}
"""The additive aggregates: from the types of result and argument, the kind of the last total, and the totals."""


def fingerprints(column: pa.Array) -> Int64Array:
    """Words by which multisets of values are told apart."""
    if not fits_word(column.type):
        return identify([column], len(column)).low.view(np.int64)
    words = mix_all((to_words(column) ^ _SALT).view(np.uint64)).view(np.int64)
    return np.where(column.is_null().to_numpy(zero_copy_only=False), _NOTHING, words) if column.null_count else words
