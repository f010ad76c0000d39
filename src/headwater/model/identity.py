"""Keys as hashes: one integer-like column maps to 64 bits and back, anything else to a 128-bit identity.

There is no table of known keys: such a table is one more piece of state, is slower and never shrinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import StreamError
from headwater.kernels.hash import hash_bytes, hash_lists, hash_words, mix_all, unmix_all
from headwater.model.arrays import UInt64Array, view

NULL_WORD = np.uint64(0x6E756C6C5F6B6579)
"""The one 64-bit word that stands for NULL in a recoverable key; no value may have it."""

_NOTHING = np.empty(0, np.uint64)


class Identity(NamedTuple):
    """Key hashes: ``low`` is sorted and probed; ``high`` tells apart what ``low`` cannot (empty when ``low`` is exact)."""

    low: UInt64Array
    high: UInt64Array = _NOTHING

    def take(self, indices: np.ndarray) -> Identity:
        return Identity(self.low.take(indices), self.high.take(indices) if len(self.high) else self.high)

    @classmethod
    def empty(cls) -> Identity:
        return cls(_NOTHING)

    @classmethod
    def concat(cls, parts: Sequence[Identity]) -> Identity:
        return cls(np.concatenate([p.low for p in parts]), np.concatenate([p.high for p in parts]))


def is_recoverable(types: Sequence[pa.DataType]) -> bool:
    """True when the key columns can be rebuilt from the hash alone (no column, or one of at most 64 bits)."""
    return not types or (len(types) == 1 and _is_word(types[0]))


def _is_word(type_: pa.DataType) -> bool:
    return (
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_timestamp(type_)
    )


def identify(columns: Sequence[pa.Array], rows: int) -> Identity:
    """The identity of each row of the key columns."""
    if not columns:
        return Identity(np.zeros(rows, np.uint64))
    if is_recoverable([c.type for c in columns]):
        return Identity(mix_all(_exact_words(columns[0])))
    low, high = np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)
    for column in columns:
        _fold(column, low, high)
    return Identity(low, high)


def recover(low: UInt64Array, type_: pa.DataType) -> pa.Array:
    """The key column that ``identify`` mapped to these hashes (recoverable keys only)."""
    words = unmix_all(low)
    null = words == NULL_WORD
    mask = null if null.any() else None
    if pa.types.is_floating(type_):
        return pa.array(words.view(np.float64), mask=mask).cast(type_)
    values = words.view(np.int64)
    if mask is not None:
        values = np.where(null, 0, values)
    if pa.types.is_boolean(type_):
        return pa.array(values.astype(np.bool_), mask=mask)
    if pa.types.is_date32(type_):
        return pa.array(values.astype(np.int32), mask=mask).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, mask=mask).cast(type_)
    return pa.array(values.astype(type_.to_pandas_dtype()), mask=mask)


def _exact_words(column: pa.Array) -> UInt64Array:
    words = _words(column)
    if (words == NULL_WORD).any():
        raise StreamError(
            "RESERVED_KEY",
            f"the value {column[int(np.argmax(words == NULL_WORD))]} cannot be a key",
            hint="One value of 2^64 is reserved; map it to another before you group or join by it.",
        )
    if column.null_count:
        words = np.where(column.is_null().to_numpy(zero_copy_only=False), NULL_WORD, words)
    return words


def _words(column: pa.Array) -> UInt64Array:
    """The column as 64-bit words, equal exactly when the SQL values are; what NULL becomes is arbitrary."""
    type_ = column.type
    if pa.types.is_floating(type_):
        values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        values = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, and -0.0 becomes 0.0
        return values.view(np.uint64)
    if pa.types.is_date32(type_):
        column = column.cast(pa.int32())
    elif not pa.types.is_integer(type_):
        column = column.cast(pa.int64())
    if column.null_count:
        column = pc.fill_null(column, 0)
    return column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False).view(np.uint64)


def _fold(column: pa.Array, low: UInt64Array, high: UInt64Array) -> None:
    """Fold one column of any type into the two lanes; NULL is folded as a flag of its own."""
    type_ = column.type
    if isinstance(column, pa.ExtensionArray):
        column, type_ = column.storage, column.storage.type
    if pa.types.is_dictionary(type_):
        column = column.dictionary_decode()
        type_ = column.type
    valid = (
        np.ones(len(column), np.uint64)
        if column.null_count == 0
        else column.is_valid().to_numpy(zero_copy_only=False).astype(np.uint64)
    )
    hash_words(valid, low, high)
    if _is_word(type_):
        words = _words(column)
        hash_words(words if column.null_count == 0 else np.where(valid == 1, words, np.uint64(0)), low, high)
    elif pa.types.is_decimal(type_):
        _fold_decimal(column, low, high)
    elif pa.types.is_struct(type_):
        for i in range(type_.num_fields):
            _fold(column.field(i) if column.null_count == 0 else column.flatten()[i], low, high)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        column = pc.fill_null(column, pa.scalar([], type_)) if column.null_count else column
        items, offsets = column.values, column.offsets.to_numpy().astype(np.int64)
        item_low, item_high = np.zeros(len(items), np.uint64), np.zeros(len(items), np.uint64)
        _fold(items, item_low, item_high)
        hash_lists(offsets, item_low, item_high, low, high)
    elif pa.types.is_null(type_):
        return
    else:
        _fold_bytes(column, low, high)


def _fold_decimal(column: pa.Array, low: UInt64Array, high: UInt64Array) -> None:
    column = pc.fill_null(column, pa.scalar(0, pa.decimal128(38, 0)).cast(column.type)) if column.null_count else column
    column = column.cast(pa.decimal128(38, column.type.scale))
    words = view(column.buffers()[1], np.uint64)
    words = words[2 * column.offset : 2 * (column.offset + len(column))]
    hash_words(np.ascontiguousarray(words[0::2]), low, high)
    hash_words(np.ascontiguousarray(words[1::2]), low, high)


def _fold_bytes(column: pa.Array, low: UInt64Array, high: UInt64Array) -> None:
    column = column.cast(pa.large_binary())
    column = pc.fill_null(column, b"") if column.null_count else column
    _, offsets, data = column.buffers()
    places = view(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    hash_bytes(places, view(data, np.uint8), low, high)
