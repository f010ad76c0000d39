"""What a sender reads: rows become elements of their stream, late and malformed ones those of streams of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from attrs import frozen

from headwater.clock.seen import Seen
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

    def pieces(self, splits: Sequence[Split]) -> Iterable[Piece]:
        assert self.reader is not None, "a source of rows has no splits"
        for split in splits:
            yield from self.reader.read(split)

    def piece(self, rows: pa.RecordBatch) -> Piece:
        """Rows that Spark has read."""
        return Piece(rows) if self.parser is None else self.parser.parse(rows)


def take_in(
    task: StreamTask, pieces: Iterable[Piece], tick: Tick, layout: Layout, staging: str, out: SenderOutput
) -> Arrivals:
    """All pieces of one stream that one sender has. Counts go into ``out``, and what nobody reads is put aside there."""
    frontier = tick.frontier(task.stream)
    taken = [task.intake.take(piece, frontier, tick.now) for piece in pieces]
    deltas = {task.stream: Delta.concat(task.intake.schema, [t.delta for t in taken])}
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
        read_as = _read_as(layout, tick, stream, schema)
        if read_as is not None and frontier < INFINITY:
            deltas[stream] = as_delta(read_as, rows.rename_columns(list(read_as.names)), frontier)
        else:
            staged = stage_table(pa.Table.from_batches([rows]), staging)
            out.diverted.setdefault(stream, []).append(staged)
    return Arrivals(deltas, {task.stream: seen})


def _read_as(layout: Layout, tick: Tick, stream: str, schema: Schema) -> Schema | None:
    """With which columns queries read what is diverted; None: none does, or something else has that name."""
    if stream not in tick.follows:
        return None
    read = (node.schema for node in layout.graph.nodes if node.source == stream)
    return next((s for s in read if _shape(s) == _shape(schema)), None)


def _shape(schema: Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name.casefold(), field.type) for field in schema]


def _apart(kind: str, taken: Sequence[Taken], schema: Schema) -> pa.RecordBatch:
    """The late or the malformed rows of all pieces."""
    batches = [t.late if kind == "late" else bad_batch(t.bad) for t in taken]
    full = [b for b in batches if b.num_rows]
    empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], names=list(schema.names))
    return pa.Table.from_batches(full).combine_chunks().to_batches()[0] if full else empty


def together(seen: Sequence[Seen]) -> tuple[Seen, ...]:
    """One sighting a partition."""
    found: dict[str, Seen] = {}
    for part in seen:
        found[part.partition] = found[part.partition].plus(part) if part.partition in found else part
    return tuple(found.values())
