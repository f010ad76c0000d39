"""Values as int64 words in the order of the values, where they fit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.arrays import BoolArray, Float64Array, Int64Array, int64_values, view

_MOST_DIGITS = 18  # decimals up to here fit
_ALL_BUT_SIGN = np.int64(2**63 - 1)


def fits_word(type_: pa.DataType) -> bool:
    """Do all values of the type fit one int64 word, in their order?"""
    if pa.types.is_decimal(type_):
        return type_.precision <= _MOST_DIGITS
    if pa.types.is_integer(type_):
        return type_ != pa.uint64()
    return (
        pa.types.is_floating(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_timestamp(type_)
    )


def floats(column: pa.Array) -> Float64Array:
    """Numbers of any kind as float64; NULLs are arbitrary."""
    column = column.cast(pa.float64(), safe=False)
    column = pc.fill_null(column, 0.0) if column.null_count else column
    return view(column.buffers()[1], np.float64)[column.offset : column.offset + len(column)]


def decimal_words(column: pa.Array) -> tuple[Int64Array, Int64Array]:
    """The lower and the upper words of unscaled decimals; NULLs are arbitrary."""
    column = column.cast(pa.decimal128(38, column.type.scale))
    words = view(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    return np.ascontiguousarray(words[0::2]), np.ascontiguousarray(words[1::2])


def integers(column: pa.Array) -> Int64Array:
    """Whole numbers, dates, times, truth values and short unscaled decimals as they are; NULLs are arbitrary."""
    if pa.types.is_decimal(column.type):
        return decimal_words(column)[0]
    column = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    column = column.cast(pa.int64())
    return int64_values(pc.fill_null(column, 0) if column.null_count else column)


def to_words(column: pa.Array) -> Int64Array:
    """One word per value (NaN is the largest, -0.0 becomes 0.0); NULLs are arbitrary."""
    if not pa.types.is_floating(column.type):
        return integers(column)
    values = floats(column)
    bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits)


def from_words(words: Int64Array, none: BoolArray, type_: pa.DataType) -> pa.Array:
    """The values of words that ``floats`` (as bits) or ``integers`` made; NULL where ``none`` says so."""
    mask = none if none.any() else None
    if pa.types.is_floating(type_):
        return pa.array(words.view(np.float64), mask=mask).cast(type_)
    if pa.types.is_decimal(type_):
        whole = pa.array(words, mask=mask).cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 0))
        return pa.Array.from_buffers(pa.decimal128(38, type_.scale), len(words), whole.buffers()).cast(type_)
    if pa.types.is_date32(type_):
        return pa.array(words.astype(np.int32), mask=mask).cast(type_)
    return pa.array(words, mask=mask).cast(type_)
