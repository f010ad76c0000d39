"""A batch of a stream as one DataFrame that holds what its queries need of it: read once, crossing into Python once.

Columns: the instant of every row that is taken; what is late or malformed, whole, in a list that hardly ever has a row; then
the parts of the queries (``native_parts``), a filtered one as a list of at most one row, any other as columns of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.algebra import nodes as n
from headwater.backends.spark.native_computed import native_columns
from headwater.backends.spark.native_parts import CARRIED, SPARK, NativePart
from headwater.backends.spark.session import suits
from headwater.clock.seen import Seen
from headwater.expressions.nodes import Expression
from headwater.expressions.spark import to_spark
from headwater.expressions.spark_values import literal, quoted
from headwater.model.arrays import int64_values
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Operator
from headwater.sources.intake import Intake, sighted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_AT, SEEN, APART, KEPT = (quoted(CARRIED + name) for name in ("at", "seen", "apart", "kept"))
_DAY = 86_400_000_000


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
    reduced: tuple[int, int] = (0, 0)
    """How many rows were put together by Spark, and what they became."""


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
        columns = [as_type(column, f.type) for column, f in zip(columns, part.schema, strict=True)]
        delta = Delta(part.schema, columns, start, start + 1, np.ones(len(start), np.int64))
        for window in part.windows:
            delta = window.step(None, (delta,), (BEGINNING,)).delta
        return delta


@frozen
class WholeRows:
    """Rows as they came: all of them are judged by the intake."""

    parts: tuple[PartShape, ...] = ()

    def read(self, batch: pa.RecordBatch) -> Found:
        return Found([], 0, batch, {})


def _only(column: pa.Array, rows: pa.Array | None) -> pa.Array:
    return column if rows is None else column.filter(rows)


def _plain(column: pa.Array) -> pa.Array:
    zoned = pa.types.is_timestamp(column.type) and column.type.tz is not None
    return column.cast(pa.timestamp("us")) if zoned else column


def as_type(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return column if column.type == type_ else column.cast(type_)


def native_rows(
    frame: DataFrame, intake: Intake, frontier: int, parts: Sequence[NativePart]
) -> tuple[DataFrame, Shape] | None:
    """The batch for these parts; None if it had better come as it is: they ask for everything, or the session differs."""
    whole = all(not part.steps and len(part.plan.schema) == len(intake.schema) for part in parts)
    if whole or not SPARK.carries(intake.schema) or not suits(frame.sparkSession):
        return None
    text, shape = _Parts(intake, frontier).of(parts)
    return selected(frame, text), shape


_VIEW = "`the rows of the batch`"


def selected(frame: DataFrame, text: BatchText) -> DataFrame:
    """What the text says of the batch. One text is analysed sooner than many small steps."""
    view = f"headwater_rows_{re.sub('[^a-z0-9]', '_', text.intake.stream.casefold())}"
    frame.createOrReplaceTempView(view)
    return frame.sparkSession.sql(text.sql.removeprefix("(").removesuffix(")").replace(_VIEW, view))


class BatchText:
    """One SELECT inside another, each over the columns of the one before. First: which rows are taken, and when they are."""

    def __init__(self, intake: Intake, frontier: int | None) -> None:
        """``frontier``: rows before it are late; None: all rows are known to be well-formed and in time."""
        self.intake, self.sql = intake, _VIEW
        self._all, schema = frontier is None, intake.schema
        self.base = [quoted(f"{CARRIED}{i}") for i in range(len(schema))]
        """The columns of the stream, under names that no query has."""
        self.carried = [*self.base, SEEN]
        fits = self._compute()
        if frontier is None:
            self.select([*_declared(schema, self.base), f"{_instant(intake)} AS {SEEN}"])
            return
        self.select([*_declared(schema, self.base), f"{_instant(intake)} AS {_AT}", *fits])
        # A row without a time is malformed: NULL is not above the frontier either.
        tests = [f"{_AT} >= {bigint(max(frontier, BEGINNING + 1))}", f"{_AT} < {bigint(INFINITY - 1)}"]
        tests += fits
        tests += [f"{c} IS NOT NULL" for c, f in zip(self.base, schema, strict=True) if not f.nullable]
        self.select([*self.base, f"CASE WHEN {' AND '.join(tests)} THEN {_AT} END AS {SEEN}"])

    def _compute(self) -> list[str]:
        """The columns that rows do not bring; gives the names of those that tell of which rows they can be computed."""
        computed, brought = native_columns(self.intake), self.intake.brought
        if not computed:
            return []
        own = list(map(quoted, brought.names))
        self.select(_declared(brought, own))
        fits = [quoted(f"{CARRIED}fits {i}") for i in range(len(computed))]
        made = [f"{c.text} AS {quoted(c.name)}" for c in computed]
        self.select([*own, *made, *(f"{c.fits} AS {name}" for c, name in zip(computed, fits, strict=True))])
        return fits

    def select(self, expressions: Sequence[str]) -> None:
        self.sql = f"(SELECT {', '.join(expressions)} FROM {self.sql})"

    @property
    def row(self) -> str:
        """All columns that the rows of the stream bring."""
        pairs = dict(zip(self.intake.schema.names, self.base, strict=True))
        brought = self.intake.brought.names
        return f"struct({', '.join(aliased([pairs[name] for name in brought], brought))})"

    def set_apart(self) -> None:
        """Carry along what is late or malformed, whole."""
        self.select([*self.carried, f"CASE WHEN {SEEN} IS NULL THEN array({self.row}) END AS {APART}"])
        self.carried.append(APART)

    def apply(self, steps: Iterable[n.Plan]) -> dict[str, str]:
        """The columns that these make of the rows, and which rows they keep; what is a column as it came, by name."""
        names = self.intake.schema.names
        origin = dict(zip(names, self.base, strict=True))
        taken = "TRUE" if self._all else f"{SEEN} IS NOT NULL"
        self.select([*self.carried, f"{taken} AS {KEPT}", *aliased(self.base, names)])
        for step in steps:
            kept, values = KEPT, [quoted(name) for name in step.inputs[0].schema.names]
            match step:
                case n.Filter(input=below, predicate=predicate):
                    passes = f"coalesce({_text(predicate)}, FALSE)"
                    kept = f"CASE WHEN {KEPT} THEN {passes} ELSE FALSE END AS {KEPT}"
                case n.Stamp():
                    values.append(SEEN)
                case n.Project(input=below, expressions=expressions):
                    values = [_guarded(_text(scalar), below.schema) for _, scalar in expressions]
            known = {quoted(name): text for name, text in origin.items()} | {SEEN: SEEN}
            origin = {name: known[v] for name, v in zip(step.schema.names, values, strict=True) if v in known}
            self.select([*self.carried, kept, *aliased(values, step.schema.names)])
        return origin


class _Parts(BatchText):
    """What is late or malformed, and what the parts need."""

    def __init__(self, intake: Intake, frontier: int) -> None:
        super().__init__(intake, frontier)
        self.set_apart()
        self._result = {SEEN: 0, APART: 1}
        """Its columns, each once, and their places: what a part takes as it came crosses once for all of them."""

    def of(self, parts: Sequence[NativePart]) -> tuple[BatchText, Shape]:
        partition = self.intake.partition
        place = None if partition is None else self._place(self.base[self.intake.schema.index(partition)])
        shapes = tuple(self._part(i, part) for i, part in enumerate(parts))
        self.select(list(self._result))
        return self, Shape(place, shapes)

    def _place(self, column: str) -> int:
        return self._result.setdefault(column, len(self._result))

    def _part(self, number: int, part: NativePart) -> PartShape:
        schema, origin = part.plan.schema, self.apply(part.steps)
        if part.is_filtered:
            out = quoted(f"{CARRIED}part {number}")
            row = f"array(struct({', '.join(map(quoted, schema.names))}))"
            self.select([*self.carried, f"CASE WHEN {KEPT} THEN {row} END AS {out}"])
            outs, places = [out], [self._place(out)]
        else:
            made = {name: f"{CARRIED}part {number} {name}" for name in schema.names if name not in origin}
            self.select([*self.carried, *aliased(map(quoted, made), made.values())])
            outs = list(map(quoted, made.values()))
            places = [self._place(origin[c] if c in origin else quoted(made[c])) for c in schema.names]
        self.carried += outs
        return PartShape(part.node, schema, tuple(places), part.is_filtered, part.windows)


def _declared(schema: Schema, base: Sequence[str]) -> list[str]:
    """The columns of the stream; a TIMESTAMP counts microseconds in UTC, as expressions expect it."""
    texts = (
        f"CAST({quoted(f.name)} AS TIMESTAMP)" if pa.types.is_timestamp(f.type) else quoted(f.name) for f in schema
    )
    return [f"{text} AS {name}" for text, name in zip(texts, base, strict=True)]


def _instant(intake: Intake) -> str:
    """The time of a row as an instant; NULL where there is none."""
    assert intake.time is not None, "rows with intervals of their own are not native"
    type_, name = intake.schema.field(intake.time).type, quoted(intake.time)
    if pa.types.is_timestamp(type_):
        return f"unix_micros(CAST({name} AS TIMESTAMP))"
    if not pa.types.is_date32(type_):
        return f"CAST({name} AS BIGINT)"
    most, days = bigint(INFINITY // _DAY), f"unix_date({name})"
    return f"CASE WHEN {days} BETWEEN -{most} AND {most} THEN {days} * {bigint(_DAY)} END"


def aliased(texts: Iterable[str], names: Iterable[str]) -> list[str]:
    return [f"{text} AS {quoted(name)}" for text, name in zip(texts, names, strict=True)]


def _guarded(text: str, schema: Schema) -> str:
    """Computed only of rows that are there: others may be what it would fail on."""
    return text if text in map(quoted, schema.names) else f"CASE WHEN {KEPT} THEN {text} END"


def _text(scalar: Expression) -> str:
    text = to_spark(scalar)
    assert text is not None, "parts are native"
    return text


def bigint(number: int) -> str:
    return literal(number, pa.int64())
