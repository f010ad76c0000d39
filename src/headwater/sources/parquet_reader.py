"""Parquet files read by tasks as Arrow; a large one by several tasks, each with some of its row groups."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from headwater.model.schema import Schema
from headwater.sources.base import Piece, Reader, Split
from headwater.sources.conform import UnfitError, find_columns
from headwater.sources.file_system import open_file
from headwater.sources.malformed import unreadable

BATCH_ROWS = 131_072
CUT_ROWS = 500_000
"""About so many rows a task; a row group is never cut."""


@frozen
class ParquetReader(Reader):
    """Reads the declared columns; whatever else a file has is left out. Types are the intake's concern."""

    schema: Schema

    def read(self, split: Split) -> Iterator[Piece]:
        path = split["path"]
        empty = pa.RecordBatch.from_pylist([], schema=self.schema.to_arrow())
        try:
            file = pq.ParquetFile(open_file(path))
            names = file.schema_arrow.names
            columns = [names[place] for place in find_columns(names, self.schema)]
        except UnfitError as problem:
            yield Piece(empty, unreadable(path, str(problem)), where=path)
            return
        except pa.ArrowInvalid as problem:
            yield Piece(empty, unreadable(path, f"this is no parquet file: {_first_line(problem)}"), where=path)
            return
        groups = range(split.get("first", 0), split.get("last", file.num_row_groups))
        try:
            for batch in file.iter_batches(BATCH_ROWS, groups, columns, use_threads=False):
                yield Piece(batch, where=path)
        except (pa.ArrowInvalid, OSError) as problem:
            # What came before is used already: a broken file cannot be taken in part, whatever the policy.
            yield Piece(empty, unreadable(path, f"the file is damaged: {_first_line(problem)}"), where=path)


def cut_parquet(split: Split) -> list[Split]:
    """Splits of whole row groups; one for a file that is no parquet (its reader says so)."""
    try:
        with open_file(split["path"]) as file:
            metadata = pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError):
        return [split]
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    cuts, first, held = [], 0, 0
    for group, count in enumerate(rows):
        held += count
        if held >= CUT_ROWS or group == len(rows) - 1:
            cuts.append({**split, "first": first, "last": group + 1, "rows": held})
            first, held = group + 1, 0
    return cuts or [{**split, "rows": 0}]


def parquet_row_bytes(path: str) -> float | None:
    """How many bytes of the file a row takes, about."""
    try:
        with open_file(path) as file:
            metadata = pq.read_metadata(file)
            return file.size() / metadata.num_rows if metadata.num_rows else None
    except (pa.ArrowInvalid, OSError):
        return None


def _first_line(problem: Exception) -> str:
    return str(problem).partition("\n")[0].removesuffix(".")
