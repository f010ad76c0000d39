"""Files with a JSON object on each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from attrs import frozen

from headwater.model.schema import Schema
from headwater.sources.base import Malformed, Piece, Reader, Split
from headwater.sources.csv_files import piece_of
from headwater.sources.file_formats import FileFormat
from headwater.sources.json_text import JsonText
from headwater.sources.line_blocks import cut_lines, read_blocks, sampled_row_bytes
from headwater.sources.spark_types import guarded, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@frozen
class JsonFormat(FileFormat):
    name: ClassVar[str] = "json"
    usual_row_bytes: ClassVar[float] = 120

    formats: tuple[str, ...] = ()

    def reader(self, schema: Schema) -> Reader:
        return JsonReader(JsonText(schema, self.formats))

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
            yield piece_of(split["path"], self.text.parse(block), start)
