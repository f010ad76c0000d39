"""Time that passes in silence, on a clock that is moved by hand: absence is noticed, and the last windows close."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import headwater as hw
from headwater.clock.wall import VirtualClock

NINE = dt.datetime(2026, 1, 1, 9)
SECOND = 1_000_000
ABSENT = """
    SELECT f.machine FROM (VALUES (1), (2)) AS f (machine)
    WHERE NOT EXISTS (SELECT 1 FROM ping [RANGE 30 SECONDS] p WHERE p.machine = f.machine)"""
WINDOWS = """
    SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE ping, DESCRIPTOR(ts), INTERVAL 10 SECONDS)
    GROUP BY window_start"""


def at(seconds: float) -> dt.datetime:
    return NINE + dt.timedelta(seconds=seconds)


class Fleet:
    """An engine whose clock stands at nine, with a stream of pings."""

    def __init__(self, clauses: str = "ALONG WALL CLOCK WITHIN 2 SECONDS", **options: Any) -> None:
        self.clock = VirtualClock(int(NINE.replace(tzinfo=dt.UTC).timestamp()) * SECOND)
        self.engine = hw.connect(runner="inprocess", clock=self.clock, **options)
        self.engine.sql(f"CREATE STREAM ping (machine INT, ts TIMESTAMP) ORDERED BY ts {clauses}")

    def wait(self, seconds: float) -> None:
        self.clock.advance(int(seconds * SECOND))
        self.engine.run_to_end(end_streams=False)

    def ping(self, machine: int, seconds: float) -> None:
        self.engine.push("ping", [{"machine": machine, "ts": at(seconds)}])

    @property
    def ticks(self) -> int:
        return self.engine._core.manifest.tick


def machines(run: hw.Run) -> list[int]:
    return sorted(row["machine"] for row in run.snapshot().rows())


def test_an_absence_alert_fires_while_everything_is_silent():
    fleet = Fleet()
    with fleet.engine:
        run = fleet.engine.sql(ABSENT).start()
        assert run.notices == ()
        fleet.ping(1, 0)
        fleet.wait(5)
        fleet.ping(2, 5)
        fleet.wait(24)
        assert machines(run) == []
        fleet.wait(5)
        assert machines(run) == [1], "34 seconds, of which two may be missing"
        fleet.wait(5)
        assert machines(run) == [1, 2]
        fleet.ping(2, 39)
        fleet.wait(3)
        assert machines(run) == [1]


def test_the_last_window_closes_in_silence():
    fleet = Fleet()
    with fleet.engine:
        run = fleet.engine.sql(WINDOWS).start()
        fleet.ping(1, 0)
        fleet.ping(2, 1)
        fleet.wait(11)
        assert run.history().rows() == []
        fleet.wait(20)
        assert [(row["window_start"], row["n"]) for row in run.history().rows()] == [(NINE, 2)]


def test_time_passes_before_the_first_row():
    fleet = Fleet()
    with fleet.engine:
        run = fleet.engine.sql(WINDOWS).start()
        fleet.wait(30)
        assert run.frontier == at(30), "the window until 30 is not final, and shows from then on"


def test_an_idle_engine_ticks_once_a_second_and_not_more():
    fleet = Fleet()
    with fleet.engine:
        fleet.engine.sql(WINDOWS).start()
        fleet.wait(1)
        before = fleet.ticks
        for _ in range(10):
            fleet.wait(0.3)
        assert fleet.ticks - before == 2


def test_a_stream_that_nobody_reads_does_not_run_ahead_of_its_rows(tmp_path: Path):
    """Its file waits all the time; whoever reads it later finds its rows in time."""
    fleet = Fleet()
    with fleet.engine:
        times = pa.array([at(s) for s in (1, 2, 3)], pa.timestamp("us", tz="UTC"))
        parquet.write_table(pa.table({"ts": times}), tmp_path / "1.parquet")
        fleet.engine.sql(
            f"CREATE STREAM old (ts TIMESTAMP) SOURCE parquet('{tmp_path}') ORDERED BY ts ALONG WALL CLOCK"
        )
        fleet.engine.sql(WINDOWS).start()
        fleet.wait(3_600)
        run = fleet.engine.sql("SELECT ts FROM old", name="old_rows").start()
        fleet.wait(1)
        fleet.wait(1)
        assert len(run.history().rows()) == 3
        assert fleet.engine._core.times.clock.late("old") == {}
        assert run.frontier > at(3_500), "all is taken, so time is where the wall clock is"


def test_a_restart_after_an_hour_makes_nothing_late(tmp_path: Path):
    rows, place = tmp_path / "rows", tmp_path / "checkpoint"
    rows.mkdir()

    def write(name: str, *seconds: int) -> None:
        times = pa.array([at(s) for s in seconds], pa.timestamp("us", tz="UTC"))
        parquet.write_table(pa.table({"ts": times}), rows / f"{name}.parquet")

    clock = VirtualClock(int(NINE.replace(tzinfo=dt.UTC).timestamp()) * SECOND)
    for n in range(2):
        with hw.connect(runner="inprocess", clock=clock, checkpoint=place) as engine:
            write(str(n), n * 100, n * 100 + 1)
            engine.sql(f"CREATE STREAM s (ts TIMESTAMP) SOURCE parquet('{rows}') ORDERED BY ts ALONG WALL CLOCK")
            engine.sql("SELECT ts FROM s", name="q").start()
            engine.run_to_end(end_streams=False)
            clock.advance(2 * SECOND)
            engine.run_to_end(end_streams=False)
            assert engine._core.times.clock.late("s") == {}
            assert engine.progress().streams[0].rows == 2 * n + 2
        clock.advance(3_600 * SECOND)


def test_show_heartbeats_tells_what_comes_next():
    fleet = Fleet()
    with fleet.engine:
        fleet.engine.sql(WINDOWS).start()
        fleet.wait(10)
        text = fleet.engine.sql("SHOW HEARTBEATS")
        assert f"{fleet.clock.now() - 2 * SECOND}" == "1767258008000000", "two seconds ago"
        assert "2026-01-01 09:00:08 -1µs" in text, "the heartbeat"
        assert "2026-01-01 09:00:11" in text, "the next one"
        told = fleet.engine.sql("EXPLAIN HEARTBEAT SELECT * FROM ping")
        assert "set by ALONG WALL CLOCK WITHIN 2 SECONDS" in told


def test_streams_that_are_pushed_get_notices_at_the_start():
    fleet = Fleet("DISORDER 2 SECONDS")
    with fleet.engine:
        run = fleet.engine.sql(WINDOWS).start()
        assert [notice.code for notice in run.notices] == ["TIMEOUT_NEEDED"]
        assert 'ALONG WALL CLOCK [WITHIN …] on "ping"' in run.notices[0].hint
