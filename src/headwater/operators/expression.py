"""Scalar expressions over Arrow columns: DuckDB computes whole columns at once.

The text of an expression is DuckDB SQL over the input's column names in double quotes. A list of expressions is planned
once for a schema and then run again for every batch.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.model.functions import UserFunction
from headwater.model.schema import Schema
from headwater.operators.user_functions import Registry

_SETTINGS = (
    "SET threads = 1",  # rows keep their order, and ticks run in parallel by shards
    "SET error_on_division_by_zero = false",  # NULL, as in Spark without ANSI mode: one row must not stop a stream
    "SET TimeZone = 'UTC'",
    # Expressions compute with the values they are given: no files, no network, no extensions, no variables of Python's.
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_CHECKED_TEXT = re.compile(r"""REGEXP_REPLACE\((.*?), '\^\(\?s:\.\*\[\^0-9\\s\+-\]\.\*\)\$', '"\\0"'\)""")
"""A text that is read as a whole number: what is none is put in quotes, so that it cannot be taken for one."""
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")*)\"")
_PLACEHOLDER = "_row"  # gives a constant as many rows as the batch has

_local = threading.local()
_opened: list[duckdb.DuckDBPyConnection] = []


def connection() -> duckdb.DuckDBPyConnection:
    """The connection of this thread of this process (a forked child must not use its parent's)."""
    if getattr(_local, "process", None) != os.getpid():
        _local.process, _local.connection = os.getpid(), duckdb.connect()
        _local.registry = Registry(_local.connection)
        _opened.append(_local.connection)
        for setting in _SETTINGS:
            _local.connection.execute(setting).fetchall()  # an unread result blocks the connection
    return _local.connection


def register(functions: Sequence[UserFunction]) -> None:
    """Make functions of the user's known to the connection of this thread."""
    if functions:
        connection()
        _local.registry.add(functions)


def taken_failure() -> HeadwaterError | None:
    """Why a function of the user's failed, if one has since this was last asked."""
    connection()
    failure, _local.registry.failure = _local.registry.failure, None
    return failure


@atexit.register
def _close() -> None:
    """Before the interpreter goes: DuckDB reports connections that are still open as leaks."""
    for opened in _opened:
        opened.close()
    _opened.clear()
    _local.__dict__.clear()


def quote(name: str) -> str:
    """The name as a column in the text of an expression."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def referenced(sql: str) -> list[str]:
    """The names in double quotes, in order of appearance, each once."""
    found = (m.group(1) for m in _QUOTED.finditer(sql) if m.group(1) is not None)
    return list(dict.fromkeys(name.replace('""', '"') for name in found))


class _Feed:
    """What DuckDB scans: the batch of the moment."""

    def __init__(self, batch: pa.Table) -> None:
        self.batch = batch

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.batch.__arrow_c_stream__(requested_schema)


class Expressions:
    """A list of expressions over one schema, with the types that their results must have."""

    def __init__(
        self,
        schema: Schema,
        sqls: Sequence[str],
        types: Sequence[pa.DataType],
        functions: Sequence[UserFunction] = (),
    ) -> None:
        self.schema, self.sqls, self.types = schema, tuple(sqls), tuple(types)
        self.functions = tuple(dict.fromkeys(functions))
        plain = {quote(name): i for i, name in enumerate(schema.names)}
        self._direct = {i: plain[sql] for i, sql in enumerate(sqls) if sql in plain}
        self._computed = [i for i in range(len(sqls)) if i not in self._direct]
        names = dict.fromkeys(n for i in self._computed for n in referenced(sqls[i]))
        # A quoted name that is no column is a field of a struct, or of a struct's type.
        self._inputs = [schema.index(name) for name in names if name in schema.names]
        self._planned: tuple[tuple[int, int], _Feed, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planned": None}  # a plan belongs to one thread of one process

    def direct(self, names: Sequence[str]) -> dict[str, str]:
        """Of the results under these names those that are an input column as it is, and which one."""
        return {
            names[i]: self.schema.names[column]
            for i, column in self._direct.items()
            if self.schema.types[column] == self.types[i]
        }

    @property
    def reads(self) -> frozenset[int]:
        """The places of the columns that are needed."""
        return frozenset((*self._inputs, *self._direct.values()))

    def evaluate(self, columns: Sequence[pa.Array], rows: int) -> list[pa.Array]:
        """One result column an expression, row by row in the order of the input."""
        results = [columns[self._direct[i]] if i in self._direct else None for i in range(len(self.sqls))]
        if self._computed and rows == 0:
            return [pa.array([], t) if r is None else r for r, t in zip(results, self.types, strict=True)]
        if self._computed:
            table = self._run(self._batch(columns, rows))
            for place, i in enumerate(self._computed):
                results[i] = table.column(place).combine_chunks()
        return [self._as_declared(r, i) for i, r in enumerate(results) if r is not None]

    def _batch(self, columns: Sequence[pa.Array], rows: int) -> pa.Table:
        if not self._inputs:
            return pa.table({_PLACEHOLDER: pa.nulls(rows, pa.int8())})
        return pa.Table.from_arrays([columns[i] for i in self._inputs], [self.schema.names[i] for i in self._inputs])

    def _run(self, batch: pa.Table) -> pa.Table:
        try:
            here = os.getpid(), threading.get_ident()
            if self._planned is None or self._planned[0] != here:
                feed = _Feed(batch)
                chosen = ", ".join(f"{self.sqls[i]} AS {quote(f'e{i}')}" for i in self._computed)
                register(self.functions)
                self._planned = here, feed, connection().from_arrow(feed).project(chosen)
            _, feed, relation = self._planned
            feed.batch = batch
            return relation.to_arrow_table()
        except duckdb.Error as problem:
            self._planned = None
            if (failure := taken_failure()) is not None:
                raise failure from failure.__cause__
            raise self._failed(batch, problem) from problem

    def _failed(self, batch: pa.Table, problem: duckdb.Error) -> HeadwaterError:
        """The expressions one by one, to name the one that fails."""
        culprit = self.sqls[self._computed[0]]
        for i in self._computed:
            try:
                connection().from_arrow(batch).project(self.sqls[i]).to_arrow_table()
            except duckdb.Error as its_own:
                culprit, problem = self.sqls[i], its_own
                break
        reason = str(problem).partition("\n")[0].replace("'\"", "'").replace("\"'", "'")
        shown = _CHECKED_TEXT.sub(r"\1", culprit)
        return HeadwaterError(
            "EXPRESSION_FAILED",
            f"could not compute {shown}",
            detail=reason,
            hint="TRY_CAST gives NULL where CAST fails; NULLIF and CASE keep out values that cannot be computed with.",
        )

    def _as_declared(self, column: pa.Array, i: int) -> pa.Array:
        if column.type == self.types[i]:
            return column
        try:
            return column.cast(self.types[i])
        except pa.ArrowInvalid as problem:
            message = f"could not compute {self.sqls[i]}"
            raise HeadwaterError("EXPRESSION_FAILED", message, detail=str(problem)) from problem
