"""Names for the numpy array types that flow everywhere, and zero-copy views of Arrow memory."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def view(buffer: pa.Buffer | None, dtype: npt.DTypeLike) -> np.ndarray:
    """A zero-copy array over an Arrow buffer that is not marked read-only.

    numba compiles a kernel once more for read-only arrays; kernels never write to their inputs, so the mark is of no use.
    """
    if buffer is None or buffer.size == 0:
        return np.empty(0, dtype)
    raw = (ctypes.c_char * buffer.size).from_address(buffer.address)
    raw._owner = buffer  # type: ignore[attr-defined]  # keeps the memory alive as long as the view
    itemsize = np.dtype(dtype).itemsize
    return np.frombuffer(raw, dtype, count=buffer.size // itemsize)


def int64_values(column: pa.Array) -> Int64Array:
    """The values of a non-null int64 column, without a copy."""
    return view(column.buffers()[1], np.int64)[column.offset : column.offset + len(column)]
