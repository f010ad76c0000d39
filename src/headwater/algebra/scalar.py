"""A scalar expression, as nodes of plans hold it."""

from __future__ import annotations

import pyarrow as pa
from attrs import frozen

from headwater.model.functions import UserFunction


@frozen(cache_hash=True)
class Scalar:
    """A scalar expression over the columns of one input (or of the pair, in a join residual)."""

    sql: str
    """DuckDB SQL; columns appear as double-quoted names."""
    type: pa.DataType
    columns: tuple[str, ...] = ()
    """The input columns it reads."""
    functions: tuple[UserFunction, ...] = ()
    """The functions of the user's that it calls."""
