"""A stream whose ticks are jobs of Spark's gets a column between two runs: its query goes on, files without it have NULL."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _write(folder: Path, number: int, *, extra: bool) -> None:
    rows = [{"at": 10 * number + i, "k": i % 2} | ({"extra": f"x{i}"} if extra else {}) for i in range(4)]
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{number}.parquet")


def test_a_restart_with_another_column(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    folder = tmp_path / "rows"
    folder.mkdir()
    _write(folder, 0, extra=False)
    for columns in ("at BIGINT, k INT", "k INT, extra STRING, at BIGINT"):
        again = "extra" in columns
        if again:
            _write(folder, 1, extra=False)
            _write(folder, 2, extra=True)
        with hw.connect(spark=spark, checkpoint=tmp_path / "checkpoint", small_tick=0, shards=2) as engine:
            engine.sql(f"CREATE STREAM s ({columns}) SOURCE parquet('{folder}') ORDERED BY at DISORDER 100")
            with engine.held():
                counted = engine.sql(
                    "SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE 100) GROUP BY k", name="counted"
                ).start()
                if again:
                    read = engine.sql("SELECT extra, COUNT(*) AS n FROM s WINDOW(RANGE 100) GROUP BY extra").start()
            engine.run_to_end(end_streams=again)
            if again:
                assert sorted((r["k"], r["n"]) for r in counted.snapshot(at=23).rows()) == [(0, 6), (1, 6)]
                found = {r["extra"]: r["n"] for r in read.snapshot(at=23).rows()}
                assert found == {None: 4, "x0": 1, "x1": 1, "x2": 1, "x3": 1}
    (told,) = (r.getMessage() for r in caplog.records if r.levelno == logging.WARNING and r.name == "headwater")
    assert 'without column "extra"' in told
    assert "1.parquet" in told


def _values(number: int, *, wide: bool) -> pa.Table:
    at = [10 * number + i for i in range(4)]
    k = [1, 2, 1, 2**40 if wide else 2]
    types = [pa.int64(), pa.float64()] if wide else [pa.int32(), pa.float32()]
    return pa.table({"at": at, "k": pa.array(k, types[0]), "f": pa.array([0.25 * i for i in range(4)], types[1])})


def test_a_restart_with_wider_columns(spark: SparkSession, tmp_path: Path):
    """The source's files, the states and the answer's files get wider; Spark reads the answer as what it is now."""
    queries = {
        "summed": "SELECT k, COUNT(*) AS n, MAX(f) AS f FROM s WINDOW(RANGE 100) GROUP BY k",
        "pairs": "SELECT a.k, b.f FROM s WINDOW(RANGE 15) a JOIN s WINDOW(RANGE 15) b ON a.k = b.k WHERE a.at < b.at",
        "last": "SELECT k, f FROM s WINDOW(PARTITION BY k ROWS 2)",
        "rows": "SELECT k, f FROM s WHERE k > 0",
    }
    answers: dict[str, dict[str, list[str]]] = {}
    for way in ("wide", "restarted"):
        folder = tmp_path / way
        (folder / "in").mkdir(parents=True)
        for number, wide in enumerate((False, True)):
            pq.write_table(_values(number, wide=wide), folder / "in" / f"{number}.parquet")
            types = "at BIGINT, k BIGINT, f DOUBLE" if wide or way == "wide" else "at INT, k INT, f FLOAT"
            shards = {"shards": 3 if wide else 2}
            with hw.connect(spark=spark, checkpoint=folder / "checkpoint", small_tick=0, **shards) as engine:
                engine.sql(f"CREATE STREAM s ({types}) SOURCE parquet('{folder}/in') ORDERED BY at DISORDER 100")
                with engine.held():
                    for name, sql in queries.items():
                        engine.sql(sql, name=name).start(hw.sinks.parquet(folder / name))
                engine.run_to_end(end_streams=wide)
        read = {name: spark.read.schema("k BIGINT, n BIGINT, f DOUBLE").parquet(str(folder / name)) for name in queries}
        answers[way] = {name: sorted(map(str, frame.collect())) for name, frame in read.items()}
    assert answers["restarted"] == answers["wide"]
    assert all(answers["wide"].values())
    files = [pq.read_schema(file) for file in sorted((tmp_path / "restarted" / "rows").glob("*.parquet"))]
    assert {str(schema.field("k").type) for schema in files} == {"int32", "int64"}
