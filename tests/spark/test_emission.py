"""What is known shows in ticks that are jobs of Spark's too: a quiet key, the newest row of each key, sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STREAM = "CREATE STREAM s (k INT, t BIGINT) ORDERED BY t DISORDER 10 SOURCE parquet('{folder}');"
_QUERIES = {
    "quiet": "SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE 3600) GROUP BY k",
    "last": "SELECT k, t FROM s [PARTITION BY k ROWS 1]",
    "sessions": """SELECT k, window_end, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(t), 100)
                   GROUP BY k, window_start, window_end""",
}
_ANSWERS = {"quiet": [(1, 1), (2, 29)], "last": [(1, 0), (2, 1740)], "sessions": [(1, 100, 1)]}


def test_quiet_keys_last_rows_and_sessions(spark: SparkSession, tmp_path: Path):
    folder = tmp_path / "rows"
    folder.mkdir()
    changes: list[tuple] = []
    rows: list[tuple] = []
    with hw.connect(spark=spark, checkpoint=tmp_path / "checkpoint", small_tick=0, shards=2) as engine:
        engine.sql(_STREAM.format(folder=folder))
        with engine.held():
            runs = {name: engine.sql(query, name=name).start() for name, query in _QUERIES.items()}
            for form, found in (("EMIT ON START", changes), ("", rows)):
                sink = hw.sinks.spark(lambda frame, tick, found=found: found.extend(frame.where("k = 1").collect()))
                closed = engine.sql(f"{_QUERIES['quiet']} {form}", name=f"spark {form}").start(sink)
            engine.sql(f"{_QUERIES['last']} EMIT EVERY 600", name="every").start(hw.sinks.parquet(tmp_path / "every"))
        for number, minutes in enumerate([range(1), range(1, 31)]):
            table = {"k": pa.array([1 + (m > 0) for m in minutes], pa.int32()), "t": [60 * m for m in minutes]}
            pq.write_table(pa.table(table), folder / f"{number}.parquet")
            engine.run_to_end(end_streams=False)
        for name, run in runs.items():
            assert sorted(tuple(row.values()) for row in run.snapshot().rows()) == _ANSWERS[name]
            assert run.lag <= 10
        assert closed.frontier == 1790, "known, whatever has been delivered"
        assert [(r["_op"], r["_start"], r["_end"]) for r in changes] == [("insert", 0, None)]
        assert rows == []
    every = pq.read_table(tmp_path / "every").to_pylist()
    assert {(r["k"], r["_start"], r["_end"]) for r in every} == {
        (1, 0, 600), (1, 600, 1200), (1, 1200, 1800), (2, 600, 1200), (2, 1200, 1800)
    }  # fmt: skip
