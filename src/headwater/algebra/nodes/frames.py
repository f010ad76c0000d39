"""Frames: rows with what functions say of the rows before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import pyarrow as pa
from attrs import field, frozen

from headwater.algebra.nodes.base import INPUT, OtherInstants, Plan, Unary, with_fields
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.plan_line import after, plain_name
from headwater.algebra.row_properties import Rows, simplest
from headwater.algebra.time_properties import NO_ROW_TIMES, RowTimes, Times
from headwater.expressions.aggregates import AGGREGATES
from headwater.expressions.aggregates import Aggregate as BuiltIn
from headwater.expressions.printing import quoted
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.model.types import sql_name

FRAME_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP")
"""The aggregates that frames of rows take: what they say follows from totals, or is one of the values."""
FRAME_VALUES = ("LAST_VALUE", "NTH_VALUE")
"""The functions of frames that are no aggregates: the value of a row of the frame, by its number from either end."""


@frozen(cache_hash=True)
class FrameCall:
    """One function over the frame of each row: those from ``first`` rows before it to ``last`` rows before it."""

    function: str
    """One of ``FRAME_AGGREGATES`` or ``FRAME_VALUES``."""
    output: str
    type: pa.DataType
    argument: str | None = None
    """Input column; None only for COUNT(*)."""
    filter: str | None = None
    """A BOOLEAN input column: only rows where it is true take part. For aggregates only."""
    first: int = INFINITY
    """INFINITY: the frame begins with the partition."""
    last: int = 0
    """0: the frame ends with the row itself."""
    peers: bool = False
    """Does the frame go on, beyond the row itself, to the last row of the same instant?"""
    nth: int = 0
    """Of NTH_VALUE: which row of the frame, from 1."""

    def text(self) -> str:
        arguments = "*" if self.argument is None else quoted(self.argument)
        arguments += f", {self.nth}" if self.nth else ""
        condition = f" FILTER {quoted(self.filter)}" if self.filter is not None else ""
        first = "unbounded" if self.first == INFINITY else self.first
        frame = f"rows {first} to {'peers' if self.peers else self.last}"
        name = f"{quoted(self.output)} {sql_name(self.type)}"
        return f"{plain_name(self.function)}({arguments}){condition} {frame} AS {name}"

    @classmethod
    def read(cls, cursor: Cursor, schema: Schema) -> Self:
        function = cursor.plain_name("a function of frames, such as COUNT")
        cursor.expect("(")
        argument = None if cursor.accept("*") else cursor.column(schema, "* or a column in double quotes")
        nth = cursor.integer("the number of a row") if cursor.accept(",") else 0
        cursor.expect(")")
        condition = cursor.column(schema) if cursor.accept("FILTER") else None
        cursor.expect("rows")
        first = INFINITY if cursor.accept("unbounded") else cursor.integer("a number of rows or unbounded")
        cursor.expect("to")
        peers = cursor.accept("peers")
        last = 0 if peers else cursor.integer("a number of rows or peers")
        cursor.expect("AS")
        output = cursor.name("the name of the result in double quotes")
        return cls(function, output, cursor.type(), argument, condition, first, last, peers, nth)

    def label(self) -> str:
        only = f" FILTER ({self.filter})" if self.filter else ""
        first = "all rows" if self.first == INFINITY else f"{self.first:,} rows before"
        last = "its instant" if self.peers else f"{self.last:,} before" if self.last else "itself"
        nth = f", {self.nth}" if self.nth else ""
        return f"{self.function}({self.argument or '*'}{nth}){only} from {first} to {last} AS {self.output}"

    @property
    def built_in(self) -> BuiltIn | None:
        """What is known of the function as an aggregate; nothing of one that is none."""
        return AGGREGATES.get(self.function)

    @property
    def result(self) -> Field:
        return Field(self.output, self.type, nullable=self.built_in is None or not self.built_in.counts)

    @property
    def keeps_totals(self) -> bool:
        """Is something kept of every partition, for ever, besides its last rows?"""
        return self.first == INFINITY and self.function != "LAST_VALUE"

    @property
    def reach(self) -> int:
        """How many rows before a row must be kept for it; what came earlier is kept as totals, if at all."""
        return self.last if self.first == INFINITY else self.first


@frozen(cache_hash=True)
class Frames(OtherInstants, Unary):
    """OVER (PARTITION BY … ORDER BY time ROWS …): each row, at its own instants, with a column for every call.

    The rows of a partition are numbered by their instants; ties go by the rows' values, as in ROWS windows. A row that
    lasts counts at each of its instants.
    """

    input: Plan = field(metadata=INPUT)
    calls: tuple[FrameCall, ...]
    partition: tuple[str, ...] = ()

    words = ("frames",)
    keeper = "a frame of rows"
    delay = 0

    def line(self) -> str:
        return f"frames{after('partition by', self.partition)}: {', '.join(call.text() for call in self.calls)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        (below,) = inputs
        partition = cursor.columns_after(below.schema, "partition", "by")
        cursor.expect(":")
        return cls(below, cursor.listed(lambda: FrameCall.read(cursor, below.schema)), partition)

    def label(self, *, timed: bool) -> str:
        partition = f" in each {', '.join(self.partition)}" if self.partition else ""
        return f"Frames{partition}: {', '.join(call.label() for call in self.calls)}"

    def _schema(self) -> Schema:
        return with_fields(self.input.schema, *(call.result for call in self.calls))

    def names(self) -> tuple[frozenset[str], ...]:
        read = (name for call in self.calls for name in (call.argument, call.filter) if name is not None)
        return (frozenset((*self.partition, *read)),)

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return self.partition

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """The rows of the input's snapshot, with more columns."""
        (below,) = inputs
        schema = with_fields(below.schema, *(call.result for call in self.calls))
        return simplest(schema, below.keys, below.uniform, below.constants)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        (below,) = inputs
        return Times(
            1, accumulates=below.accumulates, starts_by=below.starts_by if below.lifetime == 1 else frozenset()
        )

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return inputs[0] if inputs[0].lifetime == 1 else NO_ROW_TIMES

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return all(inputs)

    def problem(self) -> str | None:
        for call in self.calls:
            if call.last > call.first or (call.peers and (call.first < INFINITY or call.last)):
                return f"the frame of {call.output} ends before it begins, or where no frame ends"
            if call.function not in (*FRAME_AGGREGATES, *FRAME_VALUES):
                return f"no frame of rows takes {call.function}"
            if (call.function == "NTH_VALUE") != (call.nth > 0):
                return f"only NTH_VALUE has the number of a row, not {call.function}"
        return None
