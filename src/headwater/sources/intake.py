"""Rows become elements: what a task does with every piece of input, whatever the source.

A row of a stream with a time column is valid at that one instant, ``[t, t + 1)``. Rows may carry intervals of their own, or
be changes of earlier ones (``element_rows.py``, ``debezium.py``); others are stamped when they come. Rows that come after
their time was final are late, rows that are not what is declared are bad; both are kept apart and none is lost.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from headwater.clock.seen import Seen
from headwater.errors import StreamError
from headwater.language.catalog import Stream
from headwater.language.changes import ARRIVED, CHANGED, ORIGINAL, ChangeFormat, Changes
from headwater.language.time_clauses import HeartbeatFromSource, LatePolicy, LateRows, SentAt
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY, render
from headwater.sources.base import BadRows, Malformed, Piece, Source
from headwater.sources.columns import coalesce, nulls, valid, where
from headwater.sources.computed import ComputedColumns
from headwater.sources.conform import Conformed, UnfitError, conform, find_columns, first_reasons, missing_columns
from headwater.sources.debezium import Events
from headwater.sources.element_rows import decode_elements, has_elements
from headwater.sources.malformed import all_bad_rows, bad_row_error, bad_rows, rows_as_text, unreadable
from headwater.sources.punctuation import Heartbeats, latest, partition_names
from headwater.sources.timed import Decoded, Timed, as_times, at_instants, instants, no_rows, time_step


class Taken(NamedTuple):
    """What became of a piece."""

    delta: Delta
    late: pa.RecordBatch
    """Rows that came too late and are diverted; empty with any other policy."""
    bad: BadRows
    seen: list[Seen]
    """One a partition; the counts of late and bad rows are in the first."""
    missing: dict[str, str]
    """By column that is NULL because it is not there: what to tell the user."""


@frozen
class Intake:
    """How rows of one stream become elements. Picklable, without state: the frontier is the caller's."""

    stream: str
    schema: Schema
    """The columns of the elements."""
    time: str | None = None
    """The time column, or ``CHANGED``; None: rows carry their intervals, or are stamped when they come."""
    partition: str | None = None
    """The column whose values have a clock each; None: the source's own partitions do."""
    late: LatePolicy = LatePolicy.DIVERT
    bad: Malformed = "fail"
    changes: Changes | None = None
    events: Events | None = None
    """How change events are read, where rows are such."""
    arrival: bool = False
    """Are rows stamped when they come, and cannot have intervals?"""
    heartbeat: str | None = None
    """The column in which the source says up to where it is done."""
    sent: str | None = None
    """The column that tells when a row was sent."""
    numbered: bool = False
    """Without a time column: are instants plain numbers?"""
    computed: ComputedColumns | None = None
    """The columns that rows do not bring, because they are computed here."""

    @classmethod
    def of(cls, stream: Stream, source: Source, *, partition: str | None = None) -> Intake:
        """As the stream declares it."""
        policy = next((c.policy for c in stream.clauses if isinstance(c, LateRows)), LatePolicy.DIVERT)
        columns = {type(c): c.column for c in stream.clauses if isinstance(c, (HeartbeatFromSource, SentAt))}
        events = None
        if stream.has_events:
            events = Events(stream.schema, stream.carried, stream.key, stream.time or CHANGED)
        made = cls(stream.name, stream.carried, stream.time, partition, policy, source.malformed)
        return evolve(
            made,
            changes=stream.changes,
            events=events,
            arrival=stream.stamped_on_arrival,
            heartbeat=columns.get(HeartbeatFromSource),
            sent=columns.get(SentAt),
            numbered=stream.numbered,
            computed=ComputedColumns.of(made.schema, stream.computed) if stream.computed else None,
        )

    @property
    def is_plain(self) -> bool:
        """Is a row just its columns, with a time column among them? Then Spark can do the same with it."""
        filled = {ARRIVED, ORIGINAL} & set(self.schema.names)
        return self.time is not None and self.events is None and not (filled or self.heartbeat or self.sent)

    @property
    def brought(self) -> Schema:
        """The columns that are not computed."""
        return self.schema if self.computed is None else self.computed.brought

    @property
    def timestamps(self) -> bool:
        """Are instants microseconds? Else they are plain numbers."""
        if self.time is None or self.time == CHANGED:
            return not self.numbered
        return not pa.types.is_integer(self.schema.field(self.time).type)

    def take(self, piece: Piece, frontier: int, now: int = 0) -> Taken:
        """The elements of a piece; ``frontier`` is the stream's before this tick, ``now`` the wall clock of the tick.

        Raises ``StreamError`` BAD_ROW or LATE_ROW where the policy is to fail.
        """
        if piece.left_out:
            return self._without(piece.left_out).take(piece._replace(left_out=frozenset()), frontier, now)
        found, bad = self._judged(piece, now)
        bad = all_bad_rows([piece.bad, bad])
        if self.bad == "fail" and len(bad.reason):
            raise bad_row_error(self.stream, bad)
        timed = found.timed
        late = timed.none()
        diverted = late.rows
        behind = self._behind(timed, frontier)
        if behind is not None:
            late = timed.filter(behind).whole()
            timed, diverted = self._without_late(timed, behind, frontier)
        delta = Delta(self.schema, timed.rows.columns, timed.start, timed.end, timed.weight)
        missing = self._missing(piece) if len(delta) else {}
        return Taken(delta, diverted, bad, self._seen(piece, timed, late, found, len(bad.reason)), missing)

    def check(self, piece: Piece) -> None:
        """Raises BAD_ROW, as ``take`` would; nothing is taken."""
        bad = self._judged(piece, 0)[1] if self.bad == "fail" else None
        if bad is not None:
            raise bad_row_error(self.stream, bad)

    # -- columns that nobody reads -----------------------------------------------------------------------------------

    def wanted(self, read: Collection[str]) -> frozenset[str] | None:
        """The columns that are needed where only these are read, with those that place a row in time; None: all are.

        A row that is changed later, or that comes in another clothing, is compared as a whole.
        """
        if self.events is not None or (self.time is None and not self.arrival):
            return None
        needed = {*read, *self._required, ARRIVED, ORIGINAL}
        if self.computed is not None:  # whoever wants them: a value that cannot be computed makes a row malformed
            needed |= self.computed.reads
        found = frozenset(name for name in self.schema.names if name in needed)
        return found if 0 < len(found) < len(self.schema) else None

    def _without(self, columns: Collection[str]) -> Intake:
        computed = None if self.computed is None else self.computed.without(columns)
        return evolve(self, schema=Schema(tuple(f for f in self.schema if f.name not in columns)), computed=computed)

    # -- columns and times -------------------------------------------------------------------------------------------

    def _judged(self, piece: Piece, now: int) -> tuple[Decoded, BadRows | None]:
        """What the good rows say, and the bad ones."""
        batch = piece.rows
        try:
            found = self._decoded(batch, now)
        except UnfitError as problem:
            bad = unreadable(piece.where, str(problem)) if batch.num_rows else None
            return Decoded(no_rows(self.schema), None), bad
        if found.reasons is None or found.reasons.null_count == len(found.reasons):
            return found, None
        wrong = valid(found.reasons)
        text = rows_as_text(batch.filter(pa.array(wrong)))
        numbers = None if piece.first is None else pa.array(np.flatnonzero(wrong) + piece.first)
        return found, bad_rows(piece.where, numbers, found.reasons.drop_null(), text)

    def _decoded(self, batch: pa.RecordBatch, now: int) -> Decoded:
        if self.events is not None:
            return self.events.decode(batch)
        rows, reasons = self._conformed(self._filled(batch, now))
        if self.time is not None:
            return self._stamped(batch, rows, reasons)
        if has_elements(batch):
            self._check_declared()
            ordered = self.changes is None or self.changes.ordered
            counted = self.changes is not None and self.changes.counted
            return decode_elements(batch, rows, reasons, ordered=ordered, counted=counted)
        if self.changes is not None and self.changes.format is ChangeFormat.HEADWATER:
            names = ", ".join(batch.schema.names)
            raise UnfitError(f'column "_start" missing; the columns are {names}')
        kept = np.ones(len(rows), np.bool_) if reasons is None else nulls(reasons)
        timed = at_instants(rows, np.full(batch.num_rows, now, np.int64)).filter(kept)
        # What comes in a later tick is stamped later.
        return Decoded(timed, reasons, promise=now + 1 if batch.num_rows else BEGINNING)

    def _conformed(self, batch: pa.RecordBatch) -> Conformed:
        """The declared columns, also those that are computed."""
        if self.computed is None:
            return conform(batch, self.schema, required=self._required)
        return self.computed.added(*conform(batch, self.computed.brought, required=self._required))

    @property
    def _required(self) -> set[str]:
        """Columns that clauses speak of: without them a row cannot be placed in time."""
        told = {c for c in (self.time, self.partition, self.heartbeat, self.sent) if c is not None}
        if self.computed is not None:  # one that is computed of a single other one is not there without that
            told |= {e.columns[0] for name, e in self.computed.expressions if name in told and len(e.columns) == 1}
        return told

    def _missing(self, piece: Piece) -> dict[str, str]:
        names, filled = piece.rows.schema.names, (ARRIVED, ORIGINAL)
        declared = Schema(tuple(f for f in self.brought if f.name not in filled))
        if self.events is not None:
            names, declared = self.events.image_columns(piece.rows), self.events.row
        found = missing_columns(names, declared) | dict(piece.missing)
        return {column: self._missing_text(column, near, piece.where) for column, near in found.items()}

    def _missing_text(self, column: str, near: str, where: str) -> str:
        place = f' ("{where}")' if where else ""
        meant = f' Did you mean "{near}", which they have and the declaration does not?' if near else ""
        return f'stream "{self.stream}": there are rows without column "{column}"{place}, so it is NULL in them.{meant}'

    def _filled(self, batch: pa.RecordBatch, now: int) -> pa.RecordBatch:
        """With the columns that are the engine's to fill in, whatever the source has there."""
        for name in (ARRIVED, ORIGINAL):
            if name in self.schema.names:
                type_, rows = self.schema.field(name).type, batch.num_rows
                column = pa.repeat(pa.scalar(now, type_), rows) if name == ARRIVED else pa.nulls(rows, type_)
                batch = batch.drop_columns([n for n in batch.schema.names if n.casefold() == name])
                batch = batch.append_column(name, column)
        return batch

    def _stamped(self, batch: pa.RecordBatch, rows: pa.RecordBatch, reasons: pa.Array | None) -> Decoded:
        """Rows with a time column, and perhaps one of heartbeats."""
        assert self.time is not None
        start, wrong = instants(rows.column(self.time), self.time, note=self._note(self.time))
        if wrong is not None:
            reasons = wrong if reasons is None else coalesce(reasons, wrong)
        kept = np.ones(len(start), np.bool_)
        promises: dict[str, int] = {}
        if self.heartbeat is not None:
            partition = None if self.partition is None else rows.column(self.partition)
            beats = Heartbeats(rows.column(self.heartbeat), self.heartbeat, self._timeless(batch, rows), partition)
            if reasons is not None and beats.alone.any():
                reasons = where(beats.alone, pa.scalar(None, pa.string()), reasons)
            reasons = self._wrong_heartbeats(beats, reasons)
            kept &= ~beats.alone
            told = beats.given if reasons is None else beats.given & nulls(reasons)
            promises = beats.promises(told)
        if reasons is not None:
            kept &= nulls(reasons)
        timed = at_instants(rows, start).filter(kept)
        if self.partition is not None:
            return Decoded(timed, reasons, promises=promises)
        return Decoded(timed, reasons, promises.get("", BEGINNING))

    def _note(self, column: str) -> str:
        """What messages say of a column: how it is computed."""
        return "" if self.computed is None else self.computed.note(column)

    def _timeless(self, batch: pa.RecordBatch, rows: pa.RecordBatch) -> BoolArray:
        """The rows that came without a time: they are only heartbeats."""
        assert self.time is not None
        if self.computed is not None and self.time in self.computed.names:
            return nulls(rows.column(self.time))
        (place,) = find_columns(batch.schema.names, self.schema.select([self.time]))
        return nulls(batch.column(place))

    def _wrong_heartbeats(self, beats: Heartbeats, reasons: pa.Array | None) -> pa.Array | None:
        if beats.reasons is not None:
            reasons = beats.reasons if reasons is None else coalesce(reasons, beats.reasons)
        failed = beats.decreasing()
        if failed.any():
            reasons = first_reasons(reasons, failed, f'the heartbeat in "{self.heartbeat}" is before an earlier one')
        return reasons

    def _check_declared(self) -> None:
        if self.arrival:
            raise StreamError(
                "CHANGES_UNDECLARED",
                f'stream "{self.stream}" is declared without a time column, but its rows have intervals',
                hint="Add changes => 'headwater' to its SOURCE; or declare ORDERED BY column.",
            )

    # -- late rows ---------------------------------------------------------------------------------------------------

    def _behind(self, timed: Timed, frontier: int) -> BoolArray | None:
        """Which rows would change what is final already; None: no row."""
        before = timed.start < frontier
        if not before.any():
            return None
        if self.time is not None:
            return before
        return _illegal(self.schema, timed, before, frontier)

    def _without_late(self, timed: Timed, behind: BoolArray, frontier: int) -> tuple[Timed, pa.RecordBatch]:
        """The rows that are in time, and those that are diverted."""
        nothing = timed.rows.slice(0, 0)
        if self.late is LatePolicy.ERROR:
            raise self._late_error(timed, behind, frontier)
        if self.late is LatePolicy.ADJUST and self.time is not None:
            return self._adjusted(timed, behind, frontier), nothing
        late = timed.filter(behind).whole().rows if self.late is LatePolicy.DIVERT else nothing
        return timed.filter(~behind), late

    def _adjusted(self, timed: Timed, behind: BoolArray, frontier: int) -> Timed:
        """Their time, also as the row shows it, becomes the first that is not final; an image of a change stays as it is."""
        if self.events is not None or self.time is None:
            return at_instants(timed.rows, np.where(behind, frontier, timed.start))
        place = self.schema.index(self.time)
        columns = list(timed.rows.columns)
        came, type_ = columns[place], columns[place].type
        step = time_step(type_)
        start = np.where(behind, -(-frontier // step) * step, timed.start)
        columns[place] = as_times(start, type_)
        if ORIGINAL in self.schema.names:
            columns[self.schema.index(ORIGINAL)] = where(behind, came, pa.scalar(None, type_))
        return at_instants(pa.RecordBatch.from_arrays(columns, schema=timed.rows.schema), start)

    def _late_error(self, timed: Timed, behind: BoolArray, frontier: int) -> StreamError:
        first = timed.rows.slice(int(np.argmax(behind)), 1)
        at, final = (render(t, timestamps=self.timestamps) for t in (int(timed.start[behind][0]), frontier))
        return StreamError(
            "LATE_ROW",
            f'stream "{self.stream}" cannot take a row: it comes too late, at {at}',
            detail=f"Everything before {final} is final. {rows_as_text(first)[0].as_py()}",
            hint="Declare a larger DISORDER, or LATE ROWS DIVERT INTO a stream.",
        )

    # -- statistics --------------------------------------------------------------------------------------------------

    def _seen(self, piece: Piece, timed: Timed, late: Timed, found: Decoded, bad: int) -> list[Seen]:
        seen = {part.partition: part for part in self._sighted(piece, timed)}
        for part in self._sighted(piece, late):
            if part.rows:  # they were sent like others: bounds are learned from them, too
                known = seen.get(part.partition, Seen(part.partition, BEGINNING, INFINITY, 0))
                told = {"late": part.rows, "late_newest": part.newest, "late_oldest": part.oldest}
                seen[part.partition] = known._replace(**told)
        for name, its in found.promises.items():
            seen[name] = seen.get(name, Seen(name, BEGINNING, INFINITY, 0))._replace(own_promise=its)
        first, *rest = seen.values()
        promise = BEGINNING if piece.promise is None else piece.promise
        own = first.own_promise
        if self.heartbeat is None or not piece.partition:
            promise = max(promise, found.promise)
        else:  # what a partition says of itself is no word of the others
            own = max(own, found.promise)
        sent = BEGINNING
        if self.sent is not None:
            sent = latest([part.rows.column(self.sent) for part in (timed, late)])
        first = first._replace(
            bad=bad, promise=promise, own_promise=own, sent=sent, counted=found.counted, syncs=found.syncs
        )
        return [first, *rest]

    def _sighted(self, piece: Piece, timed: Timed) -> list[Seen]:
        column = None if self.partition is None else timed.rows.column(self.schema.index(self.partition))
        return sighted(timed.start, column, piece.partition)


def sighted(start: Int64Array, partition: pa.Array | None = None, name: str = "") -> list[Seen]:
    """What was seen of rows that begin there: in all, or of each value of a column."""
    if len(start) == 0:
        return [Seen(name, BEGINNING, INFINITY, 0)]
    if partition is None:
        return [Seen(name, int(start.max()), int(start.min()), len(start))]
    grouped = pa.table({"p": partition_names(partition), "t": start}).group_by("p", use_threads=False)
    found = grouped.aggregate([("t", "max"), ("t", "min"), ("t", "count")]).select(["p", "t_max", "t_min", "t_count"])
    return [Seen(*values) for values in zip(*(c.to_pylist() for c in found.columns), strict=True)]


def as_delta(schema: Schema, rows: pa.RecordBatch, frontier: int) -> Delta:
    """Late or bad rows as elements of their own stream: at the parent's frontier before the tick, which never goes back."""
    instant = 0 if frontier == BEGINNING else min(frontier, INFINITY - 1)
    start = np.full(rows.num_rows, instant, np.int64)
    columns = [rows.column(f.name) for f in schema]
    return Delta(schema, columns, start, start + 1, np.ones(rows.num_rows, np.int64))


def _illegal(schema: Schema, timed: Timed, before: BoolArray, frontier: int) -> BoolArray | None:
    """Of rows that start before the frontier those that are no change of an end that is still open.

    Such a change takes away as many copies of a row as it gives back, and both must come in one piece.
    """
    at = np.flatnonzero(before)
    columns = [c.take(pa.array(at)) for c in timed.rows.columns]
    started = Delta(schema, columns, timed.start[at], timed.end[at], timed.weight[at])
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
