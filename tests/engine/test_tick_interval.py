"""A least time between the starts of two ticks: what comes meanwhile is one tick, and nobody who waits is put off."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import pytest

import headwater as hw
from headwater.clock.wall import VirtualClock
from headwater.errors import InputError

SECOND = 1_000_000
MANY = 50


class Paced:
    """An engine with a tick per ten seconds of a clock that is moved by hand."""

    def __init__(self, every: Any = "10 seconds", **options: Any) -> None:
        self.clock = VirtualClock(1_000 * SECOND)
        self.engine = hw.connect(runner="inprocess", clock=self.clock, every=every, **options)
        self.engine.sql("CREATE STREAM s (x INT, t INT) ORDERED BY t")
        self.sink = hw.sinks.noop()
        self.engine.sql("SELECT x FROM s").start(self.sink)

    def push(self, x: int, *, wait: bool = False) -> None:
        self.engine.push("s", [{"x": x, "t": x}], wait=wait)

    @property
    def ticks(self) -> int:
        return self.engine._core.manifest.tick

    def await_tick(self, number: int) -> None:
        while self.ticks < number:
            self.engine._loop.raise_failure()
            self.engine._loop.pause()


def test_what_comes_within_the_interval_is_one_tick():
    paced = Paced()
    with paced.engine:
        paced.push(0)
        paced.await_tick(1)
        for x in range(1, MANY):
            paced.push(x)
        assert paced.ticks == 1
        paced.clock.advance(10 * SECOND - 1)
        assert paced.ticks == 1
        paced.clock.advance(1)
        paced.await_tick(2)
        assert (paced.ticks, paced.sink.rows) == (2, MANY)


def test_the_first_tick_after_a_pause_comes_at_once():
    paced = Paced()
    with paced.engine:
        paced.push(0)
        paced.await_tick(1)
        paced.clock.advance(60 * SECOND)
        paced.push(1)
        paced.await_tick(2)


def test_who_waits_for_a_push_is_not_put_off_and_takes_all_that_waits_along():
    paced = Paced()
    with paced.engine:
        paced.push(0, wait=True)
        for x in range(1, MANY):
            paced.push(x)
        paced.push(MANY, wait=True)
        assert (paced.ticks, paced.sink.rows) == (2, MANY + 1)


def test_a_drain_runs_at_once():
    paced = Paced(every=3600)
    with paced.engine:
        paced.push(0, wait=True)
        for x in range(1, MANY):
            paced.push(x)
        paced.engine.run_to_end(end_streams=False)
        assert (paced.ticks, paced.sink.rows) == (2, MANY)
        paced.push(MANY)
        paced.engine.run_to_end()
        assert paced.sink.rows == MANY + 1


def test_what_was_pushed_is_taken_before_the_engine_closes():
    paced = Paced(every=dt.timedelta(hours=1))
    with paced.engine:
        paced.push(0, wait=True)
        for x in range(1, MANY):
            paced.push(x)
    assert (paced.ticks, paced.sink.rows) == (2, MANY)


def test_closing_does_not_wait_for_a_tick_that_is_held_elsewhere():
    paced = Paced()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with paced.engine.held():
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    paced.push(0, wait=True)
    holder.start()
    held.wait()
    paced.push(1)
    paced.engine.close()
    done.set()
    holder.join()
    assert paced.ticks == 1


def test_a_clock_that_is_set_back_does_not_stop_the_ticks():
    paced = Paced()
    with paced.engine:
        paced.push(0, wait=True)
        paced.clock.set(0)
        paced.push(1)
        paced.await_tick(2)


def test_time_alone_brings_answers_in_silence_at_the_pace_of_the_ticks():
    clock = VirtualClock(1_000 * SECOND)
    engine = hw.connect(runner="inprocess", clock=clock, every="5 seconds")
    engine.sql("CREATE STREAM ping (machine INT, ts TIMESTAMP) ORDERED BY ts ALONG WALL CLOCK WITHIN 2 SECONDS")
    with engine:
        run = engine.sql(
            "SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE ping, DESCRIPTOR(ts), INTERVAL 10 SECONDS) "
            "GROUP BY window_start"
        ).start()
        engine.push("ping", [{"machine": 1, "ts": dt.datetime(1970, 1, 1, 0, 16, 41)}])
        for _ in range(5):
            clock.advance(5 * SECOND)
            engine._loop.settle()
        assert [row["n"] for row in run.history().rows()] == [1]


@pytest.mark.parametrize("every", ["1s", "1000ms", "1 second", "0.5s 500ms", 1, 1.0, dt.timedelta(seconds=1)])
def test_ways_to_write_an_interval(every: Any):
    with hw.connect(runner="inprocess", every=every) as engine:
        assert engine._loop._every == SECOND


@pytest.mark.parametrize(
    "every", ["soon", "5", "-1s", -1, "1 month", "1s x", float("nan"), float("inf"), True, None, ""]
)
def test_no_intervals(every: Any):
    with pytest.raises(InputError, match="no length of time for the tick interval") as refused:
        hw.connect(runner="inprocess", every=every)
    assert refused.value.code == "BAD_DURATION"
    assert "500ms" in (refused.value.hint or "")
