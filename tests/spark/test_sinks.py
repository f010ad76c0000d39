"""Sinks that need Spark, and results that become DataFrames."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.model.types import parse_sql_type
from headwater.result import Result
from headwater.sinks import parquet
from headwater.sinks import spark as spark_sink
from headwater.sinks.base import Output, Staged
from headwater.sinks.spark_sink import SparkSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WIDE = Schema.of(
    a="BIGINT",
    b="STRING",
    c="DOUBLE",
    at="TIMESTAMP",
    many=parse_sql_type("ARRAY<INT>"),
    d=parse_sql_type("DECIMAL(9,2)"),
)


def staged(sink: SparkSink, tick: int, sizes: Sequence[int], folder: Path) -> list[Staged]:
    stager = pickle.loads(pickle.dumps(sink.stager()))
    parts = []
    for shard, size in enumerate(sizes):
        rows = [((i, f"row {i}", i / 2, i, [i], None), i, INFINITY if i == 0 else i + 5, 1) for i in range(size)]
        parts.append(stager.stage(tick, shard, Delta.from_rows(WIDE, rows), str(folder)))
    return parts


@pytest.mark.parametrize("sizes", [(3,), (3, 2), (5000, 4000), (5000, 2)], ids=str)
def test_a_function_gets_each_tick_as_a_frame(spark: SparkSession, tmp_path: Path, sizes: tuple[int, ...]):
    got: list[tuple[int, int, int, str]] = []

    def write(frame: DataFrame, tick: int) -> None:
        ends = frame.where("_end IS NULL").count()
        got.append((tick, frame.count(), ends, frame.schema["_start"].dataType.simpleString()))

    sink = spark_sink(write)
    sink.spark = spark
    sink.open(Output("wide", WIDE))
    parts = staged(sink, 4, sizes, tmp_path / "staging")
    assert [part.path is not None for part in parts] == [size > 100 for size in sizes]
    sink.deliver(4, parts, 0)
    sink.deliver(4, parts, 0)
    sink.deliver(5, [], 0)
    assert got == [(4, sum(sizes), len(sizes), "timestamp_ntz")]


def test_any_batch_writer_will_do(spark: SparkSession, tmp_path: Path):
    sink = spark_sink(lambda frame, tick: frame.write.mode("overwrite").parquet(f"{tmp_path}/out/tick={tick}"))
    sink.spark = spark
    sink.open(Output("wide", WIDE, speculative=True, timestamps=False))
    for tick in (1, 2):
        sink.deliver(tick, staged(sink, tick, (3, 1000), tmp_path / "staging"), 0)
    back = spark.read.parquet(f"{tmp_path}/out")
    assert back.count() == 2006
    assert back.groupBy("_op", "_tick", "tick").count().count() == 2


def test_spark_reads_the_files_of_the_parquet_sink(spark: SparkSession, tmp_path: Path):
    sink = parquet(tmp_path / "out")
    sink.open(Output("wide", WIDE))
    sink.deliver(0, staged(sink, 0, (3, 1000), tmp_path), 0)  # type: ignore[arg-type]
    staged(sink, 1, (10,), tmp_path)  # type: ignore[arg-type]  # not delivered: not to be seen
    back = spark.read.parquet(f"{tmp_path}/out")
    assert back.count() == 1003
    first = back.orderBy("_start", "a").first()
    assert (first["_start"], first["_end"], first["many"]) == (datetime(1970, 1, 1), None, [0])


def test_a_result_becomes_a_frame(spark: SparkSession):
    nested = pa.array([{"a b": [0]}, None], pa.struct([("a b", pa.list_(pa.timestamp("us")))]))
    table = pa.table({"x": [1, None], "at": pa.array([0, None], pa.timestamp("us")), "its `in`": nested})
    frame = Result(table).to_spark(spark)
    assert frame.schema["at"].dataType.simpleString() == "timestamp_ntz"
    assert sorted(frame.collect(), key=str) == [
        (1, datetime(1970, 1, 1), ([datetime(1970, 1, 1)],)),
        (None, None, None),
    ]
