"""CSV files, with the columns found by the header."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from attrs import evolve, frozen

from headwater.model.schema import Schema
from headwater.sources.base import Piece, Reader, Split
from headwater.sources.conform import UnfitError, find_columns, missing_columns
from headwater.sources.csv_text import CsvText, ParsedText
from headwater.sources.file_formats import NO_COLUMNS, FileFormat
from headwater.sources.line_blocks import (
    DamagedFileError,
    cut_lines,
    first_line,
    lines_before,
    read_blocks,
    sampled_row_bytes,
)
from headwater.sources.malformed import bad_rows, unreadable

if TYPE_CHECKING:
    pass


@frozen
class CsvFormat(FileFormat):
    name: ClassVar[str] = "csv"
    usual_row_bytes: ClassVar[float] = 60

    header: bool = True
    """Is the first line of every file the names of its columns? Otherwise they are the declared ones, in order."""
    delimiter: str = ","
    null: str = ""
    formats: tuple[str, ...] = ()
    multiline: bool = False

    def reader(self, schema: Schema, optional: Schema = NO_COLUMNS) -> Reader:
        text = CsvText(schema, self.delimiter, self.null, self.formats, self.multiline)
        return CsvReader(text, self.header, optional)

    def cut(self, split: Split, rows: int) -> list[Split]:
        row_bytes = self.row_bytes(split["path"]) or self.usual_row_bytes
        if self.multiline:
            return [{**split, "rows": int(split["length"] / row_bytes)}]
        return cut_lines(split, rows, row_bytes)

    def row_bytes(self, path: str) -> float | None:
        return sampled_row_bytes(path, self.header)


@frozen
class CsvReader(Reader):
    """Reads the lines of a split in blocks."""

    text: CsvText
    header: bool = True
    optional: Schema = NO_COLUMNS
    """Columns that a header may have besides the declared ones."""

    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        return as_far_as_whole(split["path"], self.text.schema, self._pieces(split))

    def _pieces(self, split: Split) -> Iterator[Piece]:
        path = split["path"]
        first = first_line(path) if self.header else pa.py_buffer(b"")
        names = self.text.header(first) if self.header else self.text.schema.names
        empty = pa.RecordBatch.from_pylist([], schema=self.text.schema.to_arrow())
        try:
            places = find_columns(names, self.text.schema, required=())
        except UnfitError as problem:
            if first.size and split.get("start", 0) == 0:  # once per file; an empty file has nothing to say
                shown = bytes(first).decode("utf-8", "replace").rstrip("\r\n")
                yield Piece(empty, unreadable(path, str(problem), shown, line=1), where=path)
            return
        there = [f for f, place in zip(self.text.schema, places, strict=True) if place >= 0]
        there += [f for f in self.optional if f.name in names] if self.header else []
        text = evolve(self.text, schema=Schema(tuple(there)))
        missing = tuple(missing_columns(names, self.text.schema).items())
        for start, block in read_blocks(split, whole=self.text.multiline):
            lines = block.slice(first.size) if start == 0 else block
            found = text.parse(lines, names)
            yield piece_of(path, found, max(start, first.size))._replace(missing=missing)


def as_far_as_whole(path: str, schema: Schema, pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The rows before a damage; all the rest of the file is one bad row."""
    try:
        yield from pieces
    except DamagedFileError as problem:
        empty = pa.RecordBatch.from_pylist([], schema=schema.to_arrow())
        yield Piece(empty, unreadable(path, str(problem)), where=path)


def piece_of(path: str, found: ParsedText, start: int) -> Piece:
    """Parsed lines of a file from some place on; lines are counted only for bad ones."""
    if found.line is None or found.reason is None or found.raw is None or len(found.line) == 0:
        return Piece(found.rows, where=path)
    line = found.line + lines_before(path, start) + 1
    return Piece(found.rows, bad_rows(path, line, found.reason, found.raw), where=path)
