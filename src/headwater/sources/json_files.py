"""Files with a JSON object on each line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from attrs import frozen

from headwater.language.changes import element_columns
from headwater.model.schema import Schema
from headwater.sources.base import Piece, Reader, Split
from headwater.sources.conform import missing_columns
from headwater.sources.csv_files import as_far_as_whole, piece_of
from headwater.sources.file_formats import NO_COLUMNS, FileFormat
from headwater.sources.json_text import JsonText
from headwater.sources.line_blocks import cut_lines, read_blocks, sampled_row_bytes

if TYPE_CHECKING:
    pass

_ELEMENTS = frozenset(element_columns(timestamps=True).names)
_SOME = 1 << 16


@frozen
class JsonFormat(FileFormat):
    name: ClassVar[str] = "json"
    usual_row_bytes: ClassVar[float] = 120

    formats: tuple[str, ...] = ()

    def reader(self, schema: Schema, optional: Schema = NO_COLUMNS) -> Reader:
        columns = Schema((*schema.fields, *optional.fields))
        return JsonReader(JsonText(columns, self.formats, exact=frozenset(optional.names)))

    def cut(self, split: Split, rows: int) -> list[Split]:
        return cut_lines(split, rows, self.row_bytes(split["path"]) or self.usual_row_bytes)

    def row_bytes(self, path: str) -> float | None:
        return sampled_row_bytes(path, header=False)


@frozen
class JsonReader(Reader):
    text: JsonText

    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        return as_far_as_whole(split["path"], self.text.schema, self._pieces(split))

    def _pieces(self, split: Split) -> Iterator[Piece]:
        for start, block in read_blocks(split):
            piece = piece_of(split["path"], self.text.parse(block), start)
            yield piece._replace(rows=_without_missing(piece.rows), missing=self._misspelled(piece.rows, block))

    def _misspelled(self, rows: pa.RecordBatch, block: pa.Buffer) -> tuple[tuple[str, str], ...]:
        """Columns without any value, where the first line has a key that may be meant.

        A key that is just left out is NULL in JSON, and nothing to speak of."""
        own = [f for f in self.text.schema if f.name not in self.text.exact]
        empty = [f.name for f in own if rows.num_rows and rows.column(f.name).null_count == rows.num_rows]
        if not empty:
            return ()
        missing = missing_columns(_first_keys(block), Schema(tuple(own)))
        return tuple((name, near) for name, near in missing.items() if near and name in empty)


def _first_keys(block: pa.Buffer) -> list[str]:
    """Those of the first object, unless it is very long."""
    try:
        first = json.loads(bytes(memoryview(block)[:_SOME]).lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return []
    return list(first) if isinstance(first, dict) else []


def _without_missing(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Keys that no line has are no columns: whether rows carry intervals is told by those that they have."""
    missing = [n for n in rows.schema.names if n in _ELEMENTS and rows.column(n).null_count == rows.num_rows]
    return rows.drop_columns(missing) if missing else rows
