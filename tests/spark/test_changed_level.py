"""The level of a query whose ticks are jobs of Spark's changes between two of them: tasks take over the states of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STREAM = "CREATE STREAM s (at BIGINT, k INT, x INT) ORDERED BY at DISORDER 5 SOURCE parquet('{folder}');"
_QUERY = "CREATE STREAM best AS SELECT k, COUNT(*) AS n, MAX(x) AS most FROM s WINDOW(RANGE 7) GROUP BY k"
_BATCHES = [[(at, at % 3, at * 7 % 10) for at in range(first, first + 6)] for first in (0, 6, 4, 11)]


def _write(folder: Path, number: int) -> None:
    rows = [dict(zip(("at", "k", "x"), row, strict=True)) for row in _BATCHES[number]]
    schema = pa.schema([("at", pa.int64()), ("k", pa.int32()), ("x", pa.int32())])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{number}.parquet")


def _history(spark: SparkSession, tmp_path: Path, levels: list[str]) -> list[tuple[object, ...]]:
    folder = tmp_path / "rows"
    folder.mkdir(parents=True)
    with hw.connect(spark=spark, checkpoint=tmp_path / "checkpoint", small_tick=0, shards=2) as engine:
        run = engine.sql(_STREAM.format(folder=folder) + f"{_QUERY} CONSISTENCY {levels[0]}").start()
        for number, level in enumerate(levels):
            run.set_consistency(level)
            _write(folder, number)
            engine.run_to_end(end_streams=number == len(levels) - 1)
        return sorted(tuple(row.values()) for row in run.history().rows())


def test_a_strong_query_changes_between_two_jobs(spark: SparkSession, tmp_path: Path):
    steady = _history(spark, tmp_path / "a", ["STRONG"] * 4)
    assert steady
    assert _history(spark, tmp_path / "b", ["STRONG", "STRONG", "MIDDLE", "MIDDLE"]) == steady
    assert _history(spark, tmp_path / "c", ["STRONG", "BLOCK 2 REMEMBER 90", "STRONG", "MIDDLE"]) == steady
