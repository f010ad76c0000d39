"""Sinks with an interval: the answers of several ticks go out together, once, whatever happens in between."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engine_market import STEPS
from engine_together import (
    SECOND,
    TOGETHER,
    check_together,
    deliveries,
    run_together,
    run_together_part_by_part,
)
from tests.crash import ANY_CALL, ANY_POINT, Crash, in_child, preload

import headwater as hw
from headwater.clock.wall import VirtualClock
from headwater.errors import InputError
from headwater.runtime import points
from headwater.testing.cases import fresh, scaled

preload("engine_together")

CALLS = 900_000
"""About so many calls of functions a whole run has."""


def dies(folder: Path, crash: Crash, run: Callable[..., None] = run_together) -> bool:
    ended = in_child(run, folder, crash=crash)
    if not ended.killed:
        ended.result()
    return ended.killed


# -- undisturbed ------------------------------------------------------------------------------------------------------


def test_answers_of_several_ticks_are_one_delivery(tmp_path: Path, undisturbed: dict[str, Any]):
    run_together(tmp_path)
    check_together(tmp_path, undisturbed)
    for name in ("busy", "large", "early"):
        assert len(deliveries(tmp_path, name)) <= STEPS // 2 + 1
        assert len(list((tmp_path / "answers" / name).glob("tick-*"))) == len(deliveries(tmp_path, name))


def test_nothing_goes_out_before_its_interval_is_over_but_when_somebody_waits_for_it(tmp_path: Path):
    clock, got = VirtualClock(1_000 * SECOND), []
    with hw.connect(runner="inprocess", clock=clock, checkpoint=tmp_path) as engine:
        engine.sql("CREATE STREAM s (x INT, t INT) ORDERED BY t IN ORDER")
        sink = hw.sinks.foreach(lambda table, tick: got.append((tick, table["x"].to_pylist())), every="10 seconds")
        engine.sql("SELECT x FROM s", name="q").start(sink)
        for x in range(3):
            engine.push("s", [{"x": x, "t": x}])
        assert got == []
        clock.advance(10 * SECOND)
        engine._loop.settle()
        assert got == [(3, [0, 1, 2])]
        engine.push("s", [{"x": 3, "t": 3}])
        assert len(got) == 1
        engine.run_to_end(end_streams=False)
        assert got[1:] == [(4, [3])]
        engine.push("s", [{"x": 4, "t": 4}])
        engine.runs["q"].stop()
        assert got[2:] == [(5, [4])]


def test_what_waits_goes_out_when_the_engine_closes():
    got: list[pa.Table] = []
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (x INT, t INT) ORDERED BY t IN ORDER")
        engine.sql("SELECT x FROM s").start(hw.sinks.foreach(lambda table, tick: got.append(table), every="1 hour"))
        for x in range(3):
            engine.push("s", [{"x": x, "t": x}])
    assert [table["x"].to_pylist() for table in got] == [[0, 1, 2]]


def test_a_change_of_level_goes_out_in_two_forms(tmp_path: Path):
    got: list[pa.Table] = []
    with hw.connect(runner="inprocess", checkpoint=tmp_path) as engine:
        engine.sql("CREATE STREAM s (x INT, t INT) ORDERED BY t IN ORDER")
        query = engine.sql("SELECT COUNT(*) AS n FROM s WINDOW(RANGE 2)")
        run = query.start(hw.sinks.foreach(lambda table, tick: got.append(table), every="1 hour"))
        for x in range(3):
            engine.push("s", [{"x": x, "t": x * 5}])
        run.set_consistency("MIDDLE")
        engine.push("s", [{"x": 3, "t": 50}])
        assert ["_op" in table.column_names for table in got] == [False]
    assert ["_op" in table.column_names for table in got] == [False, True]


def test_a_sink_that_fails_gets_all_of_it_again(tmp_path: Path):
    got: list[list[int]] = []

    def fail(table: pa.Table, tick: int) -> None:
        raise RuntimeError("on purpose")

    def start(function: Callable[[pa.Table, int], object]) -> hw.Engine:
        engine = hw.connect(runner="inprocess", checkpoint=tmp_path)
        engine.sql("CREATE STREAM s (x INT, t INT) ORDERED BY t IN ORDER")
        engine.sql("SELECT x FROM s", name="q").start(hw.sinks.foreach(function, every="1 hour"))
        return engine

    engine = start(fail)
    for x in range(3):
        engine.push("s", [{"x": x, "t": x}])
    with pytest.raises(RuntimeError, match="on purpose"):
        engine.close()
    with start(lambda table, tick: got.append(table["x"].to_pylist())):
        assert got == [[0, 1, 2]]
    assert got == [[0, 1, 2]]


def test_another_interval_after_a_restart(tmp_path: Path, undisturbed: dict[str, Any]):
    assert dies(tmp_path, Crash(points.AFTER_THE_SINKS, 4))
    run_together(tmp_path, every=0)
    check_together(tmp_path, undisturbed)


def test_a_query_that_is_given_up_leaves_nothing_waiting(tmp_path: Path):
    assert dies(tmp_path, Crash(points.AFTER_THE_SINKS, 4))
    assert list((tmp_path / "checkpoint" / "waiting" / "busy").iterdir())
    with hw.connect(runner="inprocess", shards=2, checkpoint=tmp_path / "checkpoint") as engine:
        for name in TOGETHER:
            engine.drop(name)
    assert not list((tmp_path / "checkpoint" / "waiting").rglob("*.json"))
    assert len(list((tmp_path / "checkpoint" / "staged").iterdir())) <= 1


def test_answers_that_wait_are_checked_when_they_are_read(tmp_path: Path):
    assert dies(tmp_path, Crash(points.AFTER_THE_SINKS, 4))
    kept = min((tmp_path / "checkpoint" / "waiting" / "busy").glob("0*.json"))
    kept.write_text(kept.read_text().replace("tick-", "tock-"))
    with pytest.raises(hw.HeadwaterError, match="answers that wait") as refused:
        run_together(tmp_path)
    assert refused.value.code == "STATE_DAMAGED"


@pytest.mark.parametrize("make", [hw.sinks.parquet, hw.sinks.csv, hw.sinks.json, hw.sinks.delta])
def test_an_interval_that_is_none(make: Callable[..., object]):
    with pytest.raises(InputError, match='"now and then" is no length of time for the interval of a sink'):
        make("answers", every="now and then")


# -- killed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "first", "next_", "least"),
    [
        (points.BEFORE_THE_MANIFEST, 2, 2, 4),
        (points.AFTER_THE_MANIFEST, 1, 1, STEPS),
        (points.IN_A_SINK + "large", 1, 1, STEPS),
        (points.AFTER_THE_SINKS, 2, 2, 2),
        (points.TOGETHER_IN_A_SINK + "busy", 1, 1, 1),
        (points.AFTER_TOGETHER + "bidders", 1, 1, 1),
        (points.AFTER_TOGETHER + "early", 1, 1, 1),
    ],
)
def test_killed_in_every_tick(
    point: str, first: int, next_: int, least: int, tmp_path: Path, undisturbed: dict[str, Any]
):
    crashes, count = 0, first
    while dies(tmp_path, Crash(point, count)):
        crashes, count = crashes + 1, next_
        assert crashes <= 3 * STEPS
    assert crashes >= least
    check_together(tmp_path, undisturbed)


def test_killed_again_while_what_waited_is_delivered_again(tmp_path: Path, undisturbed: dict[str, Any]):
    assert dies(tmp_path, Crash(points.TOGETHER_IN_A_SINK + "busy"))
    for query in ("busy", "bidders", "large", "early"):
        assert dies(tmp_path, Crash(points.AGAIN_IN_A_SINK + query))
    run_together(tmp_path)
    check_together(tmp_path, undisturbed)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 21])
def test_killed_between_two_files(count: int, tmp_path: Path, undisturbed: dict[str, Any]):
    for number in (count, count, 3):
        dies(tmp_path, Crash("between two files", number), run_together_part_by_part)
    run_together(tmp_path)
    check_together(tmp_path, undisturbed)


def run_compacting(folder: Path) -> None:
    """Every tick is delivered by itself, and small files become one all the time."""
    run_together_part_by_part(folder, every=0, compact=2)


@pytest.mark.parametrize("count", [1, 4, 9, 14, 19, 23, 27, 31, 38, 45])
def test_killed_while_files_become_fewer(count: int, tmp_path: Path, undisturbed: dict[str, Any]):
    for number in (count, count // 2 + 1, 6):
        dies(tmp_path, Crash("between two files", number), run_compacting)
    run_together(tmp_path, every=0, compact=2)
    check_together(tmp_path, undisturbed)
    assert all(len(list((tmp_path / "answers" / name).glob("tick-*"))) < STEPS for name in ("busy", "early"))


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_points_by_chance(seed: int, tmp_path: Path, undisturbed: dict[str, Any]):
    dice = random.Random(seed)
    while dies(tmp_path, Crash(ANY_POINT, dice.randrange(1, 60))):
        pass
    check_together(tmp_path, undisturbed)


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment(seed: int, tmp_path: Path, undisturbed: dict[str, Any]):
    dice = random.Random(seed)
    for _ in range(3):
        dies(tmp_path, Crash(ANY_CALL, dice.randrange(CALLS // 2)))
    run_together(tmp_path)
    check_together(tmp_path, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + scaled(8)))
def test_killed_at_many_moments(seed: int, tmp_path: Path, undisturbed: dict[str, Any]):
    dice = random.Random(fresh(seed))
    for _ in range(6):
        dies(tmp_path, Crash(ANY_CALL, dice.randrange(CALLS // 2)))
    run_together(tmp_path)
    check_together(tmp_path, undisturbed)
