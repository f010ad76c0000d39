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
