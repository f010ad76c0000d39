"""Windows: rows of several instants together."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import field, frozen

from headwater.algebra.nodes.base import INPUT, OtherInstants, Plan, Unary, with_fields
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.plan_line import after, offset_text
from headwater.algebra.row_properties import Rows, simplest
from headwater.algebra.time_properties import NO_ROW_TIMES, RowTimes, Times, rounded
from headwater.expressions.printing import quoted
from headwater.model.durations import length
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.model.types import sql_name

_TIMESTAMP = pa.timestamp("us")


class _Window(OtherInstants, Unary):
    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return False


@frozen(cache_hash=True)
class TimeWindow(_Window):
    """ω^time with size and slide (8.17, 17.1); size INFINITY = UNBOUNDED. Intervals count at each of their instants."""

    input: Plan = field(metadata=INPUT)
    size: int
    slide: int = 1

    words = ("window range",)
    keeper = "a RANGE window"

    @property
    def unbounded(self) -> bool:
        return self.size == INFINITY

    def line(self) -> str:
        size = "unbounded" if self.unbounded else self.size
        return f"window range {size}{f' slide {self.slide}' if self.slide != 1 else ''}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        size = INFINITY if cursor.accept("unbounded") else cursor.integer("a number of instants or unbounded")
        return cls(inputs[0], size, cursor.number_after("slide", 1))

    def label(self, *, timed: bool) -> str:
        sliding = f" SLIDE {length(self.slide, timed=timed)}" if self.slide != 1 else ""
        return f"Window RANGE {length(self.size, timed=timed)}{sliding}"

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (wanted,)

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """Rows of ``size`` instants meet; those of one instant are a snapshot of the input."""
        return inputs[0] if self.size == 1 else inputs[0].only_constants()

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        """Over elements that end the window sees chronons; an endless one would fill it for ever."""
        (below,) = inputs
        lifetime = rounded(self.size, self.slide) if below.ends else None
        ends = below.ends and not self.unbounded
        return Times(lifetime, below.ends, ends, self.unbounded or below.accumulates)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        moved = self.slide != 1 or inputs[0].lifetime != 1
        return NO_ROW_TIMES if moved else RowTimes(inputs[0].columns, self.size)

    @property
    def reducible(self) -> bool:
        """A window of one instant is the identity (10.7)."""
        return self.size == self.slide == 1

    @property
    def delay(self) -> int:
        return self.slide - 1 + self.span

    @property
    def span(self) -> int:
        return 0 if self.unbounded else self.size

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        """What lasts is cut into its instants first."""
        return inputs[0].lifetime == 1

    def filter_may_use(self) -> frozenset[str]:
        """A filter does not touch validity."""
        return frozenset(self.schema.names)


@frozen(cache_hash=True)
class RowWindow(_Window):
    """ω^count, or ω^partition with keys; slide in rows (8.18, 8.19, 17.2). Ties at one instant go by the rows' values."""

    input: Plan = field(metadata=INPUT)
    rows: int
    slide: int = 1
    partition: tuple[str, ...] = ()

    words = ("window rows",)
    keeper = "a ROWS window"
    delay = 0

    def line(self) -> str:
        slide = f" slide {self.slide}" if self.slide != 1 else ""
        return f"window rows {self.rows}{slide}{after('partition by', self.partition)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        (below,) = inputs
        rows, slide = cursor.integer("a number of rows"), cursor.number_after("slide", 1)
        return cls(below, rows, slide, cursor.columns_after(below.schema, "partition", "by"))

    def label(self, *, timed: bool) -> str:
        sliding = f" SLIDE {self.slide:,}" if self.slide != 1 else ""
        return f"Window {_partition_by(self.partition)}ROWS {self.rows:,}{sliding}"

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return self.partition

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """The last rows of each partition, whenever they came; one row is alone in its partition."""
        return inputs[0].only_constants(keys=[frozenset(self.partition)] if self.rows == 1 else ())

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return Times(end_ordered=not self.partition and inputs[0].ends)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        moved = self.slide != 1 or inputs[0].lifetime != 1
        return NO_ROW_TIMES if moved else RowTimes(inputs[0].columns)


@frozen(cache_hash=True)
class HopWindow(_Window):
    """TUMBLE and HOP: a row at t belongs to every window [k*slide + offset, k*slide + offset + size) that contains t.

    One copy per window, with the window's ends as columns, valid from the window's end until the next report:
    [window_end, window_end + slide), or for a shorter ``lifetime``. A row counts at each of its instants.
    """

    input: Plan = field(metadata=INPUT)
    size: int
    slide: int
    offset: int = 0
    start: str = "window_start"
    end: str = "window_end"
    time: pa.DataType = _TIMESTAMP
    """TIMESTAMP, or BIGINT where instants have no unit."""
    lifetime: int | None = None
    """How long a copy is valid, at most the slide, so that one window is reported at a time; None: until the next report."""

    words = ("hop",)
    keeper = "a HOP window"

    @property
    def shown(self) -> int:
        """How long a copy is valid."""
        return self.slide if self.lifetime is None else self.lifetime

    def line(self) -> str:
        lifetime = f" lifetime {self.lifetime}" if self.lifetime is not None else ""
        return f"hop size {self.size} slide {self.slide}{offset_text(self.offset)}{lifetime}{_ends_text(self)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        cursor.expect("size")
        size = cursor.integer("a number of instants")
        cursor.expect("slide")
        slide = cursor.integer("a number of instants")
        offset, lifetime = cursor.number_after("offset", 0), _read_lifetime(cursor, slide)
        return cls(inputs[0], size, slide, offset, *_read_ends(cursor), lifetime)

    def label(self, *, timed: bool) -> str:
        kind = "Tumble" if self.size == self.slide else f"Hop by {length(self.slide, timed=timed)}, size"
        shown = f", shown for {length(self.lifetime, timed=timed)}" if self.lifetime is not None else ""
        return f"{kind} {length(self.size, timed=timed)}{shown}"

    def _schema(self) -> Schema:
        return _with_ends(self, self.input.schema)

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (wanted - {self.start, self.end},)

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """At no instant two windows are reported, so all rows have its ends; keys survive if it is one instant long."""
        (below,) = inputs
        schema, ends = _with_ends(self, below.schema), (self.start, self.end)
        if self.size == 1:
            return simplest(schema, below.keys, below.uniform.union(ends), below.constants)
        return simplest(schema, (), (*below.constants, *ends), below.constants)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return Times(self.shown, accumulates=inputs[0].accumulates, starts_by=frozenset({self.start, self.end}))

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return RowTimes(frozenset([self.end]), self.shown)

    @property
    def delay(self) -> int:
        return self.size + self.slide

    @property
    def span(self) -> int:
        return self.shown

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        return inputs[0].lifetime == 1

    def filter_may_use(self) -> frozenset[str]:
        """As for time windows; the ends are not there yet."""
        return frozenset(self.input.schema.names)


@frozen(cache_hash=True)
class SessionWindow(_Window):
    """SESSION: rows of a partition at most ``gap`` apart are one session, which ends ``gap`` after its last row.

    Each row (at each of its instants) with its session's ends as columns, valid [window_end, infinity). A row exactly
    ``gap`` after another continues its session, as in Flink.
    """

    input: Plan = field(metadata=INPUT)
    gap: int
    partition: tuple[str, ...] = ()
    start: str = "window_start"
    end: str = "window_end"
    time: pa.DataType = _TIMESTAMP

    words = ("session",)
    keeper = "a SESSION window"

    def line(self) -> str:
        return f"session gap {self.gap}{after('partition by', self.partition)}{_ends_text(self)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        (below,) = inputs
        cursor.expect("gap")
        gap = cursor.integer("a number of instants")
        return cls(below, gap, cursor.columns_after(below.schema, "partition", "by"), *_read_ends(cursor))

    def label(self, *, timed: bool) -> str:
        return f"Session {_partition_by(self.partition)}gap {length(self.gap, timed=timed)}"

    def _schema(self) -> Schema:
        return _with_ends(self, self.input.schema)

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return self.partition

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """The rows of all sessions that are over."""
        (below,) = inputs
        return below.only_constants(_with_ends(self, below.schema))

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return Times(INFINITY, accumulates=True, starts_by=frozenset({self.end}))

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return RowTimes(frozenset([self.end]), INFINITY)

    @property
    def delay(self) -> int:
        return self.gap

    @property
    def span(self) -> int:
        return self.gap


def _with_ends(plan: HopWindow | SessionWindow, schema: Schema) -> Schema:
    """The columns of the input and the ends of the window."""
    return with_fields(schema, *(Field(name, plan.time, nullable=False) for name in (plan.start, plan.end)))


def _ends_text(plan: HopWindow | SessionWindow) -> str:
    return f" as {quoted(plan.start)}, {quoted(plan.end)} {sql_name(plan.time)}"


def _partition_by(columns: tuple[str, ...]) -> str:
    return f"PARTITION BY {', '.join(columns)} " if columns else ""


def _read_lifetime(cursor: Cursor, slide: int) -> int | None:
    if not cursor.accept("lifetime"):
        return None
    start = cursor.at
    lifetime = cursor.integer("a number of instants")
    if not 1 <= lifetime <= slide:
        message = f"expected a lifetime from 1 to the slide, {slide}, found {lifetime}"
        raise cursor.mistake(message, at=start, length=cursor.at - start)
    return lifetime


def _read_ends(cursor: Cursor) -> tuple[str, str, pa.DataType]:
    cursor.expect("as")
    start = cursor.name("the name of the window's start in double quotes")
    cursor.expect(",")
    return start, cursor.name("the name of the window's end in double quotes"), cursor.type()
