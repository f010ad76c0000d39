"""Parquet files as a batch that Spark reads by itself, and what their footers say of the times in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY, MICROSECONDS
from headwater.sources.base import Span, SparkBatch
from headwater.sources.conform import UnfitError, find_columns
from headwater.sources.parquet_files import read_metadata
from headwater.sources.spark_types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_PATTERN = set("*?[]{}\\")
"""Spark would take a path with one of these for many."""


def parquet_batch(spark: SparkSession, paths: Sequence[str], schema: Schema, time: str) -> SparkBatch | None:
    """None if Spark would not find in them what tasks do: other columns, other types, files that are damaged."""
    if not paths or any(set(path) & _PATTERN for path in paths):
        return None
    spans: list[Span | None] = []
    for path in paths:
        metadata = read_metadata(path)
        if metadata is None or not _has_columns(metadata.schema.to_arrow_schema(), schema):
            return None
        spans.append(_span(metadata, schema, time))
    frame = spark.read.schema(_zoned(schema)).parquet(*paths)
    return SparkBatch(frame, _together(spans))


def _has_columns(found: pa.Schema, schema: Schema) -> bool:
    try:
        fields = [found.field(place) for place in find_columns(found.names, schema)]
    except UnfitError:
        return False
    pairs = zip(fields, schema, strict=True)
    return all(own.name == f.name and _without_zone(own.type) == f.type for own, f in pairs)


def _without_zone(type_: pa.DataType) -> pa.DataType:
    return pa.timestamp("us") if pa.types.is_timestamp(type_) and type_.unit == "us" else type_


def _zoned(schema: Schema) -> StructType:
    """A TIMESTAMP with a zone is its microseconds; one without must be converted, row by row."""
    from pyspark.sql import types

    plain = types.TimestampNTZType()
    fields = [(c.name, types.TimestampType() if c.dataType == plain else c.dataType) for c in spark_schema(schema)]
    return types.StructType([types.StructField(name, type_) for name, type_ in fields])


def _span(metadata: pq.FileMetaData, schema: Schema, time: str) -> Span | None:
    """None if the footer does not say that all is well."""
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    needed = {time, *(f.name for f in schema if not f.nullable)}
    if not needed <= places.keys() or time not in schema.names:
        return None
    rows, lows, highs = 0, [], []
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        statistics = {name: group.column(places[name]).statistics for name in needed}
        if any(s is None or not s.has_null_count or s.null_count for s in statistics.values()):
            return None
        if group.num_rows:
            if not statistics[time].has_min_max:
                return None
            lows.append(statistics[time].min_raw)
            highs.append(statistics[time].max_raw)
        rows += group.num_rows
    if not rows:
        return Span(0, INFINITY, BEGINNING)
    unit = MICROSECONDS["DAY"] if pa.types.is_date32(schema.field(time).type) else 1
    return Span(rows, min(lows) * unit, max(highs) * unit)


def _together(spans: Sequence[Span | None]) -> Span | None:
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    rows, oldest, newest = zip(*known, strict=True)
    return Span(sum(rows), min(oldest), max(newest))
