"""Scalar functions of users inside DuckDB: each connection learns a function when an expression first calls it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from headwater.errors import HeadwaterError
from headwater.model.functions import UserFunction, import_path
from headwater.model.types import sql_name

_RETURN_HINT = "It gets one Arrow array a parameter and gives one of the same length."


class Registry:
    """The functions that one connection knows, and how the last call that failed did so."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._known: set[str] = set()
        self.failure: HeadwaterError | None = None

    def add(self, functions: Sequence[UserFunction]) -> None:
        """Make the functions known; a name stands for one definition only, so none is ever replaced."""
        for function in functions:
            if function.name in self._known:
                continue
            *parameters, returns = self._types([*function.parameters, function.returns])
            self._connection.create_function(
                function.name,
                self._guarded(function),
                parameters,
                returns,
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,  # NULLs are for the function to judge
            )
            self._known.add(function.name)

    def _types(self, types: Sequence[pa.DataType]) -> list[Any]:
        """DuckDB's own objects for Arrow types."""
        empty = pa.schema([(f"c{i}", type_) for i, type_ in enumerate(types)]).empty_table()
        return list(self._connection.from_arrow(empty).types)

    def _guarded(self, function: UserFunction) -> Callable[..., pa.Array]:
        """The function with checks around it; DuckDB keeps only the text of an exception, so it is noted here."""
        user_code = import_path(function.path)

        def call(*columns: pa.ChunkedArray) -> pa.Array:
            arrays = [_whole(column) for column in columns]
            try:
                return _checked(function, user_code(*arrays), len(arrays[0]) if arrays else 1)
            except HeadwaterError as problem:
                self.failure = problem
                raise
            except Exception as problem:
                self.failure = _failed(function, problem)
                raise self.failure from problem

        # DuckDB counts the parameters.
        places = [Parameter(f"p{i}", Parameter.POSITIONAL_ONLY) for i in range(len(function.parameters))]
        call.__signature__ = Signature(places)  # type: ignore[attr-defined]
        return call


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _checked(function: UserFunction, result: Any, rows: int) -> pa.Array:
    """The result as an array of the declared type and length."""
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks() if result.num_chunks else pa.array([], result.type)
    if not isinstance(result, pa.Array):
        message = f'function "{function.title}" gave a {type(result).__name__}, not an Arrow array'
        raise HeadwaterError("EXPRESSION_FAILED", message, hint=_RETURN_HINT)
    if len(result) != rows:
        message = f'function "{function.title}" gave {len(result)} values for {rows} rows'
        raise HeadwaterError("EXPRESSION_FAILED", message, hint=_RETURN_HINT)
    if result.type == function.returns:
        return result
    if _same_values(result.type, function.returns):
        return result.cast(function.returns)
    raise HeadwaterError(
        "EXPRESSION_FAILED",
        f'function "{function.title}" gave {sql_name(result.type)}, but it returns {sql_name(function.returns)}',
        hint="Convert the result: array.cast(type).",
    )


def _same_values(found: pa.DataType, declared: pa.DataType) -> bool:
    """Only another layout of the declared type, or nothing but NULLs?"""
    if pa.types.is_dictionary(found):
        return _same_values(found.value_type, declared)
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    blob = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(test(found) for test in lists) and pa.types.is_list(declared):
        return _same_values(found.value_type, declared.value_type)
    alike = any(any(test(found) for test in group) and group[0](declared) for group in (text, blob))
    return alike or pa.types.is_null(found) or found == declared


def _failed(function: UserFunction, problem: Exception) -> HeadwaterError:
    """Names the function and the line of its own code."""
    frames = traceback.extract_tb(problem.__traceback__)[1:2]
    place = "".join(f" ({f.filename}, line {f.lineno})" for f in frames if Path(f.filename).is_file())
    return HeadwaterError(
        "EXPRESSION_FAILED",
        f'function "{function.title}" failed',
        detail=f"{type(problem).__name__}: {problem}{place}",
        hint=f"It is {function.path}.",
    )
