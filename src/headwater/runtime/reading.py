"""What a sender reads: rows become elements of their stream, late and malformed ones those of streams of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
from attrs import frozen

from headwater.clock.seen import Seen
from headwater.errors import StreamError
from headwater.language.catalog import Stream
from headwater.language.changes import CHANGED
from headwater.language.put_aside import BAD, BAD_SCHEMA, LATE
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.runtime.layout import Layout
from headwater.runtime.measured import is_sampled, sampled
from headwater.runtime.sender import Arrivals, SenderOutput
from headwater.runtime.tick import Tick
from headwater.sinks.parts import stage_table
from headwater.sources.base import Parser, Piece, Reader, Source, Split
from headwater.sources.intake import Intake, Taken, as_delta
from headwater.sources.malformed import bad_batch


@frozen
class StreamTask:
    """How the rows of one stream are taken in. Picklable."""

    intake: Intake
    reader: Reader | None
    late: str
    """The stream of its late rows."""
    bad: str
    """The stream of its malformed rows."""
    parser: Parser | None = None
    """What makes rows of the stream of those that Spark reads; None: they are its rows already."""
    declared: Stream | None = None
    """What was declared of it; only the driver needs to know."""

    @classmethod
    def of(cls, stream: Stream, source: Source, *, partition: str | None = None) -> StreamTask:
        """As the stream is declared; ``partition``: a column whose values have a clock each."""
        late = stream.diverts_into or f"{stream.name}{LATE}"
        intake = Intake.of(stream, source, partition=partition)
        return cls(intake, source.reader, late, f"{stream.name}{BAD}", source.parser, stream)

    @property
    def stream(self) -> str:
        return self.intake.stream

    @property
    def timestamps(self) -> bool:
        """Are its instants microseconds? Else they are plain numbers."""
        return self.intake.timestamps

    @property
    def placed_by(self) -> str:
        """What says when its rows are valid."""
        kind = "a TIMESTAMP" if self.timestamps else "a number"
        match self.intake.time:
            case None:
                return f"its rows or their arrival, as {kind}"
            case time if time == CHANGED:
                return "its change events"
            case time:
                return f'"{time.casefold()}", {kind}'

    def read(self, split: Split, columns: Collection[str] | None, frontier: int, now: int) -> list[Taken] | None:
        """The rows of a split, of which only these columns are wanted.

        None: rows are late or malformed, of which columns were left out; but they are told of, and kept, whole.
        """
        assert self.reader is not None, "a source of rows has no splits"
        taken, narrow = list[Taken](), False
        try:
            for piece in self.reader.read(split, columns):
                narrow = narrow or bool(piece.left_out)
                taken.append(self.intake.take(piece, frontier, now))
        except StreamError:
            if not narrow:
                raise
            return None
        apart = any(part.late.num_rows or len(part.bad.reason) for part in taken)
        return None if narrow and apart else taken

    def piece(self, rows: pa.RecordBatch) -> Piece:
        """Rows that Spark has read."""
        return Piece(rows) if self.parser is None else self.parser.parse(rows)


def take_in(
    task: StreamTask, batch: Iterable[Piece | Split], tick: Tick, layout: Layout, staging: str, out: SenderOutput
) -> Arrivals:
    """All that one sender has of one stream: rows, and splits that it reads, of which only the columns that queries want.

    Counts go into ``out``, and late and malformed rows that nobody reads are put aside there.
    """
    frontier = tick.frontier(task.stream)
    wanted = task.intake.wanted(layout.graph.columns(task.stream))
    taken = list(_taken(task, batch, wanted, frontier, tick.now))
    read = Schema(tuple(f for f in task.intake.schema if wanted is None or f.name in wanted))
    deltas = {task.stream: Delta.concat(read, [t.delta.select(read) for t in taken])}
    seen = together([s for t in taken for s in t.seen])
    out.rows[task.stream] = len(deltas[task.stream])
    if len(deltas[task.stream]) and is_sampled(tick.number):
        out.samples[task.stream] = sampled(deltas[task.stream])
    missing = {column: text for t in reversed(taken) for column, text in t.missing.items()}  # the first place tells
    if missing:
        out.missing[task.stream] = missing
    for kind, stream, schema in (("late", task.late, task.intake.schema), ("bad", task.bad, BAD_SCHEMA)):
        counts = getattr(out, kind)
        counts[task.stream] = sum(getattr(s, kind) for s in seen)
        rows = _apart(kind, taken, schema)
        if not rows.num_rows:
            continue
        if _is_read(layout, tick, stream, schema) and frontier < INFINITY:
            deltas[stream] = as_delta(schema, rows, frontier)
        else:
            staged = stage_table(pa.Table.from_batches([rows]), staging)
            out.diverted.setdefault(stream, []).append(staged)
    return Arrivals(deltas, {task.stream: seen})


def _taken(
    task: StreamTask, batch: Iterable[Piece | Split], columns: Collection[str] | None, frontier: int, now: int
) -> Iterator[Taken]:
    for part in batch:
        if isinstance(part, Piece):
            yield task.intake.take(part, frontier, now)
            continue
        found = task.read(part, columns, frontier, now)
        if found is None:
            columns = None  # where one split has late rows, others are likely to have some, too
            found = task.read(part, None, frontier, now)
        yield from found or ()


def _is_read(layout: Layout, tick: Tick, stream: str, schema: Schema) -> bool:
    """Do queries read what is diverted? Not if something else has that name."""
    read = [node.schema for node in layout.graph.nodes if node.source == stream]
    return stream in tick.follows and bool(read) and all(_shape(part) <= _shape(schema) for part in read)


def _shape(schema: Schema) -> set[tuple[str, pa.DataType]]:
    return {(field.name.casefold(), field.type) for field in schema}


def _apart(kind: str, taken: Sequence[Taken], schema: Schema) -> pa.RecordBatch:
    """The late or the malformed rows of all pieces."""
    batches = [t.late if kind == "late" else bad_batch(t.bad) for t in taken]
    full = [b for b in batches if b.num_rows]
    empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], names=list(schema.names))
    return pa.Table.from_batches(full).combine_chunks().to_batches()[0] if full else empty


def together(seen: Sequence[Seen]) -> tuple[Seen, ...]:
    """One sighting per partition."""
    found: dict[str, Seen] = {}
    for part in seen:
        found[part.partition] = found[part.partition].plus(part) if part.partition in found else part
    return tuple(found.values())
