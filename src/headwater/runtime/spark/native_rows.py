"""A batch of a stream as one DataFrame that holds what its queries need of it: read once, crossing into Python once.

Columns: the instant of every row that is taken; what is late or malformed, whole, in a list that hardly ever has a row; then
the parts of the queries (``native_parts``), a filtered one as a list of at most one row, any other as columns of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.algebra import nodes as n
from headwater.clock.frontier import Seen
from headwater.model.arrays import int64_values
from headwater.model.delta import Delta
from headwater.model.schema import START, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Operator
from headwater.runtime.spark.expressions import suits, to_spark
from headwater.runtime.spark.native_parts import CARRIED, NativePart
from headwater.runtime.spark.spark_values import literal, quoted
from headwater.sources.intake import Intake, sighted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_AT, _SEEN, _APART, _KEPT = (quoted(CARRIED + name) for name in ("at", "seen", "apart", "kept"))
_DAY = 86_400_000_000
_MOST_DAYS = INFINITY // _DAY - 1


@frozen
class PartShape:
    """Where a part's rows are in the batches, and what Python does to their times."""

    node: int
    schema: Schema
    columns: tuple[int, ...]
    """Of a filtered part: the one list."""
    is_filtered: bool
    windows: tuple[Operator, ...]


class Found(NamedTuple):
    """What a batch holds."""

    seen: list[Seen]
    rows: int
    apart: pa.RecordBatch | None
    """Rows that are late or malformed, as they came."""
    parts: dict[int, Delta]
    """By node."""


@frozen
class Shape:
    """How to read the batches. Picklable."""

    partition: int | None
    """The column whose values have a clock each."""
    parts: tuple[PartShape, ...]

    def read(self, batch: pa.RecordBatch) -> Found:
        at, apart = batch.column(0), batch.column(1)
        taken = None if at.null_count == 0 else at.is_valid()
        start = int64_values(at if taken is None else at.filter(taken))
        partition = None if self.partition is None else _only(_plain(batch.column(self.partition)), taken)
        rest = apart.flatten() if apart.null_count < len(apart) else None
        return Found(
            sighted(start, partition),
            len(start),
            None if rest is None else pa.RecordBatch.from_struct_array(rest),
            {part.node: self._delta(part, batch, taken, start) for part in self.parts},
        )

    def _delta(self, part: PartShape, batch: pa.RecordBatch, taken: pa.Array | None, start: np.ndarray) -> Delta:
        if part.is_filtered:
            listed = batch.column(part.columns[0])
            start = int64_values(batch.column(0).filter(listed.is_valid()))
            columns = listed.flatten().flatten()
        else:
            columns = [_only(batch.column(place), taken) for place in part.columns]
        columns = [_as(column, f.type) for column, f in zip(columns, part.schema, strict=True)]
        delta = Delta(part.schema, columns, start, start + 1, np.ones(len(start), np.int64))
        for window in part.windows:
            delta = window.step(None, (delta,), (BEGINNING,)).delta
        return delta


def _only(column: pa.Array, rows: pa.Array | None) -> pa.Array:
    return column if rows is None else column.filter(rows)


def _plain(column: pa.Array) -> pa.Array:
    zoned = pa.types.is_timestamp(column.type) and column.type.tz is not None
    return column.cast(pa.timestamp("us")) if zoned else column


def _as(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return column if column.type == type_ else column.cast(type_)


def native_rows(
    frame: DataFrame, intake: Intake, frontier: int, parts: Sequence[NativePart]
) -> tuple[DataFrame, Shape] | None:
    """The batch for these parts; None if it had better come as it is: they ask for everything, or the session differs."""
    if not any(part.steps for part in parts) or not suits(frame.sparkSession):
        return None
    text, shape = _Text(intake, parts).of(frontier)
    view = f"headwater_rows_{re.sub('[^a-z0-9]', '_', intake.stream.casefold())}"
    frame.createOrReplaceTempView(view)
    return frame.sparkSession.sql(text.replace(_VIEW, view)), shape


_VIEW = "`the rows of the batch`"


class _Text:
    """One SELECT inside another, each over the columns of the one before."""

    def __init__(self, intake: Intake, parts: Sequence[NativePart]) -> None:
        self._intake, self._parts = intake, parts
        self._base = [quoted(f"{CARRIED}{i}") for i in range(len(intake.schema))]
        self._carried = [*self._base, _SEEN, _APART]
        self._from = _VIEW
        self._columns = [_SEEN, _APART]
        """Of the result."""
        self._known: dict[str, int] = {}
        """Columns that a part has all rows of, by their text."""

    def of(self, frontier: int) -> tuple[str, Shape]:
        schema = self._intake.schema
        self._select([*_declared(schema, self._base), f"{_instant(self._intake, self._base)} AS {_AT}"])
        # Rows whose time is NULL are malformed, and NULL is not above the frontier.
        tests = [f"{_AT} >= {_whole(max(frontier, BEGINNING + 1))}", f"{_AT} < {_whole(INFINITY - 1)}"]
        tests += [f"{c} IS NOT NULL" for c, f in zip(self._base, schema, strict=True) if not f.nullable]
        self._select([*self._base, f"CASE WHEN {' AND '.join(tests)} THEN {_AT} END AS {_SEEN}"])
        whole = ", ".join(f"{c} AS {quoted(name)}" for c, name in zip(self._base, schema.names, strict=True))
        self._select([*self._base, _SEEN, f"CASE WHEN {_SEEN} IS NULL THEN array(struct({whole})) END AS {_APART}"])
        partition = self._intake.partition
        place = None if partition is None else self._place(self._base[schema.index(partition)])
        shapes = tuple(self._part(i, part) for i, part in enumerate(self._parts))
        self._select(self._columns)
        return self._from.removeprefix("(").removesuffix(")"), Shape(place, shapes)

    def _select(self, expressions: Sequence[str]) -> None:
        self._from = f"(SELECT {', '.join(expressions)} FROM {self._from})"

    def _place(self, column: str) -> int:
        if column not in self._known:
            self._known[column] = len(self._columns)
            self._columns.append(column)
        return self._known[column]

    def _part(self, number: int, part: NativePart) -> PartShape:
        # By name: the text of the column now. What is not computed is not selected again.
        columns = dict(zip(self._intake.schema.names, self._base, strict=True))
        self._select([*self._carried, f"{_SEEN} IS NOT NULL AS {_KEPT}"])
        made = 0
        for step in part.steps:
            if isinstance(step, n.Stamp):
                columns[step.column] = _SEEN
                continue
            self._select([*self._carried, _KEPT, *_named(columns)])
            if isinstance(step, n.Filter):
                passes = f"CASE WHEN {_KEPT} THEN coalesce({_text(step.predicate, step.input.schema)}, FALSE) ELSE FALSE END"
                hidden = [quoted(f"{CARRIED}{number} {made} {i}") for i in range(len(columns))]
                aside = [f"{quoted(name)} AS {new}" for name, new in zip(columns, hidden, strict=True)]
                self._select([*self._carried, *aside, f"{passes} AS {_KEPT}"])
            else:
                assert isinstance(step, n.Project)
                hidden = [quoted(f"{CARRIED}{number} {made} {i}") for i in range(len(step.expressions))]
                values = [self._value(scalar, step.input.schema) for _, scalar in step.expressions]
                aside = [f"{value} AS {new}" for value, new in zip(values, hidden, strict=True)]
                self._select([*self._carried, _KEPT, *aside])
            columns = dict(zip(step.schema.names, hidden, strict=True))
            made += 1
        return self._finished(number, part, columns)
