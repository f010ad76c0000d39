"""The distance of texts in letters: DuckDB's own counts bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.kernels.levenshtein import distances
from headwater.model.functions import UserFunction

LEVENSHTEIN = UserFunction.define(
    "levenshtein", "headwater.expressions.levenshtein:levenshtein", (pa.string(), pa.string()), pa.int32()
)
"""It is called as functions of users are."""


def levenshtein(left: pa.Array, right: pa.Array) -> pa.Array:
    """Row by row; NULL where one of the texts is.

    >>> levenshtein(pa.array(["aé", None]), pa.array(["ae", "x"])).to_pylist()
    [1, None]
    """
    found = distances(*_bytes(left), *_bytes(right))
    missing = [side.is_null().to_numpy(zero_copy_only=False) for side in (left, right)]
    return pa.array(found, mask=missing[0] | missing[1])


def _bytes(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all texts, and where each begins; a NULL has any."""
    column = column.cast(pa.string())
    _, offsets, data = column.buffers()
    begins = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8), begins.astype(np.int64)
