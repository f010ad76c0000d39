"""Times as people read them, wherever they are shown; also those beyond the years that Python knows."""

from __future__ import annotations

import io
import re
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.result import Result

YEAR_10000, YEAR_0, LAST = 253_402_300_800_000_000, -62_135_596_801_000_000, 253_402_300_799_000_000
FAR = [YEAR_10000, YEAR_0, 2**62, -(2**62), None, 0]


def table_of(times: list[Any]) -> pa.Table:
    at = pa.array(times, pa.int64()).cast(pa.timestamp("us"))
    return pa.table({"x": pa.array(range(len(times)), pa.int32()), "at": at})


@pytest.mark.parametrize("level", ["STRONG", "MIDDLE"])
@pytest.mark.parametrize("instant", [YEAR_10000, YEAR_0, LAST])
def test_everything_that_shows_instants_shows_these(instant: int, level: str):
    shown = io.StringIO()
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (x INT, at TIMESTAMP) ORDERED BY at DISORDER 1 SECOND")
        runs = [engine.sql(f"SELECT x, at FROM s [RANGE 1 DAY] CONSISTENCY {level}").start()]
        runs += [engine.sql(f"SELECT x, COUNT(*) AS n FROM s [RANGE 1 DAY] GROUP BY x CONSISTENCY {level}").start()]
        engine.sql("SELECT x, at FROM s [RANGE 1 DAY]", name="printed").start(hw.sinks.console(file=shown))
        for i in range(2):
            engine.push("s", table_of([instant + 2_000_000 * i]))
        for run in runs:
            assert run.frontier is not None
            assert run.lag
            assert str(run.progress)
            assert len(run.snapshot().rows()) > 0
            for found in (run.snapshot(), run.history()):
                assert repr(found)
                assert found._repr_html_()
                assert len(found.rows()) == len(found.to_pandas()) == len(found)
        assert "final before" in str(engine.progress())
        assert engine.progress()._repr_html_()
        for what in ("SHOW STREAMS", "SHOW QUERIES", "SHOW HEARTBEATS", "EXPLAIN HEARTBEAT query"):
            assert engine.sql(what)
        engine.run_to_end()
    assert "tick 1" in shown.getvalue()


def test_results_and_the_console_show_any_time_and_date():
    times = pa.array(FAR, pa.int64()).cast(pa.timestamp("us"))
    days = pa.array([2_932_897, -719_163, 2**31 - 2, -(2**31) + 2, None, 0], pa.int32()).cast(pa.date32())
    nested = pa.array([{"at": [t]} for t in FAR], pa.struct([("at", pa.list_(pa.int64()))]))
    nested = nested.cast(pa.struct([("at", pa.list_(pa.timestamp("us")))]))
    found = Result(pa.table({"at": times, "day": days, "nested": nested}))
    first, *_, last = found.rows()
    assert (first["at"], first["day"]) == ("10000-01-01 00:00:00.000000", "10000-01-01")
    assert first["nested"] == {"at": ["10000-01-01 00:00:00.000000"]}
    assert (last["at"].year, last["day"].year, last["nested"]["at"][0].year) == (1970, 1970, 1970)
    assert "10000-01-01" in repr(found)
    assert len(Result(pa.table({"at": times, "day": days})).to_pandas()) == len(FAR)


def test_the_instant_beyond_the_years_of_python_is_a_number():
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (x INT, at TIMESTAMP) ORDERED BY at IN ORDER")
        run = engine.sql("SELECT x FROM s").start()
        engine.push("s", table_of([YEAR_10000]))
        assert run.frontier == YEAR_10000
        assert "10000-01-01 00:00:00" in engine.sql("SHOW QUERIES")


def test_a_constant_beyond_the_years_of_python_is_computed():
    """Its value came as a text, which was taken for a text."""
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (x INT, t BIGINT) ORDERED BY t IN ORDER")
        run = engine.sql("SELECT TIMESTAMP '9999-12-31 23:59:59' + INTERVAL 10 DAYS AS at FROM s").start()
        engine.push("s", [{"x": 1, "t": 1}])
        engine.run_to_end()
        assert [row["at"] for row in run.history().rows()] == ["10000-01-10 23:59:59.000000"]


def test_the_last_instant_of_a_second_is_told_by_the_next_second(capsys: pytest.CaptureFixture[str]):
    """SLIDE shows a window at the last microsecond of a slide; data stay exact."""
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM bid (item INT, ts TIMESTAMP) ORDERED BY ts DISORDER 2 SECONDS LATE ROWS ERROR")
        query = engine.sql("SELECT MAX(item) AS n FROM bid [RANGE 5 SECONDS SLIDE 5 SECONDS]")
        run = query.start()
        query.start(hw.sinks.console())
        query.start(hw.sinks.console(form="lines"))
        noon = datetime(2026, 1, 1, 12)
        engine.push("bid", [{"item": i, "ts": noon + timedelta(seconds=i)} for i in range(20)])
        assert "12:00:05 -1µs" in repr(run.history())
        assert "12:00:05 -1µs" in run.history()._repr_html_()
        assert min(r["_start"] for r in run.history().rows()) == noon + timedelta(seconds=5) - timedelta(microseconds=1)
        assert "final before 2026-01-01 12:00:20 -1µs" in repr(run)
        printed = capsys.readouterr().out
        assert "[2026-01-01 12:00:05 -1µs, 2026-01-01 12:00:10 -1µs)" in printed
        assert printed.count("final before 2026-01-01 12:00:20 -1µs") == 2
        shown = [engine.sql(f"SHOW {what}") for what in ("QUERIES", "STREAMS", "HEARTBEATS")]
        shown += [str(engine.progress()), str(run.progress), engine.sql("EXPLAIN HEARTBEAT query")]
        with pytest.raises(hw.StreamError, match="it comes too late, at 2026-01-01 12:00:00") as late:
            engine.push("bid", [{"item": 1, "ts": noon}])
        assert "Everything before 2026-01-01 12:00:17 is final" in str(late.value)
        for text in (*shown, str(late.value)):
            assert not re.search(r"\d{12}", text), text
            assert not re.search(r"\.999(999)?\b", text), text
