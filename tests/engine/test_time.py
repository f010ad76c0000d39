"""Time passes without rows: on a clock that is moved by hand, answers become final when they are due and not before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.clock.view import Heartbeat
from headwater.clock.wall import VirtualClock
from headwater.language.system_views import HEARTBEATS, SYSTEM_VIEWS, SystemView
from headwater.model.schema import Schema

SECOND = 1_000_000


class World:
    """An engine and its clock."""

    def __init__(self, script: str, query: str, *, clock: VirtualClock | None = None, **options: Any) -> None:
        self.clock = clock or VirtualClock(1_000 * SECOND)
        self.engine = hw.connect(runner="inprocess", clock=self.clock, **options)
        self.engine.sql(script)
        self.run = self.engine.sql(query, name="q").start()

    def push(self, stream: str, *seconds: float) -> None:
        self.engine.push(stream, [{"ts": int(s * SECOND)} for s in seconds])

    def wait(self, seconds: float) -> None:
        self.clock.advance(int(seconds * SECOND))
        self.engine.run_to_end(end_streams=False)

    def final(self) -> float | None:
        """Up to where the answer is final, in seconds."""
        frontier = self.run.frontier
        return None if frontier is None else int(frontier) / SECOND

    def late(self, stream: str) -> dict[str, int]:
        return self.engine._core.times.clock.late(stream)


COUNT = "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 10)"
ALL = "SELECT ts FROM s"


def world(clauses: str, query: str = ALL, **options: Any) -> World:
    return World(f"CREATE STREAM s (ts BIGINT) ORDERED BY ts {clauses}", query, **options)


def test_the_last_window_closes_when_the_source_falls_silent():
    its = world("DISORDER 2000000 DISORDER 0 AFTER 5 SECONDS", "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 1)")
    with its.engine:
        its.push("s", 10, 11)
        assert its.final() == 9
        its.wait(4.9)
        assert its.final() == 9
        its.wait(0.2)
        assert its.final() == 11
        assert [row["n"] for row in its.run.history().rows()] == [1]  # 11 itself may still get company
        its.push("s", 11, 12)
        its.wait(10)
        assert [row["n"] for row in its.run.history().rows()] == [1, 2]


def test_without_such_a_promise_silence_changes_nothing():
    its = world("DISORDER 2000000")
    with its.engine:
        its.push("s", 10)
        ticks = its.engine._core.manifest.tick
        its.wait(1_000)
        assert its.final() == 8
        assert its.engine._core.manifest.tick == ticks


def test_a_time_out_releases_all():
    its = world("DISORDER 2000000 TIMEOUT 30 SECONDS")
    with its.engine:
        its.push("s", 10)
        its.wait(29)
        assert its.final() == 8
        its.wait(1)
        assert its.final() == 10.000001


TWO = """
CREATE STREAM fast (ts BIGINT) ORDERED BY ts IN ORDER;
CREATE STREAM slow (ts BIGINT) ORDERED BY ts IN ORDER {clauses};
"""
BOTH = "SELECT ts FROM fast UNION ALL SELECT ts FROM slow"


def test_another_stream_tells_how_far_a_silent_one_is():
    its = World(TWO.format(clauses="LAGS fast BY AT MOST 3000000 AFTER 1 SECOND"), BOTH)
    with its.engine:
        its.push("slow", 1)
        its.push("fast", 100)
        assert its.final() == 1
        its.wait(0.9)
        assert its.final() == 1
        its.wait(0.11)
        assert its.final() == 97


def test_an_idle_stream_holds_nobody():
    its = World(TWO.format(clauses="IDLE AFTER 5 SECONDS"), BOTH)
    with its.engine:
        its.push("slow", 1)
        its.push("fast", 100)
        its.wait(4)
        its.push("fast", 104)
        assert its.final() == 1
        its.wait(1)
        assert its.final() == 104
        its.push("slow", 50)
        assert its.late("slow") == {"IDLE AFTER 5 SECONDS": 1}


def test_a_query_waits_only_for_its_own_streams():
    its = World(TWO.format(clauses=""), BOTH)
    with its.engine:
        alone = its.engine.sql("SELECT ts FROM fast", name="alone").start()
        its.push("fast", 100)
        assert its.final() is None
        assert int(alone.frontier) == 100 * SECOND


def test_what_is_not_declared_is_learned():
    its = world("")
    with its.engine:
        for i in range(1_100):
            its.clock.advance(10_000)
            its.engine.push("s", [{"ts": 1_000 * SECOND + 10_000 * i}], wait=False)
        its.wait(0)
        behind = its.clock.now() - int(its.run.frontier)
        assert 0 <= behind <= 3 * SECOND
        its.wait(20)
        assert int(its.run.frontier) > 1_000 * SECOND + 10_000 * 1_099


def test_late_rows_are_told_by_the_bound_that_they_break():
    its = world("DISORDER 1000000 TIMEOUT 5 SECONDS LATE ROWS DROP")
    with its.engine:
        its.push("s", 10)
        its.push("s", 8)
        its.wait(5.01)
        its.push("s", 9.5, 10.5)
        assert its.late("s") == {"DISORDER 1000000": 1, "TIMEOUT 5 SECONDS": 1}


@pytest.mark.parametrize("waits", [4, 6])
def test_what_is_due_is_due_after_a_restart(tmp_path: Path, waits: int):
    clauses = "DISORDER 2000000 DISORDER 0 AFTER 5 SECONDS"
    its = world(clauses, checkpoint=tmp_path)
    with its.engine:
        its.push("s", 10)
    again = world(clauses, checkpoint=tmp_path, clock=VirtualClock(its.clock.now() + waits * SECOND))
    with again.engine:
        assert again.final() == 8
        again.push("s")
        again.wait(0)
        assert again.final() == (10 if waits > 5 else 8)
        again.wait(2)
        assert again.final() == 10


def test_under_other_bounds_nothing_is_promised_that_they_do_not_say(tmp_path: Path):
    its = world("DISORDER 2000000 DISORDER 0 AFTER 5 SECONDS", checkpoint=tmp_path)
    with its.engine:
        its.push("s", 10)
    again = world("DISORDER 4000000", checkpoint=tmp_path, clock=its.clock)
    with again.engine:
        again.wait(100)
        assert again.final() == 8  # what was promised stays promised
        again.push("s", 11)
        again.wait(100)
        assert again.final() == 8
        again.push("s", 13)
        assert again.final() == 9


def test_the_view_of_heartbeats():
    its = world("DISORDER 2000000", "SELECT stream, heartbeat, max_ts FROM heartbeats CONSISTENCY MIDDLE")
    with its.engine:
        its.engine.sql("SELECT ts FROM s", name="other").start()
        its.push("s", 10)
        its.push("s", 12)
        its.clock.advance(SECOND)
        its.push("s", 13)
        shown = sorted(its.run.history().rows(), key=lambda row: row["_start"])
        assert [(row["heartbeat"], row["max_ts"]) for row in shown] == [
            (None, None),
            (8 * SECOND - 1, 10 * SECOND),
            (10 * SECOND - 1, 12 * SECOND),
        ]
        assert {row["stream"] for row in shown} == {"s"}


def test_the_heartbeat_of_a_stream_in_a_query():
    its = world("DISORDER 2000000", "SELECT heartbeat(s) AS far FROM (VALUES (1)) one(x) CONSISTENCY MIDDLE")
    with its.engine:
        its.engine.sql("SELECT ts FROM s", name="other").start()
        its.push("s", 10)
        its.push("s", 12)
        its.clock.advance(SECOND)
        its.push("s", 13)
        shown = sorted(its.run.history().rows(), key=lambda row: row["_start"])
        assert [row["far"] for row in shown] == [None, 8 * SECOND - 1, 10 * SECOND - 1]


def test_show_heartbeats():
    its = world("DISORDER 2000000 DISORDER 0 AFTER 5 SECONDS")
    with its.engine:
        its.push("s", 10)
        columns, _, row = its.engine.sql("SHOW HEARTBEATS").splitlines()
        shown = dict(zip(columns.split(), row.split(), strict=False))
        assert shown["stream"] == "s"
        assert "7999999" in row
        assert "9999999" in row


def test_a_system_view_is_one_declaration(monkeypatch):
    """Its columns and a function of what the engine knows: queries, SHOW and DESCRIBE find it by that."""
    counts = SystemView.of(
        "counts",
        Schema.of(stream="STRING", rows="BIGINT"),
        lambda engine: [(stream, counted["rows"]) for stream, counted in engine.counts.items()],
    )
    monkeypatch.setitem(SYSTEM_VIEWS, counts.name, counts)
    its = world("DISORDER 2000000", "SELECT rows FROM counts CONSISTENCY MIDDLE")
    with its.engine:
        its.engine.sql("SELECT ts FROM s", name="other").start()
        for second in (10, 12, 13):
            its.push("s", second)
            its.clock.advance(SECOND)
        shown = sorted(its.run.history().rows(), key=lambda row: row["_start"])
        assert [row["rows"] for row in shown] == [1, 2]
        assert its.engine.sql("SHOW COUNTS").splitlines()[-1].split() == ["s", "3"]
        assert "BIGINT" in its.engine.sql("DESCRIBE counts")


def test_a_view_shows_what_it_was_made_for():
    assert HEARTBEATS.schema.names == Heartbeat._fields


def test_explain_heartbeat():
    its = world("DISORDER 2000000")
    with its.engine:
        its.push("s", 10)
        text = its.engine.sql("EXPLAIN HEARTBEAT SELECT ts FROM s")
        assert "s: DISORDER 2000000; as it arrives" in text
        assert "s: frontier 8000000, set by DISORDER 2000000, newest row 10000000" in text


def test_what_is_said_of_a_stream_that_nobody_reads_yet():
    """The clock of an engine knows the streams that are read: of others it was said that everything becomes final."""
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM read (ts TIMESTAMP) ORDERED BY ts DISORDER 1 SECOND")
        engine.sql("SELECT ts FROM read").start()
        engine.sql("CREATE STREAM told (ts TIMESTAMP, hb TIMESTAMP) ORDERED BY ts HEARTBEAT FROM SOURCE (hb)")
        text = engine.sql("EXPLAIN HEARTBEAT SELECT ts FROM told")
        assert "told is final as far as its source says, and no further: HEARTBEAT FROM SOURCE (hb)" in text
        assert "everything becomes final" not in text
        text = engine.sql("EXPLAIN HEARTBEAT SELECT r.ts FROM read r, told t")
        assert 'CAN_BLOCK: stream "told" can block the query for ever' in text
