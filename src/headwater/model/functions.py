"""Functions of the user's: found by their import path, called on whole Arrow columns."""

from __future__ import annotations

import pyarrow as pa
from attrs import frozen


@frozen
class UserFunction:
    """``CREATE FUNCTION name(…) RETURNS … AS 'module:attribute'``: Arrow arrays in, one Arrow array out."""

    name: str
    """How the text of expressions calls it, in double quotes."""
    path: str
    """``package.module:attribute``"""
    parameters: tuple[pa.DataType, ...]
    returns: pa.DataType
