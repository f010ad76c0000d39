"""Any streaming DataFrame of Spark's as a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.errors import InputError
from headwater.language.text import did_you_mean
from headwater.model.schema import Schema
from headwater.sources.base import Malformed, Source
from headwater.sources.spark_types import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DataFrameSource(Source):
    """The rows of a streaming DataFrame. A TIMESTAMP of Spark's is an instant and becomes the same one in UTC.

    Its replay after a crash is up to the source that the DataFrame reads from.
    """

    def __init__(self, frame: DataFrame, *, malformed: Malformed = "fail", name: str = "stream") -> None:
        if not frame.isStreaming:
            raise InputError(
                "NOT_STREAMING",
                f'"{name}" is a DataFrame that does not stream',
                hint="Read it with spark.readStream, or push its rows: MemorySource(schema).push(frame.toArrow()).",
            )
        _check_names(frame, name)
        self.frame, self.malformed = frame, malformed
        self.schema: Schema = schema_of(frame.schema)

    def rows(self, spark: SparkSession) -> DataFrame:
        """As they are: in Arrow a TIMESTAMP of Spark's is in UTC, whatever the session's zone; the intake takes it so."""
        return self.frame

    def check_time(self, column: str) -> None:
        """Can the column be the stream's time?"""
        if column not in self.schema.names:
            hint = did_you_mean(column, self.schema.names, all_of_them="The columns are")
            raise InputError("UNKNOWN_COLUMN", f'column "{column}" does not exist', hint=hint)

    def __repr__(self) -> str:
        return "a Spark DataFrame"


def _check_names(frame: DataFrame, name: str) -> None:
    folded: set[str] = set()
    for column in frame.columns:
        if column.casefold() in folded:
            message = f'"{name}" has two columns "{column}"'
            raise InputError("DUPLICATE_COLUMN", message, hint="Rename one with withColumnRenamed, or select others.")
        folded.add(column.casefold())
