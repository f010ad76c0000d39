"""Rows become elements: what a task does with every piece of input, whatever the source.

A row of a stream with a time column is valid at that one instant, ``[t, t + 1)``. A stream without one carries intervals of
its own in the columns ``_start``, ``_end`` (NULL: for ever) and ``_weight`` (left out: 1). Rows that come after their time
was final are late, rows that are not what is declared are bad; both are kept apart and none is lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from headwater.clock.frontier import Seen, StreamClock
from headwater.errors import StreamError
from headwater.language.catalog import Stream
from headwater.language.time_clauses import Disorder, LatePolicy, LateRows, Watermark
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import END, RESERVED, START, WEIGHT, Field, Schema
from headwater.model.time import BEGINNING, INFINITY, MICROSECONDS, render
from headwater.sources.base import BadRows, Malformed, Piece, Source
from headwater.sources.columns import coalesce, nulls
from headwater.sources.conform import UnfitError, conform, convert, first_reasons
from headwater.sources.malformed import all_bad_rows, bad_row_error, bad_rows, rows_as_text, unreadable

_INTERVAL = Schema.of(**{START: "BIGINT", END: "BIGINT", WEIGHT: "BIGINT"})
_TIMESTAMP = pa.timestamp("us")
_DAY = MICROSECONDS["DAY"]


class Taken(NamedTuple):
    """What became of a piece."""

    delta: Delta
    late: pa.RecordBatch
    """Rows of the declared columns that came too late and are diverted; empty with any other policy."""
    bad: BadRows
    seen: list[Seen]
    """One a partition; the counts of late and bad rows are in the first."""


class _Timed(NamedTuple):
    rows: pa.RecordBatch
    start: Int64Array
    end: Int64Array
    weight: Int64Array


@frozen
class Intake:
    """How rows of one stream become elements. Picklable, without state: the frontier is the caller's."""

    stream: str
    schema: Schema
    time: str | None = None
    """The time column; None: rows carry their intervals."""
    disorder: int | None = 0
    partition: str | None = None
    """The column whose values have a clock each; None: the source's own partitions do."""
    late: LatePolicy = LatePolicy.DIVERT
    bad: Malformed = "fail"

    @classmethod
    def of(cls, stream: Stream, source: Source, *, partition: str | None = None) -> Intake:
        """As the stream declares it."""
        policy = next((c.policy for c in stream.clauses if isinstance(c, LateRows)), LatePolicy.DIVERT)
        return cls(
            stream.name, stream.schema, stream.time, declared_disorder(stream), partition, policy, source.malformed
        )

    def clock(self) -> StreamClock:
        """The clock of the stream before anything came."""
        return StreamClock(self.disorder)

    def take(self, piece: Piece, frontier: int) -> Taken:
        """The elements of a piece; ``frontier`` is the stream's before this tick.

        Raises ``StreamError`` BAD_ROW or LATE_ROW where the policy is to fail.
        """
        timed, bad = self._timed(piece)
        bad = all_bad_rows([piece.bad, bad])
        if self.bad == "fail" and len(bad.reason):
            raise bad_row_error(self.stream, bad)
        behind = self._behind(timed, frontier)
        late = int(np.count_nonzero(behind)) if behind is not None else 0
        diverted = timed.rows.slice(0, 0)
        if late and behind is not None:
            timed, diverted = self._without_late(timed, behind, frontier)
        delta = Delta(self.schema, timed.rows.columns, timed.start, timed.end, timed.weight)
        return Taken(delta, diverted, bad, self._seen(piece, timed, late, len(bad.reason)))

    # -- columns and times -------------------------------------------------------------------------------------------

    def _timed(self, piece: Piece) -> tuple[_Timed, BadRows | None]:
        """The good rows with their intervals, and the bad ones."""
        batch = piece.rows
        try:
            rows, reasons = conform(batch, self.schema)
            start, end, weight, wrong = self._intervals(batch, rows)
        except UnfitError as problem:
            nothing = Delta.empty(self.schema)
            rows = pa.RecordBatch.from_arrays(list(nothing.columns), schema=self._arrow())
            bad = unreadable(piece.where, str(problem)) if batch.num_rows else None
            return _Timed(rows, nothing.start, nothing.end, nothing.weight), bad
        if wrong is not None:
            reasons = wrong if reasons is None else coalesce(reasons, wrong)
        if reasons is None:
            return _Timed(rows, start, end, weight), None
        kept = nulls(reasons)
        good = pa.array(kept)
        text = rows_as_text(batch.filter(pa.array(~kept)))
        found = bad_rows(piece.where, None, reasons.drop_null(), text)
        return _Timed(rows.filter(good), start[kept], end[kept], weight[kept]), found

    def _intervals(
        self, batch: pa.RecordBatch, rows: pa.RecordBatch
    ) -> tuple[Int64Array, Int64Array, Int64Array, pa.Array | None]:
        if self.time is not None:
            start, reasons = _instants(rows.column(self.schema.index(self.time)), self.time)
            return start, start + 1, np.ones(len(start), np.int64), reasons
        return _own_intervals(batch, self.stream)

    def _arrow(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.type) for f in self.schema])

    # -- late rows ---------------------------------------------------------------------------------------------------

    def _behind(self, timed: _Timed, frontier: int) -> BoolArray | None:
        """Which rows would change what is final already; None: no row."""
        before = timed.start < frontier
        if not before.any():
            return None
        if self.time is not None:
            return before
        return _illegal(self.schema, timed, before, frontier)

    def _without_late(self, timed: _Timed, behind: BoolArray, frontier: int) -> tuple[_Timed, pa.RecordBatch]:
        """The rows that are in time, and those that are diverted."""
        nothing = timed.rows.slice(0, 0)
        if self.late is LatePolicy.ERROR:
            raise self._late_error(timed, behind, frontier)
        if self.late is LatePolicy.ADJUST and self.time is not None:
            return self._adjusted(timed, behind, frontier), nothing
        kept = pa.array(~behind)
        late = timed.rows.filter(pa.array(behind)) if self.late is LatePolicy.DIVERT else nothing
        in_time = ~behind
        rest = _Timed(timed.rows.filter(kept), timed.start[in_time], timed.end[in_time], timed.weight[in_time])
        return rest, late

    def _adjusted(self, timed: _Timed, behind: BoolArray, frontier: int) -> _Timed:
        """Their time, also as the row shows it, becomes the first that is not final."""
        place = self.schema.index(self.time or "")
        columns = list(timed.rows.columns)
        step = _DAY if pa.types.is_date32(columns[place].type) else 1
        start = np.where(behind, -(-frontier // step) * step, timed.start)
        columns[place] = _as_times(start, columns[place].type)
        rows = pa.RecordBatch.from_arrays(columns, schema=timed.rows.schema)
        return _Timed(rows, start, start + 1, timed.weight)

    def _late_error(self, timed: _Timed, behind: BoolArray, frontier: int) -> StreamError:
        first = timed.rows.slice(int(np.argmax(behind)), 1)
        at = render(int(timed.start[behind][0]))
        return StreamError(
            "LATE_ROW",
            f'stream "{self.stream}" cannot take a row: it comes too late, at {at}',
            detail=f"Everything before {render(frontier)} is final. {rows_as_text(first)[0].as_py()}",
            hint="Declare a larger DISORDER, or LATE ROWS DIVERT INTO a stream.",
        )

    # -- statistics --------------------------------------------------------------------------------------------------

    def _seen(self, piece: Piece, timed: _Timed, late: int, bad: int) -> list[Seen]:
        column = None if self.partition is None else timed.rows.column(self.schema.index(self.partition))
        first, *rest = sighted(timed.start, column, piece.partition)
        promise = BEGINNING if piece.promise is None else piece.promise
        return [first._replace(late=late, bad=bad, promise=promise), *rest]


def sighted(start: Int64Array, partition: pa.Array | None = None, name: str = "") -> list[Seen]:
    """What was seen of rows that begin there: in all, or of each value of a column."""
    if len(start) == 0:
        return [Seen(name, BEGINNING, INFINITY, 0)]
    if partition is None:
        return [Seen(name, int(start.max()), int(start.min()), len(start))]
    names = pc.fill_null(partition.cast(pa.string()), "")
    grouped = pa.table({"p": names, "t": start}).group_by("p", use_threads=False)
    found = grouped.aggregate([("t", "max"), ("t", "min"), ("t", "count")]).select(["p", "t_max", "t_min", "t_count"])
    return [Seen(*values) for values in zip(*(c.to_pylist() for c in found.columns), strict=True)]


def declared_disorder(stream: Stream) -> int | None:
    """How much older than the newest row another one may be, as the stream declares it; None: it has no time column."""
    if stream.time is None:
        return None
    for clause in stream.clauses:
        if isinstance(clause, Disorder):
            return clause.bound
        if isinstance(clause, Watermark):
            return clause.delay - 1  # a row exactly so old is late already
    return 0


def diverted_schema(schema: Schema) -> Schema:
    """The columns of the stream of late rows."""
    return schema


def as_delta(schema: Schema, rows: pa.RecordBatch, frontier: int) -> Delta:
    """Late or bad rows as elements of their own stream: at the parent's frontier before the tick, which never goes back."""
    instant = 0 if frontier == BEGINNING else min(frontier, INFINITY - 1)
    start = np.full(rows.num_rows, instant, np.int64)
    columns = [rows.column(f.name) for f in schema]
    return Delta(schema, columns, start, start + 1, np.ones(rows.num_rows, np.int64))


# -- times ------------------------------------------------------------------------------------------------------------


def _instants(column: pa.Array, name: str) -> tuple[Int64Array, pa.Array | None]:
    """The time of each row in instants, and what is wrong with some of them."""
    days = pa.types.is_date32(column.type)
    stamps, beyond = convert(column, Field(name, _TIMESTAMP)) if days else (column, None)
    whole = stamps.cast(pa.int64())
    reasons = None
    if column.null_count:
        missing = nulls(column)
        reasons = first_reasons(None, missing, f'the time column "{name}" is NULL')
    values = (pc.fill_null(whole, 0) if whole.null_count else whole).to_numpy(zero_copy_only=False)
    # One instant at either end is no time of a row: before all time, and an interval that would never end.
    outside = (values <= BEGINNING) | (values >= INFINITY - 1)
    if beyond is not None:
        outside = outside | beyond
    if outside.any():
        reasons = first_reasons(reasons, outside, f'the time column "{name}" is out of range')
        values = np.where(outside, 0, values)
    return values, reasons


def _as_times(instants: Int64Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_date32(type_):
        return pa.array((instants // _DAY).astype(np.int32)).cast(type_)
    return pa.array(instants).cast(type_)


def _own_intervals(batch: pa.RecordBatch, stream: str) -> tuple[Int64Array, Int64Array, Int64Array, pa.Array | None]:
    """The intervals that rows carry."""
    names = batch.schema.names
    if START not in names:
        raise StreamError(
            "NO_TIME_COLUMN",
            f'stream "{stream}" has no time column, and its rows carry no intervals',
            hint=f"Declare one: ORDERED BY column. Or give the rows the columns {', '.join(RESERVED)}.",
        )
    given = {name: convert(batch.column(name), _INTERVAL.field(name)) for name in RESERVED if name in names}
    rows = batch.num_rows
    reasons = None
    for name, (column, failed) in given.items():
        wrong = np.zeros(rows, np.bool_) if failed is None else failed
        if name != END:
            wrong = wrong | nulls(column)
        if wrong.any():
            reasons = first_reasons(reasons, wrong, f"{name} is not a whole number of instants")
    values = {name: pc.fill_null(column, INFINITY if name == END else 1) for name, (column, _) in given.items()}
    arrays = {name: values[name].to_numpy(zero_copy_only=False) for name in values}
    start = arrays[START]
    end = arrays.get(END, np.full(rows, INFINITY, np.int64))
    weight = arrays.get(WEIGHT, np.ones(rows, np.int64))
    empty = (end <= start) | (start <= BEGINNING)
    if empty.any():
        reasons = first_reasons(reasons, empty, "the interval is empty or begins before all time")
    return start, end, weight, reasons


def _illegal(schema: Schema, timed: _Timed, before: BoolArray, frontier: int) -> BoolArray | None:
    """Of rows that start before the frontier those that are no change of an end that is still open.

    Such a change takes away as many copies of a row as it gives back, and both must come in one piece.
    """
    at = np.flatnonzero(before)
    started = Delta(schema, [c.take(pa.array(at)) for c in timed.rows.columns], *(x[at] for x in timed[1:]))
    key = started.key()
    low = key.low if len(key.high) == 0 else key.low ^ (key.high * np.uint64(0x9E3779B97F4A7C15))
    _, group = np.unique(np.stack([low, started.start.view(np.uint64)], 1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    groups = int(group.max()) + 1
    net = np.zeros(groups, np.int64)
    np.add.at(net, group, started.weight)
    closed = np.zeros(groups, np.bool_)
    closed[group[started.end < frontier]] = True
    illegal = np.zeros(len(before), np.bool_)
    illegal[at] = (net != 0)[group] | closed[group]
    return illegal if illegal.any() else None
