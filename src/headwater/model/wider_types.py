"""Types that hold all values of other ones: what a column may become while its old values stay what they are.

Whole numbers may get more bits, a FLOAT become a DOUBLE, a DECIMAL get more digits before its point. Then equal values have
equal hashes (``identity.py``) and the same order, so nothing that is kept by them has to be found anew. That is why a
DECIMAL keeps its scale, and why a DATE does not become a TIMESTAMP, nor a whole number a DOUBLE.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


def holds_all_of(type_: pa.DataType, other: pa.DataType) -> bool:
    """Has each value of the other type an equal one in this type, with the same hash and in the same order?

    >>> holds_all_of(pa.int64(), pa.int32()), holds_all_of(pa.decimal128(12, 2), pa.decimal128(10, 3))
    (True, False)
    """
    if type_ == other:
        return True
    if other in _WHOLE and type_ in _WHOLE:
        return _WHOLE.index(other) < _WHOLE.index(type_)
    if pa.types.is_decimal128(other) and pa.types.is_decimal128(type_):
        return other.scale == type_.scale and other.precision < type_.precision
    if pa.types.is_list(other) and pa.types.is_list(type_):
        return holds_all_of(type_.value_type, other.value_type)
    if pa.types.is_struct(other) and pa.types.is_struct(type_):
        pairs = list(zip(type_, other, strict=False))
        return type_.num_fields == other.num_fields and all(
            a.name == b.name and holds_all_of(a.type, b.type) for a, b in pairs
        )
    return pa.types.is_float32(other) and pa.types.is_float64(type_)


def has_float(type_: pa.DataType) -> bool:
    """Is it a FLOAT, or made of some? What a source brings as one may not be the value that it brings as a DOUBLE."""
    if pa.types.is_nested(type_):
        return any(has_float(type_.field(i).type) for i in range(type_.num_fields))
    return pa.types.is_float32(type_)


def as_wider(column: np.ndarray | pa.Array, type_: pa.DataType) -> np.ndarray | pa.Array:
    """The same values in a type that holds them all."""
    if isinstance(column, np.ndarray):
        return column.astype(type_.to_pandas_dtype(), copy=False)
    return column if column.type == type_ else column.cast(type_)
