"""Parts of an answer that the driver reads: Arrow streams, within the commit when small, else as files."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa

from headwater.errors import StateError
from headwater.model.delta import Delta
from headwater.sinks.base import Output, Staged, Stager
from headwater.sinks.folder import Folder, split_place
from headwater.sinks.tables import to_table

INLINE_BYTES = 32 * 1024
"""Smaller parts travel with the commit: a file costs more than they do."""


class TableStager(Stager):
    """Stages the output's table, final rows or changelog."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def stage(self, tick: int, shard: int, delta: Delta, folder: str) -> Staged:
        return stage_table(to_table(self.output, delta, tick), folder)


class DeltaStager(Stager):
    """Stages the delta as it is, weights and all."""

    def stage(self, tick: int, shard: int, delta: Delta, folder: str) -> Staged:
        staged = stage_table(pa.Table.from_batches([delta.to_batch()]), folder)
        return staged._replace(rows=count_changes(delta))


def count_changes(delta: Delta) -> int:
    """Rows that come and go, copies counted."""
    return int(abs(delta.weight).sum())


def stage_table(table: pa.Table, folder: str, *, rows: int | None = None) -> Staged:
    """Put a table aside; ``rows`` is how many it stands for. Without a folder it stays in memory, whatever its size."""
    rows = table.num_rows if rows is None else rows
    if not folder or table.nbytes < INLINE_BYTES:
        buffer = pa.BufferOutputStream()
        _write(table, buffer)
        return Staged(rows, data=buffer.getvalue().to_pybytes())
    place, name = Folder(folder), f"{uuid.uuid4().hex}.arrows"
    place.make()
    with place.writing(name) as stream:
        _write(table, stream)
    return Staged(rows, path=f"{place}/{name}")


def _write(table: pa.Table, stream: object) -> None:
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)


def batches(parts: Sequence[Staged], schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
    """All batches of the parts, one after another; at most one part is open.

    With a schema they have its types: the last tick before a restart may have had narrower ones.
    """
    for part in parts:
        opened = iter(())
        if part.data is not None:
            opened = pa.ipc.open_stream(part.data)
        elif part.path is not None:
            opened = _batches_of_file(part.path)
        for batch in opened:
            yield batch if schema is None or batch.schema.types == schema.types else batch.cast(schema)


def _batches_of_file(path: str) -> Iterator[pa.RecordBatch]:
    folder, name = split_place(path)
    try:
        source = folder.opened(name)
    except FileNotFoundError as problem:
        raise missing(path) from problem
    with source:
        yield from pa.ipc.open_stream(source)


def missing(path: str) -> StateError:
    return StateError(
        "STAGED_MISSING",
        f'"{path}" is missing: rows of a committed tick that were not delivered yet',
        hint="Staged files are deleted by the sink once they are delivered; bring it back, or rewind the checkpoint.",
    )


def read_table(parts: Sequence[Staged], schema: pa.Schema) -> pa.Table:
    """All parts as one table."""
    return pa.Table.from_batches(batches(parts, schema), schema)
