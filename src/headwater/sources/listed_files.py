"""Spark as the one who lists files and remembers which it has given out; it never opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"


def listed_splits(spark: SparkSession, path: str, **options: str | int) -> DataFrame:
    """A stream of the files of a path: one split each, with ``path``, ``length`` and ``modified`` (microseconds)."""
    from pyspark.sql import functions

    # The content is not selected, so it is not read.
    listed = spark.readStream.format("binaryFile").schema(_COLUMNS).options(**options).load(path)
    modified = functions.unix_micros("modificationTime").alias("modified")
    return listed.select(functions.to_json(functions.struct("path", "length", modified)).alias("split"))
