"""Conditions over rows: where one that cannot be computed does not matter, it does not stop the query.

``v <> 'NA' AND CAST(v AS INT) > 1`` must not stop at 'NA', in whatever order the two are computed, written or merged: a row
fails only if a condition cannot be computed for it and no other one drops it. DuckDB computes conditions in the order
that it likes, so after a failure they are computed one by one, each for the rows that all others have left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import HeadwaterError
from headwater.expressions.evaluation import Expressions
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import conjuncts
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.schema import Schema

_NO, _YES, _FAILED = range(3)


class Condition:
    """A predicate over the columns of a schema."""

    def __init__(self, schema: Schema, predicate: Expression) -> None:
        self._schema, self._predicate = schema, predicate
        self._whole = Expressions(schema, [predicate])
        self._parts: list[Expressions] = []
        """Its conditions one by one, once the whole has failed: those that have failed last."""

    def holds(self, columns: Sequence[pa.Array], rows: int) -> BoolArray:
        """The rows for which it is true, not those where it is NULL."""
        if not self._parts:
            try:
                return _true(self._whole, columns, rows)
            except HeadwaterError:
                listed = conjuncts(self._predicate)
                if len(listed) == 1:
                    raise
                self._parts = [Expressions(self._schema, [c]) for c in listed]
        result = np.zeros(rows, np.bool_)
        result[self._one_by_one(columns, rows)] = True
        return result

    def _one_by_one(self, columns: Sequence[pa.Array], rows: int) -> Int64Array:
        left = np.arange(rows)
        waiting = self._parts
        while True:
            failed: list[tuple[Expressions, HeadwaterError]] = []
            before = len(left)
            for part in waiting:
                try:
                    left = left[_true(part, _at(part, columns, left), len(left))]
                except HeadwaterError as problem:
                    failed.append((part, problem))
            if not failed:
                return left
            waiting = [part for part, _ in failed]
            self._parts = [*(p for p in self._parts if p not in waiting), *waiting]
            if len(left) == before:
                break
        return self._row_by_row(columns, left, failed)

    def _row_by_row(
        self, columns: Sequence[pa.Array], left: Int64Array, failed: list[tuple[Expressions, HeadwaterError]]
    ) -> Int64Array:
        """Several that fail: a row that one of them drops does not matter to the others."""
        verdicts = [_judged(part, _at(part, columns, left), len(left)) for part, _ in failed]
        dropped = np.logical_or.reduce([v == _NO for v in verdicts])
        for verdict, (_, problem) in zip(verdicts, failed, strict=True):
            if ((verdict == _FAILED) & ~dropped).any():
                raise problem
        return left[~dropped]


def _true(part: Expressions, columns: Sequence[pa.Array], rows: int) -> BoolArray:
    (verdict,) = part.evaluate(columns, rows)
    return pc.fill_null(verdict, False).to_numpy(zero_copy_only=False)


def _at(part: Expressions, columns: Sequence[pa.Array], rows: Int64Array) -> list[pa.Array]:
    """The columns that it reads, of these rows only."""
    if len(columns) and len(rows) == len(columns[0]):
        return list(columns)
    return [column.take(pa.array(rows)) if i in part.reads else column for i, column in enumerate(columns)]


def _judged(part: Expressions, columns: Sequence[pa.Array], rows: int) -> Int64Array:
    """What it says of each row; what fails is halved until the rows are found."""
    try:
        return _true(part, columns, rows).astype(np.int64)
    except HeadwaterError:
        if rows == 1:
            return np.array([_FAILED])
    half = rows // 2
    first = _judged(part, [c.slice(0, half) for c in columns], half)
    return np.concatenate([first, _judged(part, [c.slice(half) for c in columns], rows - half)])
