"""Columns as values of Python, which knows the years 1 to 9999 only: times beyond are texts there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """
    >>> python_values(pa.array([0, 253402300800]).cast(pa.timestamp("s")))
    [datetime.datetime(1970, 1, 1, 0, 0), '10000-01-01 00:00:00']
    """
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        type_ = scalar.type
    if pa.types.is_struct(type_):
        return {name: _value(scalar[name]) for name in scalar}
    if pa.types.is_nested(type_):
        return [_value(element) for element in scalar.values]
    unit = type_.unit if pa.types.is_timestamp(type_) else "D"
    return time_text(scalar.value, unit)


def time_text(value: int, unit: str = "us") -> str:
    """A time as people read it, in any year.

    >>> time_text(0), time_text(4000000, "D")
    ('1970-01-01 00:00:00.000000', '12921-08-18')
    """
    return str(np.array(value, np.int64).view(f"M8[{unit}]")).replace("T", " ")
