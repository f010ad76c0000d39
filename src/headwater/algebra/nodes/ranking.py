"""Rows by their place in an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import pyarrow as pa
from attrs import field, frozen

from headwater.algebra.nodes.base import INPUT, Plan, Relational, Unary, with_fields
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.plan_line import after, offset_text
from headwater.algebra.row_properties import Rows, simplest
from headwater.algebra.time_properties import NO_ROW_TIMES, RowTimes
from headwater.expressions.printing import quoted
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY


@frozen(cache_hash=True)
class SortKey:
    """One column of an ORDER BY; Spark's defaults."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def text(self) -> str:
        """NULLs come first where the order ascends; where it descends their place is always written."""
        written = self.descending or not self.nulls_first
        nulls = f" nulls {'first' if self.nulls_first else 'last'}" if written else ""
        return f"{quoted(self.column)}{' desc' if self.descending else ''}{nulls}"

    @classmethod
    def read(cls, cursor: Cursor, schema: Schema) -> Self:
        column = cursor.column(schema)
        descending = cursor.accept("desc")
        if not descending:
            cursor.accept("asc")
        if cursor.accept("nulls"):
            return cls(column, descending, cursor.choice({"first": True, "last": False}))
        return cls(column, descending, nulls_first=not descending)  # Spark's defaults


@frozen(cache_hash=True)
class TopK(Relational, Unary):
    """At each instant, in each partition, the rows number offset+1 to offset+limit in the order.

    Ties go by the rows' values in the canonical order, so that there are none: it is a function of the snapshot. With
    ``rank`` the row's number in its partition is one more column (ROW_NUMBER), an INT. limit INFINITY: all rows after the
    offset.
    """

    input: Plan = field(metadata=INPUT)
    order: tuple[SortKey, ...]
    limit: int = INFINITY
    offset: int = 0
    partition: tuple[str, ...] = ()
    rank: str | None = None

    words = ("top",)
    keeper = "a top-k"

    def line(self) -> str:
        limit = "all" if self.limit == INFINITY else self.limit
        order = f" by {', '.join(key.text() for key in self.order)}" if self.order else ""
        rank = f" as {quoted(self.rank)}" if self.rank is not None else ""
        return f"top {limit}{offset_text(self.offset)}{order}{after('partition by', self.partition)}{rank}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        (below,) = inputs
        limit = INFINITY if cursor.accept("all") else cursor.integer("a number of rows or all")
        offset = cursor.number_after("offset", 0)
        order = cursor.listed(lambda: SortKey.read(cursor, below.schema)) if cursor.accept("by") else ()
        partition = cursor.columns_after(below.schema, "partition", "by")
        rank = cursor.name("the name of the rank in double quotes") if cursor.accept("as") else None
        return cls(below, order, limit, offset, partition, rank)

    def label(self, *, timed: bool) -> str:
        order = ", ".join(f"{k.column}{' DESC' if k.descending else ''}" for k in self.order)
        many = "Number rows" if self.limit == INFINITY else f"Top {self.limit:,}"
        skipped = f" after {self.offset:,}" if self.offset else ""
        sorting = f" by {order}" if order else ""
        partition = f" in each {', '.join(self.partition)}" if self.partition else ""
        return f"{many}{skipped}{sorting}{partition}"

    def _schema(self) -> Schema:
        return self.input.schema if self.rank is None else with_fields(self.input.schema, self._rank(self.rank))

    def _rank(self, name: str) -> Field:
        return Field(name, pa.int32(), nullable=False)

    def names(self) -> tuple[frozenset[str], ...]:
        return (frozenset((*self.partition, *(key.column for key in self.order))),)

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return self.partition

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """A part of the rows; the rank numbers them in each partition."""
        (below,) = inputs
        keys = list(below.keys)
        schema = below.schema
        if self.rank is not None:
            schema = with_fields(schema, self._rank(self.rank))
            keys.append(frozenset((*self.partition, self.rank)))
        if self.limit <= 1:
            keys.append(frozenset(self.partition))
        return simplest(schema, keys, below.uniform, below.constants)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return inputs[0] if inputs[0].lifetime == 1 else NO_ROW_TIMES
