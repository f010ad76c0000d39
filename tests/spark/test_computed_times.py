"""Times that are computed of numbers, in rows that Spark reads: they are taken, late and malformed as in process."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.backends.spark import job, native_answers, native_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = 1_700_000_000_000
QUERIES = {
    "filter": "SELECT k, v + 1 AS w, rowtime FROM t WHERE v > 20",
    "windows": "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM t [RANGE 20 SECONDS] GROUP BY k",
    "tumble": "SELECT k, window_end, MIN(v) AS low FROM TUMBLE(t, DESCRIPTOR(rowtime), 10 SECONDS) GROUP BY k, window_end",
}
SCHEMA = "ms BIGINT, k INT, v BIGINT"


def bring(folder: Path, step: int) -> None:
    """In no order; some are late, one has no time and one has none that there is."""
    dice = np.random.default_rng(step)
    ms = [*(AT + step * 20_000 + dice.integers(0, 26_000, 50)).tolist(), None, 2**63 - 1]
    if step:
        ms[:2] = [AT + step * 20_000 - 15_000, AT + step * 20_000 - 17_000]
    rows = [{"ms": at, "k": int(dice.integers(5)), "v": int(dice.integers(100))} for at in ms]
    table = pa.Table.from_pylist(rows, pa.schema({"ms": pa.int64(), "k": pa.int32(), "v": pa.int64()}))
    path = folder / f"{step:04d}.parquet"
    pq.write_table(table, folder / f"_{path.name}")
    os.utime(folder / f"_{path.name}", (1_000_000 + step, 1_000_000 + step))
    (folder / f"_{path.name}").rename(path)


def run(
    engine: hw.Engine, place: Path, queries: dict[str, str], sink: Any = hw.sinks.memory
) -> tuple[dict, dict, list]:
    with engine.held():
        runs = {name: engine.sql(text, name=name).start(sink(name)) for name, text in queries.items()}
    for step in range(3):
        with engine.held():
            bring(place, step)
        engine.run_to_end(end_streams=False)
    engine.run_to_end()
    histories = {
        name: sorted(tuple(row.values()) for row in r.history().rows()) for name, r in runs.items() if sink is in_memory
    }
    aside = [
        sorted(repr({k: v for k, v in row.items() if k != "source"}) for row in engine.diverted(f"t_{kind}").rows())
        for kind in ("late", "bad")
    ]
    return histories, engine._core.manifest.counts["t"], aside


def in_memory(name: str) -> Any:
    return hw.sinks.memory()


def declared(place: Path) -> str:
    source = f"SOURCE parquet('{place}', malformed => 'divert')"
    return f"CREATE STREAM t ({SCHEMA}) {source} ORDERED BY timestamp_millis(ms) DISORDER 6 SECONDS"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict, list]:
    place = tmp_path_factory.mktemp("there")
    with hw.connect(runner="inprocess") as engine:
        engine.sql(declared(place))
        found = run(engine, place, QUERIES, in_memory)
    assert found[1] == {"rows": 146, "late": 4, "bad": 6}
    return found


def test_a_streaming_frame(spark: SparkSession, tmp_path: Path, expected: Any, monkeypatch: pytest.MonkeyPatch):
    taken: list[bool] = []
    original = native_rows.native_rows

    def noted(*arguments: Any) -> Any:
        found = original(*arguments)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(job, "native_rows", noted)
    with hw.connect(spark=spark, small_tick=0) as engine:
        frame = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
        engine.register("t", frame, time="timestamp_millis(ms)", disorder="6 seconds", malformed="divert")
        histories, counts, aside = run(engine, tmp_path, QUERIES, in_memory)
    assert taken == [True] * 3, "Spark computed the time of every batch"
    assert (histories, counts) == expected[:2]
    assert aside == expected[2]


def test_files_that_spark_answers_by_itself(
    spark: SparkSession, tmp_path: Path, expected: Any, monkeypatch: pytest.MonkeyPatch
):
    answered: list[bool] = []
    original = native_answers.answers

    def noted(*arguments: Any) -> Any:
        found = original(*arguments)
        answered.append(found is not None)
        return found

    monkeypatch.setattr(job, "answers", noted)
    place = tmp_path / "in"
    place.mkdir()
    with hw.connect(spark=spark, small_tick=0) as engine:
        engine.sql(declared(place))
        query = {"filter": QUERIES["filter"]}
        _, counts, aside = run(engine, place, query, lambda name: hw.sinks.parquet(tmp_path / name))
    assert True in answered
    assert (counts, aside) == expected[1:]
    rows = pq.read_table(tmp_path / "filter").select(["k", "w", "rowtime"]).to_pylist()
    assert sorted(tuple(r.values()) for r in rows) == [row[:3] for row in expected[0]["filter"]]


def test_a_timestamp_of_spark_keeps_its_instant_in_any_zone(spark: SparkSession, tmp_path: Path):
    """TIMESTAMP is an instant; TIMESTAMP_NTZ has no zone and is taken as UTC."""
    eight = datetime(2024, 1, 1, 8)
    zoned = pa.array([eight], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": zoned, "plain": pa.array([eight], pa.timestamp("us"))}), tmp_path / "a.parquet")
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.readStream.schema("ts TIMESTAMP, plain TIMESTAMP_NTZ").parquet(str(tmp_path))
        with hw.connect(spark=spark) as engine:
            engine.register("r", frame, time="ts")
            run = engine.sql("SELECT ts, plain FROM r").start()
            engine.run_to_end()
            (row,) = run.history().rows()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert (row["ts"], row["plain"]) == (eight, eight)
