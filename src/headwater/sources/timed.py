"""Rows with their times: what the ways to encode elements have in common."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY, MICROSECONDS
from headwater.sources.columns import nulls
from headwater.sources.conform import convert, first_reasons

TIMESTAMP = pa.timestamp("us")
_DAY = MICROSECONDS["DAY"]


class Timed(NamedTuple):
    """Rows of the stream, and over which interval each is valid how often."""

    rows: pa.RecordBatch
    start: Int64Array
    end: Int64Array
    weight: Int64Array
    second: BoolArray | None = None
    """Where a row is the second half of a change: what comes in place of what it takes away. None: nowhere."""

    def none(self) -> Timed:
        """Without any row."""
        return Timed(self.rows.slice(0, 0), self.start[:0], self.end[:0], self.weight[:0])

    def filter(self, kept: BoolArray) -> Timed:
        if kept.all():
            return self
        second = None if self.second is None else self.second[kept]
        return Timed(self.rows.filter(pa.array(kept)), self.start[kept], self.end[kept], self.weight[kept], second)

    def whole(self) -> Timed:
        """Every change once."""
        return self if self.second is None else self.filter(~self.second)


class Decoded(NamedTuple):
    """What was found in the rows of a piece, besides the bad ones."""

    timed: Timed
    reasons: pa.Array | None
    """What is wrong with the rows as they came, NULL where nothing is; None: all are good."""
    promise: int = BEGINNING
    """The source's own word: nothing before this instant comes any more."""
    counted: tuple[tuple[int, int, int], ...] = ()
    """(start, end, number): so many events of the stream there are in the interval (CEDR A.1)."""
    syncs: tuple[tuple[int, int], ...] = ()
    """(sync time, number) of the events that came, where they are counted."""
    promises: Mapping[str, int] = MappingProxyType({})
    """The source's word on each partition that a column names."""


def arrow_schema(schema: Schema) -> pa.Schema:
    """Without NOT NULL, which holds once the bad rows are gone."""
    return pa.schema([pa.field(f.name, f.type) for f in schema])


def no_rows(schema: Schema) -> Timed:
    nothing = np.empty(0, np.int64)
    rows = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=arrow_schema(schema))
    return Timed(rows, nothing, nothing, nothing)


def at_instants(rows: pa.RecordBatch, start: Int64Array) -> Timed:
    """Rows that are valid at one instant each."""
    return Timed(rows, start, start + 1, np.ones(len(start), np.int64))


def instants(column: pa.Array, name: str, *, note: str = "") -> tuple[Int64Array, pa.Array | None]:
    """The time of each row in instants, and what is wrong with some of them; ``note``: what messages say of the column."""
    days = pa.types.is_date32(column.type)
    stamps, beyond = convert(column, Field(name, TIMESTAMP)) if days else (column, None)
    whole = stamps.cast(pa.int64())
    reasons = None
    if column.null_count:
        missing = nulls(column)
        reasons = first_reasons(None, missing, f'the time column "{name}"{note} is NULL')
    values = (pc.fill_null(whole, 0) if whole.null_count else whole).to_numpy(zero_copy_only=False)
    # One instant at either end is no time of a row: before all time, and an interval that would never end.
    outside = (values <= BEGINNING) | (values >= INFINITY - 1)
    if beyond is not None:
        outside = outside | beyond
    if outside.any():
        reasons = first_reasons(reasons, outside, f'the time column "{name}"{note} is out of range')
        values = np.where(outside, 0, values)
    return values, reasons


def as_times(times: Int64Array, type_: pa.DataType) -> pa.Array:
    """Instants as values of a time column."""
    if pa.types.is_date32(type_):
        return pa.array((times // _DAY).astype(np.int32)).cast(type_)
    return pa.array(times).cast(type_)


def time_step(type_: pa.DataType) -> int:
    """How many instants one value of a time column is after another."""
    return _DAY if pa.types.is_date32(type_) else 1
