"""Expressions over Arrow columns: DuckDB computes whole columns at once.

A list of expressions is planned once for a schema and then run again for every batch.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.expressions.connection import connection, register, taken_failure
from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.nodes import Column, Expression
from headwater.expressions.printing import quoted
from headwater.expressions.text import to_text
from headwater.model.schema import Schema

_PLACEHOLDER = "_row"  # gives a constant as many rows as the batch has


class _Feed:
    """What DuckDB scans: the batch of the moment."""

    def __init__(self, batch: pa.Table) -> None:
        self.batch = batch

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.batch.__arrow_c_stream__(requested_schema)


class Expressions:
    """A list of expressions over one schema, with the types that their results must have."""

    def __init__(self, schema: Schema, expressions: Sequence[Expression], types: Sequence[pa.DataType] = ()) -> None:
        self.schema, self.expressions = schema, tuple(expressions)
        self.types = tuple(types) or tuple(e.type for e in expressions)
        plain = {name: i for i, name in enumerate(schema.names)}
        self._direct = {i: plain[e.name] for i, e in enumerate(expressions) if isinstance(e, Column)}
        self._computed = [i for i in range(len(expressions)) if i not in self._direct]
        read = dict.fromkeys(name for i in self._computed for name in expressions[i].columns)
        self._inputs = [plain[name] for name in read]
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
        results = [columns[self._direct[i]] if i in self._direct else None for i in range(len(self.expressions))]
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
                chosen = ", ".join(f"{to_duckdb(self.expressions[i])} AS {quoted(f'e{i}')}" for i in self._computed)
                register([f for e in self.expressions for f in e.functions])
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
        culprit = self.expressions[self._computed[0]]
        for i in self._computed:
            try:
                connection().from_arrow(batch).project(to_duckdb(self.expressions[i])).to_arrow_table()
            except duckdb.Error as cause:
                culprit, problem = self.expressions[i], cause
                break
        reason = str(problem).partition("\n")[0].replace("'\"", "'").replace("\"'", "'")
        return HeadwaterError(
            "EXPRESSION_FAILED",
            f"could not compute {to_text(culprit)}",
            detail=reason,
            hint="TRY_CAST gives NULL where CAST fails; NULLIF and CASE keep out values that cannot be computed with.",
        )

    def _as_declared(self, column: pa.Array, i: int) -> pa.Array:
        if column.type == self.types[i]:
            return column
        try:
            return column.cast(self.types[i])
        except pa.ArrowInvalid as problem:
            message = f"could not compute {to_text(self.expressions[i])}"
            raise HeadwaterError("EXPRESSION_FAILED", message, detail=str(problem)) from problem
