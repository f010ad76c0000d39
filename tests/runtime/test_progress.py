"""What an engine tells about itself: rates, lags, state, the time of ticks, its log and its progress bar."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from rich.console import Console

import headwater as hw
from headwater.engine import Engine
from headwater.runtime.views.metrics import Metrics, TickReport
from headwater.runtime.views.progress import TickLog
from headwater.runtime.views.progress_bar import ProgressBar

COUNTS = "SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 10) GROUP BY auction"
PRICES = "SELECT price FROM bid"


@pytest.fixture
def engine() -> Iterator[Engine]:
    with hw.connect(runner="inprocess", shards=2) as engine:
        engine.sql("CREATE STREAM bid (auction INT, price INT, at INT) ORDERED BY at DISORDER 2")
        engine.sql("CREATE STREAM other (x INT, ts TIMESTAMP) ORDERED BY ts IN ORDER")
        yield engine


def bids(*times: int) -> list[dict[str, int]]:
    return [{"auction": t % 3, "price": 10 * t, "at": t} for t in times]


def test_a_query_tells_how_far_it_is(engine: Engine):
    run = engine.sql(COUNTS, name="counts").start()
    engine.push("bid", bids(1, 2, 3, 20))
    engine.push("bid", bids(5, 21))
    now = run.progress
    assert (now.query, now.ticks, now.streams) == ("counts", 2, ("bid",))
    assert now.late_rows == 1
    assert (now.frontier, now.lag) == (19, 2)
    assert timedelta(0) < now.wall_lag < timedelta(minutes=5)
    assert now.rows_out == 3
    assert now.state_rows > 0
    assert now.state_bytes > 0
    assert now.rows_per_second > 0
    assert now.rows_out_per_second > 0
    assert str(now).startswith("counts: 3 rows out (")


def test_an_answer_that_is_final_to_the_end_is_not_behind(engine: Engine):
    run = engine.sql(COUNTS).start()
    engine.push("bid", bids(1, 2, 3))
    engine.run_to_end()
    assert (run.progress.lag, run.progress.wall_lag, run.progress.frontier) == (0, timedelta(0), None)


def test_the_engine_tells_of_all_streams_and_queries(engine: Engine):
    with engine.held():
        engine.sql(COUNTS, name="counts").start()
        engine.sql(f"SELECT * FROM ({COUNTS}) WHERE n > 1", name="many").start()
        engine.sql("SELECT x FROM other", name="others").start()
    engine.push("bid", bids(1, 2, 3, 4))
    engine.push("other", [{"x": 1, "ts": datetime(2026, 1, 1, 12)}])
    now = engine.progress()
    assert {s.name: s.rows for s in now.streams} == {"bid": 4, "other": 1}
    assert {s.name: s.newest for s in now.streams} == {"bid": 4, "other": datetime(2026, 1, 1, 12)}
    assert [q.query for q in now.queries] == ["counts", "many", "others"]
    assert (now.rows, now.tick) == (5, 2)
    # What two queries share is kept once.
    assert now.state_rows == now.queries[0].state_rows == now.queries[1].state_rows
    assert now.to_dict()["times"]["ticks"] == 2


def test_it_reads_well(engine: Engine):
    engine.sql(COUNTS, name="counts").start()
    assert str(engine.progress()).startswith("tick 0: 0 rows in (0/s), state 0 rows in 0 bytes; no tick yet\n\nstream")
    engine.push("bid", bids(1, 2))
    text = str(engine.progress())
    assert text.startswith("tick 1: 2 rows in (")
    assert [line.split()[0] for line in text.splitlines() if line.startswith(("bid", "counts"))] == ["bid", "counts"]
    page = engine.progress()._repr_html_()
    assert "<th>query</th>" in page
    assert "<td>counts</td>" in page


def test_phases_of_a_tick_are_parts_of_it(engine: Engine):
    run = engine.sql(COUNTS).start()
    for t in range(5):
        engine.push("bid", bids(t, t + 1))
    (*_, last) = engine._core.metrics.ticks
    assert set(last.phases) >= {"sources", "operators", "commit", "deliver"}
    assert sum(last.phases.values()) <= last.seconds
    times = run.progress.times
    assert times.ticks == 5
    assert 0 < times.median <= times.p95
    assert set(times.phases) == set(last.phases)


def test_the_time_of_the_commit_is_that_of_the_manifest(tmp_path):
    """Operators that take long do not make it longer."""
    with hw.connect(runner="inprocess", checkpoint=tmp_path) as engine:
        engine.sql("CREATE STREAM bid (auction INT, price INT, at INT) ORDERED BY at IN ORDER")
        engine.sql(COUNTS).start(hw.sinks.noop())
        engine.push("bid", bids(1))
        engine.push("bid", bids(2))
        (tick, *_) = reversed(engine._core.metrics.ticks)
        assert 0 < tick.phases["commit"] < tick.seconds - tick.phases["operators"]


# -- figures ----------------------------------------------------------------------------------------------------------


def ticked(metrics: Metrics, now: float, *seconds: float) -> None:
    for i, length in enumerate(seconds):
        metrics.ticks.append(TickReport(i, now - 10 + i, length, {"job": length / 2}, {"s": 10}, {"q": 3}, {"s": i}))


def test_medians_and_percentiles(monkeypatch: pytest.MonkeyPatch):
    metrics = Metrics()
    ticked(metrics, 1000.0, *([0.1] * 18), 0.5, 0.9)
    times = metrics.times()
    assert (times.ticks, times.median, times.p95, times.last) == (20, 0.1, 0.9, 0.9)
    assert times.phases == {"job": 0.05}


def test_rates_count_from_the_tick_before(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("headwater.runtime.views.metrics.time.time", lambda: 1000.0)
    metrics = Metrics()
    assert metrics.rate() == 0
    ticked(metrics, 1000.0, *([0.1] * 10))
    assert metrics.rate(seconds=5) == pytest.approx(10 * 5 / 6)
    assert metrics.rate(stream="s", seconds=5) == metrics.rate(seconds=5)
    assert metrics.rate(stream="t") == 0
    assert metrics.rate(query="q", seconds=5) == pytest.approx(3 * 5 / 6)


def test_when_a_row_came():
    metrics = Metrics()
    ticked(metrics, 1000.0, *([0.1] * 10))
    assert metrics.arrived(["s"], 4) == 994.0
    assert metrics.arrived(["s"], 99) is None
    assert metrics.arrived(["t"], 4) is None


# -- the log ----------------------------------------------------------------------------------------------------------


def test_a_tick_is_logged_at_debug(engine: Engine, caplog: pytest.LogCaptureFixture):
    engine.sql(COUNTS).start()
    with caplog.at_level(logging.DEBUG, logger="headwater"):
        engine.push("bid", bids(1, 2))
    assert any(r.message.startswith("tick 1: 2 rows in, 0 out, ") for r in caplog.records if r.levelname == "DEBUG")


def test_now_and_then_it_says_how_it_goes(engine: Engine, caplog: pytest.LogCaptureFixture):
    engine.sql(COUNTS, name="counts").start()
    engine._core._log = TickLog(every=0.0)
    with caplog.at_level(logging.INFO, logger="headwater"):
        engine.push("bid", bids(1, 20))
    (said,) = [r.message for r in caplog.records if r.levelname == "INFO"]
    assert said.startswith("tick 1: 1 ticks in ")
    assert said.endswith("furthest behind: counts by 2")


def test_it_does_not_say_it_too_often(engine: Engine, caplog: pytest.LogCaptureFixture):
    engine.sql(COUNTS).start()
    with caplog.at_level(logging.INFO, logger="headwater"):
        for t in range(3):
            engine.push("bid", bids(t))
    assert not [r for r in caplog.records if r.levelname == "INFO"]


# -- waiting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [100, None])
def test_the_bar_is_full_when_all_is_done(engine: Engine, total: int | None):
    engine.sql(COUNTS).start()
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100)
    with ProgressBar(engine._core.picture, total, console=console):
        engine.push("bid", bids(1, 2, 3))
    shown = file.getvalue().rpartition("rows")[2]
    assert "3 (" in shown
    assert ("100%" in shown) is (total is not None)


def test_a_finite_input_is_run_with_a_bar(engine: Engine, capsys: pytest.CaptureFixture):
    engine.sql("CREATE STREAM tick (at TIMESTAMP, n BIGINT) SOURCE rate(1000000, rows => 100) ORDERED BY at IN ORDER")
    engine.sql("SELECT n FROM tick").start()
    assert engine.finite
    engine.run_to_end(progress=True)
    assert "100 (" in capsys.readouterr().err


def test_waiting_raises_what_fails(engine: Engine):
    def fail(table: object, tick: int) -> None:
        raise ValueError("the disk is gone")

    engine.sql(PRICES).start(hw.sinks.foreach(fail))
    with pytest.raises(ValueError, match="the disk is gone"):
        engine.push("bid", bids(1, 2, 3, 9))
    with pytest.raises(ValueError, match="the disk is gone"):
        engine.wait(60)


def test_progress_can_be_asked_while_ticks_run(engine: Engine):
    engine.sql(COUNTS).start()
    ended, failed = threading.Event(), []

    def ask() -> None:
        while not ended.is_set():
            try:
                str(engine.progress())
            except Exception as problem:
                failed.append(problem)
                return

    asking = threading.Thread(target=ask)
    asking.start()
    for t in range(30):
        engine.push("bid", bids(t))
    ended.set()
    asking.join()
    assert failed == []
