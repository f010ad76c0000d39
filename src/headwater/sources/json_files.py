"""Files with a JSON object on each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from attrs import frozen

from headwater.language.changes import element_columns
from headwater.model.schema import Schema
from headwater.sources.base import Malformed, Piece, Reader, Split
from headwater.sources.csv_files import piece_of
from headwater.sources.file_formats import NO_COLUMNS, FileFormat
from headwater.sources.json_text import JsonText
from headwater.sources.line_blocks import cut_lines, read_blocks, sampled_row_bytes
from headwater.sources.spark_types import guarded, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ELEMENTS = frozenset(element_columns(timestamps=True).names)


@frozen
class JsonFormat(FileFormat):
    name: ClassVar[str] = "json"
    usual_row_bytes: ClassVar[float] = 120

    formats: tuple[str, ...] = ()

    def reader(self, schema: Schema, optional: Schema = NO_COLUMNS) -> Reader:
        return JsonReader(JsonText(Schema((*schema.fields, *optional.fields)), self.formats))

    def cut(self, split: Split, rows: int) -> list[Split]:
        return cut_lines(split, rows, self.row_bytes(split["path"]) or self.usual_row_bytes)

    def row_bytes(self, path: str) -> float | None:
        return sampled_row_bytes(path, header=False)

    def native(
        self, spark: SparkSession, paths: Sequence[str], schema: Schema, malformed: Malformed
    ) -> DataFrame | None:
        if self.formats:
            return None
        reading = spark.read.schema(spark_schema(schema)).options(mode="FAILFAST")
        return guarded(reading.json(list(paths)), schema)


@frozen
class JsonReader(Reader):
    text: JsonText

    def read(self, split: Split) -> Iterator[Piece]:
        for start, block in read_blocks(split):
            piece = piece_of(split["path"], self.text.parse(block), start)
            yield piece._replace(rows=_without_missing(piece.rows))


def _without_missing(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Keys that no line has are no columns: whether rows carry intervals is told by those that they have."""
    missing = [n for n in rows.schema.names if n in _ELEMENTS and rows.column(n).null_count == rows.num_rows]
    return rows.drop_columns(missing) if missing else rows
