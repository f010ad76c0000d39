"""Mistakes while an engine runs on Spark: whoever makes one hears of it, with the row or the query."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.errors import HeadwaterError


def test_a_bad_push_is_refused_and_a_query_that_fails_in_a_task_is_named(spark: SparkSession, tmp_path: Path):
    rows = pa.table({"v": ["1", "x"], "at": pa.array([1, 2], pa.int32())})
    with hw.connect(spark=spark, shards=2, small_tick=0) as engine:
        engine.sql("CREATE STREAM r (x INT, at INT) ORDERED BY at IN ORDER")
        engine.sql(f"CREATE STREAM s (v STRING, at INT) SOURCE parquet('{tmp_path}') ORDERED BY at IN ORDER")
        pushed = engine.sql("SELECT x, COUNT(*) AS n FROM r [RANGE 5] GROUP BY x").start()
        with pytest.raises(HeadwaterError, match='BAD_ROW: stream "r" cannot take a row: column "x" is INT'):
            engine.push("r", [(1, 1), ("a", 2)])
        engine.push("r", [(7, 3)], frontier=9)
        assert pushed.snapshot(at=4).rows() == [{"x": 7, "n": 1}]
        engine.sql("SELECT MAX(CAST(v AS INT)) AS m FROM s [RANGE 5]", name="culprit").start()
        pq.write_table(rows, tmp_path / "a.parquet")
        with pytest.raises(HeadwaterError, match='EXPRESSION_FAILED: query "culprit": could not compute'):
            engine.run_to_end()
