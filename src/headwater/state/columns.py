"""Row-aligned columns, numpy or Arrow: the small algebra that the state layouts need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

Column = np.ndarray | pa.Array
Columns = dict[str, Column]


def rows_of(columns: Columns) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def bytes_of(columns: Iterable[Column]) -> int:
    return sum(c.itemsize if is_constant(c) else int(c.nbytes) for c in columns)


def is_constant(column: Column) -> bool:
    """Is it a constant column, kept as one value that is repeated by a stride of zero?"""
    return isinstance(column, np.ndarray) and column.strides == (0,) and len(column) > 0  # empty ones have it too


def once(column: Column) -> np.ndarray:
    """A constant column as its one value, any other as it is: for kernels that take either."""
    assert isinstance(column, np.ndarray)
    return column[:1].copy() if is_constant(column) else column


def compress(columns: Columns, names: Iterable[str]) -> Columns:
    """The same columns with the named ones kept small: a single value once, int64 that fits a byte as bytes.

    Whoever reads them back widens them again.
    """
    packed = dict(columns)
    for name in names:
        column = packed.get(name)
        if not isinstance(column, np.ndarray) or len(column) < 2:
            continue
        least, most = column.min(), column.max()
        if least == most:
            packed[name] = np.broadcast_to(column[:1].copy(), len(column))
        elif column.dtype == np.int64 and least >= -128 and most <= 127:
            packed[name] = column.astype(np.int8)
    return packed


def take_column(column: Column, indices: np.ndarray) -> Column:
    if isinstance(column, np.ndarray):
        if is_constant(column):  # numpy's take would first write out the whole column
            return np.full(len(indices), column[0], column.dtype)
        return column.take(indices, axis=0)
    return column.take(pa.array(indices))


def take(columns: Columns, indices: np.ndarray) -> Columns:
    return {name: take_column(column, indices) for name, column in columns.items()}


def slice_rows(columns: Columns, start: int, stop: int) -> Columns:
    return {
        name: column[start:stop] if isinstance(column, np.ndarray) else column.slice(start, stop - start)
        for name, column in columns.items()
    }


def concat_column(parts: Sequence[Column]) -> Column:
    if len(parts) == 1:
        part = parts[0]
        return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(cast("Sequence[np.ndarray]", parts))
    return pa.concat_arrays(cast("Sequence[pa.Array]", parts))


def concat(parts: Sequence[Columns]) -> Columns:
    """One after another, contiguous; all parts have the same columns."""
    return {name: concat_column([p[name] for p in parts]) for name in parts[0]}
