"""Rows that a stream did not take are there for whoever asks: nothing need be declared for that, and they are told of."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.errors import InputError, SqlError

READING = "CREATE STREAM reading (at INT, value INT) SOURCE push(malformed => 'divert') ORDERED BY at DISORDER 2"
IN_TIME, WRONG = (
    [{"at": 10, "value": 1}, {"at": 12, "value": 2}],
    [{"at": 3, "value": 3}, {"at": 11, "value": 4}, {"at": None, "value": 5}],
)


def history(run: hw.Run) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in run.history().rows())


@pytest.mark.parametrize("first", ["pushed", "read"])
def test_late_and_malformed_rows_are_read_without_declaring_anything(first: str):
    with hw.connect(runner="inprocess") as engine:
        engine.sql(READING)
        if first == "pushed":
            engine.push("reading", IN_TIME)
        late = engine.sql("SELECT * FROM reading_late").start()
        bad = engine.sql("SELECT reason, row FROM READING_BAD").start()
        if first == "read":
            engine.push("reading", IN_TIME)
        engine.push("reading", WRONG)
        engine.run_to_end()
        assert history(late) == [(3, 3, 10, 11)]
        assert history(bad) == [('the time column "at" is NULL', '{"at":null,"value":5}', 10, 11)]
        assert engine.diverted("reading_late").rows() == []


def test_they_can_be_described_and_have_the_time_of_their_stream():
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (ts TIMESTAMP, x INT) ORDERED BY ts DISORDER 1 SECOND")
        assert [line.split()[0] for line in engine.sql("DESCRIBE s_late").splitlines()[2:]] == ["ts", "x"]
        assert [line.split()[0] for line in engine.sql("DESCRIBE s_bad").splitlines()[2:]] == [
            *("source", "line", "reason", "row")
        ]
        run = engine.sql("SELECT x FROM s_late").start()
        engine.push("s", [{"ts": datetime(1970, 1, 1, 0, 0, 5), "x": 1}])
        engine.push("s", [{"ts": datetime(1970, 1, 1, 0, 0, 1), "x": 2}])
        engine.run_to_end()
        ((x, start, _),) = history(run)
        assert (x, start.second) == (2, 4)


@pytest.mark.parametrize("policy", ["DROP", "DIVERT INTO missed", "ERROR", "ADJUST"])
def test_there_are_none_where_something_else_becomes_of_them(policy: str):
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"CREATE STREAM s (at INT) ORDERED BY at IN ORDER LATE ROWS {policy}")
        with pytest.raises(SqlError, match="UNKNOWN_STREAM"):
            engine.sql("SELECT * FROM s_late")


def test_their_stream_cannot_be_dropped_while_they_are_read():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(READING)
        engine.sql("SELECT * FROM reading_late").start()
        with pytest.raises(InputError, match='STREAM_IN_USE: stream "reading" cannot be dropped'):
            engine.sql("DROP STREAM reading")


@pytest.mark.parametrize("kept", [True, False])
def test_what_nobody_reads_is_kept_as_long_as_the_engine_lives(kept: bool, tmp_path: Path):
    with hw.connect(runner="inprocess", checkpoint=tmp_path if kept else None) as engine:
        engine.sql(READING)
        engine.sql("SELECT value FROM reading").start()
        engine.push("reading", IN_TIME)
        engine.push("reading", WRONG)
        assert engine.diverted("reading_late").rows() == [{"at": 3, "value": 3, "_tick": 2}]
        (bad,) = engine.diverted("reading_bad").rows()
        assert (bad["reason"], bad["_tick"]) == ('the time column "at" is NULL', 2)


def test_late_rows_are_shown_by_the_bound_that_they_violate():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(READING)
        engine.sql("SELECT value FROM reading").start()
        engine.push("reading", IN_TIME)
        engine.push("reading", WRONG)
        assert engine.sql("SHOW STREAMS").splitlines()[-1].endswith("1 by DISORDER 2")
        assert engine.progress().lost() == ["late in reading: 1 by DISORDER 2"]


@pytest.mark.parametrize(("level", "forgotten"), [("WEAK", 1), ("WEAK REMEMBER 5", 1), ("MIDDLE", 0)])
def test_what_a_query_forgets_is_counted_and_shown(level: str, forgotten: int):
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (at INT) ORDERED BY at DISORDER 100")
        run = engine.sql(f"SELECT COUNT(*) AS n FROM s WINDOW(RANGE 10) CONSISTENCY {level}", name="weak").start()
        engine.push("s", [{"at": 50}])
        engine.push("s", [{"at": 30}])
        engine.push("s", [{"at": 51}])
        assert run.progress.forgotten_rows == forgotten
        head, _, row = engine.sql("SHOW QUERIES").splitlines()
        at = head.index("forgotten")
        assert row[at:].split()[0] == str(forgotten)
        told = ["forgotten by weak: 1 that came too far behind"] if forgotten else []
        assert engine.progress().lost() == told
        assert ("1 forgotten" in str(run.progress)) == bool(forgotten)


def test_heartbeats_and_plain_numbers_have_no_instant_in_common():
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM r (at INT) ORDERED BY at IN ORDER")
        for query in ("SELECT at, heartbeat(r) AS h FROM r", "SELECT at, heartbeat FROM r, heartbeats"):
            with pytest.raises(SqlError) as caught:
                engine.sql(query)
            assert caught.value.code == "TIME_UNIT"
            assert "SELECT heartbeat FROM heartbeats WHERE stream = 'r'" in caught.value.hint
        run = engine.sql("SELECT heartbeat FROM heartbeats WHERE stream = 'r' CONSISTENCY MIDDLE").start()
        engine.push("r", [{"at": 7}])
        engine.push("r", [{"at": 8}])
        assert 6 in {row["heartbeat"] for row in run.history().rows()}
