"""A function that quotes what it is given."""

from __future__ import annotations

import pyarrow as pa


def refuse(x: pa.Array) -> pa.Array:
    raise ValueError(f"what is {x[0].as_py()}?\nRuntimeError: {x[0].as_py()}")
