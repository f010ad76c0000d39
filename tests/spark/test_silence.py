"""A source that falls silent, for real: Spark's own last window stays open, ours closes."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

import headwater as hw
from headwater.backends.spark.session import SessionHandle

BEGINNING = dt.datetime(2026, 1, 1)
PATIENCE = 120


def bids(folder: Path) -> None:
    """Two windows of ten seconds, and a first row of the third; then nothing comes any more.

    Rows may be two seconds late, so the times alone do not tell that the second window is complete.
    """
    folder.mkdir()
    times = [BEGINNING + dt.timedelta(seconds=s) for s in (1, 2, 11, 12, 13, 21)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", tz="UTC"))})
    parquet.write_table(table, folder / "1.parquet")


def spark_windows(session: SessionHandle, folder: Path, seconds: float) -> list[tuple[int, int]]:
    """The windows that Spark has closed by itself within so many seconds, by their first second."""
    from pyspark.sql import functions as f

    rows = session.spark.readStream.schema("ts TIMESTAMP").parquet(str(folder))
    counted = rows.withWatermark("ts", "2 seconds").groupBy(f.window("ts", "10 seconds")).count()
    query = counted.writeStream.format("memory").queryName("closed").outputMode("append").start()
    try:
        query.processAllAvailable()
        query.awaitTermination(timeout=seconds)
        found = session.spark.table("closed").selectExpr("unix_timestamp(window.start) AS s", "count").collect()
    finally:
        query.stop()
    zero = int(BEGINNING.replace(tzinfo=dt.UTC).timestamp())
    return sorted((row.s - zero, row["count"]) for row in found)


def test_the_last_window_closes(session: SessionHandle, tmp_path: Path):
    bids(tmp_path / "bid")
    with hw.connect(spark=session.spark, checkpoint=tmp_path / "checkpoint") as engine:
        engine.sql(f"""
            CREATE STREAM bid (ts TIMESTAMP) SOURCE parquet('{tmp_path}/bid')
                ORDERED BY ts DISORDER 2 SECONDS TIMEOUT 2 SECONDS""")
        run = engine.sql("""
            SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL 10 SECONDS)
            GROUP BY window_start, window_end""").start()
        began = time.monotonic()
        ours: list[tuple[int, int]] = []
        while len(ours) < 2 and time.monotonic() - began < PATIENCE:
            engine.wait(0.5)
            ours = sorted((_seconds(row["window_start"]), row["n"]) for row in run.history().rows())
        took = time.monotonic() - began
    assert ours == [(0, 2), (10, 3)]
    assert spark_windows(session, tmp_path / "bid", took + 2) == [(0, 2)]


def _seconds(instant: dt.datetime) -> int:
    return int((instant.replace(tzinfo=None) - BEGINNING).total_seconds())


def test_an_absence_alert_fires_for_real(session: SessionHandle, tmp_path: Path):
    """One row comes and then nothing: its time is that of the system's clock, and so is the end of its window."""
    (tmp_path / "ping").mkdir()
    with hw.connect(spark=session.spark, checkpoint=tmp_path / "checkpoint") as engine:
        engine.sql(f"""
            CREATE STREAM ping (machine INT, ts TIMESTAMP) SOURCE parquet('{tmp_path}/ping')
                ORDERED BY ts ALONG WALL CLOCK WITHIN 1 SECOND""")
        sent = dt.datetime.now(dt.UTC)
        times = pa.array([sent], pa.timestamp("us", tz="UTC"))
        parquet.write_table(pa.table({"machine": pa.array([7], pa.int32()), "ts": times}), tmp_path / "ping/1.parquet")
        run = engine.sql("""
            SELECT f.machine FROM (VALUES (7)) AS f (machine)
            WHERE NOT EXISTS (SELECT 1 FROM ping [RANGE 3 SECONDS] p WHERE p.machine = f.machine)""").start()
        assert run.notices == ()
        alerts: list[dt.datetime] = []
        began = time.monotonic()
        while not alerts and time.monotonic() - began < PATIENCE:
            engine.wait(0.2)
            alerts = [row["_start"] for row in run.history().rows() if row["_start"] >= sent.replace(tzinfo=None)]
        assert engine.progress().streams[0].rows == 1
        assert engine.progress().streams[0].late_rows == 0
    assert alerts == [sent.replace(tzinfo=None) + dt.timedelta(seconds=3)]
