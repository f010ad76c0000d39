"""Streams that revise themselves, on Spark: files read by tasks, and rows of DataFrames."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater import sinks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH = datetime(1970, 1, 1)


def rows_of(run: hw.Run) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in run.history().rows()), key=str)


@pytest.mark.parametrize("small_tick", [0, 1_000])
def test_a_changelog_is_written_and_read_again(small_tick: int, spark: SparkSession, tmp_path: Path):
    """As a job, and in the driver."""
    with hw.connect(runner="inprocess", shards=2) as engine:
        engine.sql("CREATE STREAM bid (item INT, euro INT, at INT) ORDERED BY at DISORDER 10")
        query = "SELECT item, MAX(euro) AS top FROM bid WINDOW(RANGE 6) GROUP BY item CONSISTENCY MIDDLE"
        engine.sql(query, name="written").start(sinks.parquet(tmp_path / "log"))
        kept = engine.sql(query, name="kept").start()
        for base in range(0, 40, 4):
            engine.push(
                "bid", [{"item": i % 3, "euro": (7 * i + base) % 11, "at": base + (5 * i) % 8} for i in range(5)]
            )
        engine.run_to_end()
        expected = rows_of(kept)
    with hw.connect(spark=spark, checkpoint=tmp_path / "checkpoint", small_tick=small_tick) as engine:
        option = "changes => 'headwater', instants => 'numbers', rows_per_tick => 20"
        engine.sql(f"CREATE STREAM log (item INT, top INT) SOURCE parquet('{tmp_path}/log', {option})")
        again = engine.sql("SELECT item, top FROM log").start()
        engine.run_to_end()
        assert rows_of(again) == expected


EVENT = "before STRUCT<id: INT, city: STRING>, after STRUCT<id: INT, city: STRING>, op STRING, ts_ms BIGINT"


def test_change_events_come_as_a_dataframe(spark: SparkSession, tmp_path: Path):
    (tmp_path / "events").mkdir()
    events = [
        {"op": "c", "after": {"id": 1, "city": "Bern"}, "ts_ms": 1},
        {"op": "c", "after": {"id": 2, "city": "Bern"}, "ts_ms": 2},
        {"op": "u", "before": {"id": 1, "city": "Bern"}, "after": {"id": 1, "city": "Rome"}, "ts_ms": 3},
        {"op": "d", "before": {"id": 2, "city": "Bern"}, "ts_ms": 4},
    ]
    (tmp_path / "events" / "1.json").write_text("".join(json.dumps(event) + "\n" for event in events))
    frame = spark.readStream.schema(EVENT).json(str(tmp_path / "events"))
    with hw.connect(spark=spark, checkpoint=tmp_path / "checkpoint", small_tick=0) as engine:
        engine.register("keyed", frame, changes="debezium", key=["id"], disorder="1 second")
        engine.register("keyless", frame, changes="debezium", disorder="1 second")
        runs = [
            engine.sql(f"SELECT city, COUNT(*) AS n FROM {table} GROUP BY city", name=f"of_{table}").start()
            for table in ("keyed", "keyless")
        ]
        engine.run_to_end()
        at = [EPOCH + timedelta(milliseconds=i) for i in range(5)]
        expected = [
            ("Bern", 1, at[1], at[2]),
            ("Bern", 1, at[3], at[4]),
            ("Bern", 2, at[2], at[3]),
            ("Rome", 1, at[3], None),
        ]
        assert [rows_of(run) for run in runs] == [expected, expected]


def test_rows_without_a_time_are_stamped_by_the_tick(spark: SparkSession, tmp_path: Path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "1.json").write_text("".join(json.dumps({"x": x}) + "\n" for x in range(10)))
    frame = spark.readStream.schema("x INT").json(str(tmp_path / "rows"))
    before = datetime.now() - timedelta(days=1)
    with hw.connect(spark=spark, checkpoint=tmp_path / "checkpoint", small_tick=0) as engine:
        engine.register("s", frame)
        run = engine.sql("SELECT x FROM s").start()
        engine.run_to_end()
        found = run.history().rows()
    assert sorted(row["x"] for row in found) == list(range(10))
    assert len({row["_start"] for row in found}) == 1
    assert found[0]["_start"] > before
