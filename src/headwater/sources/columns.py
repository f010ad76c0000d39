"""Arrow functions on columns, with masks in numpy."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.arrays import BoolArray


def nulls(column: pa.Array) -> BoolArray:
    """Where it is NULL."""
    return column.is_null().to_numpy(zero_copy_only=False)


def valid(column: pa.Array) -> BoolArray:
    """Where it is not NULL."""
    return column.is_valid().to_numpy(zero_copy_only=False)


def coalesce(first: pa.Array, second: pa.Array) -> pa.Array:
    """The first where it is not NULL, else the second."""
    return pc.call_function("coalesce", [first, second])


def where(mask: BoolArray, value: pa.Array | pa.Scalar | str, other: pa.Array | pa.Scalar | str) -> pa.Array:
    return pc.call_function("if_else", [pa.array(mask), _datum(value), _datum(other)])


def joined(*parts: pa.Array | str, separator: str = "") -> pa.Array:
    """Strings one after another; NULL is an empty one."""
    options = pc.JoinOptions(null_handling="replace", null_replacement="")
    return pc.call_function("binary_join_element_wise", [*map(_datum, parts), pa.scalar(separator)], options)


def shortened(texts: pa.Array, most: int = 100) -> pa.Array:
    """The first characters."""
    return pc.call_function("utf8_slice_codeunits", [texts], pc.SliceOptions(0, most))


def list_lengths(lists: pa.Array) -> pa.Array:
    return pc.fill_null(pc.call_function("list_value_length", [lists]), 0)


def lower(texts: pa.Array) -> pa.Array:
    return pc.call_function("utf8_lower", [texts])


def places_in(column: pa.Array, values: pa.Array) -> pa.Array:
    """The place of each value among those; NULL where it is none of them."""
    return pc.call_function("index_in", [column], pc.SetLookupOptions(values))


def is_equal(column: pa.Array, other: pa.Array | str) -> BoolArray:
    """Where both are the same, and neither is NULL."""
    return _certain("equal", column, other)


def is_other(column: pa.Array, other: pa.Array | str) -> BoolArray:
    """Where they differ, and neither is NULL."""
    return _certain("not_equal", column, other)


def _certain(function: str, column: pa.Array, other: pa.Array | str) -> BoolArray:
    found = pc.call_function(function, [column, _datum(other)])
    return pc.fill_null(found, False).to_numpy(zero_copy_only=False)


def _datum(value: pa.Array | pa.Scalar | str) -> pa.Array | pa.Scalar:
    return pa.scalar(value) if isinstance(value, str) else value
