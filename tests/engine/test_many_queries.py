"""Random queries in one engine: each answers as if it were alone, whenever it began and whatever stops meanwhile."""

from __future__ import annotations

import pytest
from engine_random import declare, expected, found, push, random_sources, random_ticks, seen_of, start

import headwater as hw
from headwater.testing.cases import fresh, scaled
from headwater.testing.choices import Dice
from headwater.testing.plans import plan_over

TICKS = 4


def check_together(seed: int, *, queries: int = 8) -> None:
    dice = Dice(seed, 7)
    made = random_sources(dice)
    plans = [plan_over(dice, made, depth=dice.integer(1, 3)) for _ in range(queries)]
    ticks = random_ticks(dice, made, TICKS)
    with hw.connect(runner="inprocess", shards=dice.integer(1, 3)) as engine:
        declare(engine, made)
        with engine.held():
            runs = [start(engine, f"q{i}", plan, speculative=i % 2 == 1) for i, plan in enumerate(plans)]
        for tick in ticks:
            push(engine, made, tick)
        engine.run_to_end()
        seen = seen_of(made, ticks)
        for plan, run in zip(plans, runs, strict=True):
            assert found(plan, run) == expected(plan, seen), f"seed {seed}, {run.name}\n{plan}"


def check_one_by_one(seed: int, *, queries: int = 8, revised: bool = False) -> None:
    """Each starts before some tick, and some end before another one; those that are there at the end are judged."""
    dice = Dice(seed, 8)
    made = random_sources(dice)
    plans = [plan_over(dice, made, depth=dice.integer(1, 3)) for _ in range(queries)]
    ticks = random_ticks(dice, made, TICKS, revised=revised)
    begins = [dice.integer(0, TICKS - 1) for _ in plans]
    ends = [dice.integer(0, TICKS) if dice.chance(30) else None for _ in plans]
    with hw.connect(runner="inprocess", shards=dice.integer(1, 3)) as engine:
        declare(engine, made)
        runs = {}
        for at, tick in enumerate(ticks):
            with engine.held():
                for i, plan in enumerate(plans):
                    if begins[i] == at:
                        runs[i] = start(engine, f"q{i}", plan, speculative=i % 2 == 1)
                    if ends[i] == at and i in runs:
                        runs.pop(i).stop()
            push(engine, made, tick)
        engine.run_to_end()
        for i, run in runs.items():
            right = expected(plans[i], seen_of(made, ticks, begins[i]))
            assert found(plans[i], run) == right, f"seed {seed}, {run.name} since tick {begins[i]}\n{plans[i]}"


@pytest.mark.parametrize("piece", range(3))
def test_queries_that_start_together(piece: int):
    for seed in range(piece * scaled(2), (piece + 1) * scaled(2)):
        check_together(seed)


@pytest.mark.parametrize("piece", range(3))
def test_queries_that_come_and_go(piece: int):
    for seed in range(piece * scaled(2), (piece + 1) * scaled(2)):
        check_one_by_one(seed)


@pytest.mark.parametrize("piece", range(3))
def test_queries_that_come_and_go_while_rows_change(piece: int):
    for seed in range(piece * scaled(2), (piece + 1) * scaled(2)):
        check_one_by_one(seed, revised=True)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(4))
def test_many_more(piece: int):
    for seed in range(1000 + piece * scaled(10), 1000 + (piece + 1) * scaled(10)):
        check_together(fresh(seed))
        check_one_by_one(fresh(seed))
        check_one_by_one(fresh(seed), revised=True)


def test_equal_queries_that_must_wait_are_one():
    """Each had an operator of its own to hold back what is not final, and both kept their rows under one name."""
    check_one_by_one(1039)
    with hw.connect(runner="inprocess", shards=2) as engine:
        engine.sql("CREATE STREAM s (x INT)")
        with engine.held():
            runs = [engine.sql("SELECT x FROM s WHERE x > 0", name=name).start() for name in "ab"]
        engine.push("s", [{"x": 1, "_start": 1, "_end": 5}, {"x": 2, "_start": 2, "_end": 9}])
        engine.push("s", [], frontier=7)
        engine.run_to_end()
        first, second = (sorted(row["x"] for row in run.history().rows()) for run in runs)
        assert first == second == [1, 2]
