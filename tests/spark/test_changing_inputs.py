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


def test_a_newcomer_sees_what_the_table_holds(spark: SparkSession, tmp_path: Path):
    """As a job of Spark's, and after a restart."""

    def write(number: int, *events: dict[str, Any]) -> None:
        (tmp_path / "events").mkdir(exist_ok=True)
        hidden = tmp_path / "events" / f".{number}"
        hidden.write_text("".join(json.dumps(event) + "\n" for event in events))
        hidden.rename(tmp_path / "events" / f"{number}.json")

    def city(key: int, name: str, at: int) -> dict[str, Any]:
        return {"op": "u", "after": {"id": key, "city": name}, "ts_ms": at}

    write(1, city(1, "Bern", 1), city(2, "Rome", 2), {"op": "d", "before": {"id": 2}, "ts_ms": 3})
    for new in ("first", "second"):
        with hw.connect(spark=spark, checkpoint=tmp_path / "checkpoint", small_tick=0) as engine:
            engine.sql(
                "CREATE TABLE customer (id INT PRIMARY KEY, city STRING)"
                f" SOURCE json('{tmp_path}/events', changes => 'debezium') DISORDER 1 MILLISECOND"
            )
            names = ["first"] if new == "first" else ["first", "second"]
            runs = [engine.sql("SELECT id, city FROM customer", name=name).start() for name in names]
            if new == "second":
                write(2, city(3, "Oslo", 9))
            engine.run_to_end(end_streams=new == "second")
    at = [EPOCH + timedelta(milliseconds=i) for i in range(10)]
    # The second row has ended, but its end was not final yet when the second query began.
    assert rows_of(runs[1]) == [(1, "Bern", at[1], None), (2, "Rome", at[2], at[3]), (3, "Oslo", at[9], None)]


def test_a_chain_of_two_engines_answers_while_it_runs(spark: SparkSession, tmp_path: Path):
    """The first one here, the second on Spark: how far the answers go comes with the files, also after a restart."""
    query = "SELECT k, COUNT(*) AS n FROM reading WINDOW(RANGE 4) GROUP BY k"
    with hw.connect(runner="inprocess", shards=2) as first:
        first.sql("CREATE STREAM reading (k INT, at INT) ORDERED BY at IN ORDER")
        first.sql(query, name="counted").start(sinks.parquet(tmp_path / "log"))
        for last in (20, 40):
            first.push("reading", [{"k": 1, "at": last - 19}, {"k": 2, "at": last - 18}, {"k": 1, "at": last}])
            with hw.connect(spark=spark, checkpoint=tmp_path / "checkpoint", small_tick=0) as second:
                second.sql(
                    "CREATE STREAM counted (k INT, n BIGINT)"
                    f" SOURCE parquet('{tmp_path}/log', changes => 'headwater', instants => 'numbers')"
                )
                run = second.sql("SELECT SUM(n) AS total FROM counted", name="total").start()
                second.run_to_end(end_streams=False)
                assert last - 4 <= run._core.deployment["total"].frontier <= last
                assert [row["total"] for row in run.snapshot(at=last - 16).rows()] == [2]
