"""Parquet files read by tasks as Arrow; a large one by several tasks, each with some of its row groups."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from headwater.errors import InputError
from headwater.model.schema import Schema
from headwater.sources.base import Piece, Reader, Split
from headwater.sources.conform import UnfitError, find_columns, missing_columns
from headwater.sources.file_formats import NO_COLUMNS, FileFormat
from headwater.sources.file_names import open_file
from headwater.sources.left_out import can_leave_out
from headwater.sources.malformed import unreadable
from headwater.state.sealed import MADE_OF

if TYPE_CHECKING:
    pass

BATCH_ROWS = 131_072
SKIP = "skip"
"""In a split: so many rows at the beginning of the file have been read elsewhere."""


@frozen
class ParquetFormat(FileFormat):
    name: ClassVar[str] = "parquet"
    usual_row_bytes: ClassVar[float] = 24

    def reader(self, schema: Schema, optional: Schema = NO_COLUMNS) -> Reader:
        return ParquetReader(schema, optional)

    def cut(self, split: Split, rows: int) -> list[Split]:
        """Parts of whole row groups; a file that is no parquet stays one (its reader says so)."""
        metadata = read_metadata(split["path"])
        if metadata is None:
            return [split]
        parts, start, held = [], split.get("start", 0), 0
        end = split.get("end", metadata.num_row_groups)
        for group in range(start, end):
            count = metadata.row_group(group).num_rows
            if held and held + count > rows:
                parts.append({**split, "start": start, "end": group, "rows": held})
                start, held = group, 0
            held += count
        return [*parts, {**split, "start": start, "end": end, "rows": held}]

    def row_bytes(self, path: str) -> float | None:
        metadata = read_metadata(path)
        if metadata is None or metadata.num_rows == 0:
            return None
        groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
        packed = sum(g.column(i).total_compressed_size for g in groups for i in range(g.num_columns))
        return packed / metadata.num_rows


@frozen
class ParquetReader(Reader):
    """Reads the declared columns that a file has; whatever else it has is left out. Types are the intake's concern."""

    schema: Schema
    optional: Schema = NO_COLUMNS

    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        path = split["path"]
        empty = pa.RecordBatch.from_pylist([], schema=self.schema.to_arrow())
        try:
            file = pq.ParquetFile(open_file(path))
            groups = range(split.get("start", 0), split.get("end", file.num_row_groups))
            names = file.schema_arrow.names
            read = [names[place] for place in find_columns(names, self.schema, required=()) if place >= 0]
            read += [name for name in self.optional.names if name in names]
            left_out = can_leave_out(
                file.schema_arrow, self.schema, columns, is_never_null=lambda place: _is_never_null(file, place, groups)
            )
            read = [name for name in read if name not in left_out.values()]
        except UnfitError as problem:
            yield Piece(empty, unreadable(path, str(problem)), where=path)
            return
        except pa.ArrowException as problem:
            yield Piece(empty, unreadable(path, f"this is no parquet file: {_first_line(problem)}"), where=path)
            return
        missing = tuple(missing_columns(names, self.schema).items())
        skip = split.get(SKIP, 0)
        try:
            for found in file.iter_batches(BATCH_ROWS, groups, read, use_threads=False):
                batch, skip = found.slice(skip), max(skip - found.num_rows, 0)
                yield Piece(batch, where=path, missing=missing, left_out=frozenset(left_out))
        except (pa.ArrowException, OSError) as problem:
            # The rows before the damage are given out; all the rest is one bad row.
            yield Piece(empty, unreadable(path, f"the file is damaged: {_first_line(problem)}"), where=path)


def made_of(path: str) -> list[tuple[str, int]]:
    """The files in the same folder that it was made of, with their rows; none, if it was made of none."""
    metadata = read_metadata(path)
    told = (metadata.metadata or {}).get(MADE_OF.encode()) if metadata is not None else None
    folder = path.rpartition("/")[0]
    return [] if told is None else [(f"{folder}/{name}", rows) for name, rows in json.loads(told)]


def read_metadata(path: str) -> pq.FileMetaData | None:
    try:
        with open_file(path) as file:
            return pq.read_metadata(file)
    except (pa.ArrowException, InputError):
        return None


def _is_never_null(file: pq.ParquetFile, place: int, groups: range) -> bool:
    """Do the footers of the row groups say so?"""
    field = file.schema_arrow.field(place)
    if not field.nullable:
        return True
    leaf = next((i for i, path in enumerate(file.schema.names) if path == field.name), None)
    if leaf is None or pa.types.is_nested(field.type):
        return False
    told = (file.metadata.row_group(group).column(leaf).statistics for group in groups)
    return all(s is not None and s.has_null_count and s.null_count == 0 for s in told)


def _first_line(problem: Exception) -> str:
    return str(problem).partition("\n")[0].removesuffix(".")
