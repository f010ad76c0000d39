"""Rows wait before a part of a plan that would make more of them: same answers, less state, and later only where asked."""

from __future__ import annotations

import pytest

import headwater as hw
from headwater.algebra import nodes as n
from headwater.algebra.plan_text import print_plan
from headwater.model.schema import Schema
from headwater.optimizer.optimize import apply_rule
from headwater.optimizer.physical.memory_aware import memory_aware, only_time
from headwater.optimizer.plan_query import plan_query
from headwater.settings import Settings
from headwater.testing.cases import fresh, scaled
from headwater.testing.checks import check_cases
from headwater.testing.choices import Dice
from headwater.testing.generate import Case, streams
from headwater.testing.plan_text import parse_plan
from headwater.testing.plans import plan, source

K = Schema.of(k="BIGINT")
QUERY = """
    SELECT a.k, a.x, y, z FROM a WINDOW(RANGE 100000), b WINDOW(RANGE 100000), c WINDOW(RANGE 100000)
    WHERE a.k = b.k AND a.x = c.x AND y = z
"""
TIMED = "ORDERED BY t DISORDER 0"
STREAMS = f"""
    CREATE STREAM a (k INT, x INT, t BIGINT) {TIMED};
    CREATE STREAM b (k INT, y INT, t BIGINT) {TIMED};
    CREATE STREAM c (x INT, z INT, t BIGINT) {TIMED}
"""


def awaited(found: n.Plan) -> list[tuple[str, str]]:
    """For each waiting input: its own streams, and those that it waits for."""

    def names(part: n.Plan) -> str:
        return ", ".join(sorted({node.name for node in part.walk() if isinstance(node, n.Source)}))

    return sorted((names(node.input), names(node.other)) for node in found.walk() if isinstance(node, n.Await))


def test_inputs_of_a_proliferative_join_wait_for_the_streams_of_the_one_above():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(STREAMS)
        written = engine.sql(QUERY).plan
    assert awaited(plan_query(written, Settings(memory_aware="on")).plan) == [("a", "b, c"), ("b", "a, c")]
    assert awaited(plan_query(written, Settings()).plan) == []


def test_nothing_waits_where_less_comes_out_than_goes_in():
    few = n.Aggregate(n.TimeWindow(n.Source("s", K, chronons=True), 10, 10), ("k",), ())
    assert apply_rule(memory_aware, few) == few
    assert apply_rule(memory_aware, n.Source("s", K)) == n.Source("s", K)


def test_it_can_be_written_and_read():
    waits = n.Await(n.Source("s", K), only_time(n.Source("t", K)), ("k",))
    assert parse_plan(print_plan(waits)) == waits


def with_waits(dice: Dice, made: n.Plan) -> n.Plan:
    """The plan, with rows waiting for some stream or other wherever the dice say so."""
    streams = [*(node for node in made.walk() if isinstance(node, n.Source)), source(dice, "elsewhere")]
    done: dict[n.Plan, n.Plan] = {}
    for node in made.walk():
        inputs = [
            n.Await(done[child], only_time(dice.pick(streams))) if dice.chance(40) else done[child]
            for child in node.inputs
        ]
        done[node] = node.with_new_inputs(inputs)
    return done[made]


def check(seed: int) -> None:
    """The oracle does not know what waiting is."""
    dice = Dice(seed, 21)
    made = with_waits(dice, plan(dice, depth=3))
    check_cases([Case(made, streams(Dice(seed, i), made), seed) for i in range(5)])


@pytest.mark.parametrize("piece", range(4))
def test_answers_stay_what_they_are(piece: int):
    for seed in range(piece * scaled(5), (piece + 1) * scaled(5)):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(4))
def test_answers_of_many_more_stay_what_they_are(piece: int):
    for seed in range(1000 + piece * scaled(100), 1000 + (piece + 1) * scaled(100)):
        check(fresh(seed))


def state_rows(engine: hw.Engine) -> int:
    return engine.progress().state_rows


@pytest.mark.parametrize("shards", [1, 3])
def test_less_is_kept_while_a_stream_lags(shards: int):
    found = {}
    for setting in ("off", "on"):
        with hw.connect(runner="inprocess", shards=shards) as engine:
            engine.sql(STREAMS)
            run = engine.sql(f"SET memory_aware = {setting}; {QUERY}").start()
            engine.push("c", [{"x": 1, "z": 1, "t": 0}])
            for t in range(20):
                engine.push("a", [{"k": 7, "x": t % 3, "t": t}])
                engine.push("b", [{"k": 7, "y": t % 3, "t": t}])
            engine.run_to_end(end_streams=False)
            lagging, shown = state_rows(engine), len(run.history())
            engine.push("c", [{"x": 2, "z": 2, "t": 19}])
            engine.run_to_end()
            found[setting] = lagging, shown, sorted(run.history().rows(), key=str)
    assert found["on"][2] == found["off"][2]
    assert found["off"][0] > 400, "all pairs of a and b"
    assert found["on"][0] < 60, "only the rows themselves"
    assert found["off"][1] > 0, "a join shows what is certain at once"
    assert found["on"][1] == 0


@pytest.mark.parametrize("level", ["MIDDLE", "BLOCK 3 REMEMBER 100000"])
def test_what_waits_is_shown_when_the_query_is_no_longer_strong(level: str):
    with hw.connect(runner="inprocess", shards=2) as engine:
        engine.sql(STREAMS)
        run = engine.sql(f"SET memory_aware = on; {QUERY}").start()
        other = engine.sql(f"SET memory_aware = off; {QUERY}", name="other").start()
        engine.push("c", [{"x": 1, "z": 1, "t": 0}])
        for stream, column in (("a", "x"), ("b", "y")):
            engine.push(stream, [{"k": 7, column: 1, "t": t} for t in range(5)])
        assert len(run.history()) == 0
        run.set_consistency(level)
        engine.push("a", [{"k": 7, "x": 1, "t": 9}])
        assert len(run.history()) > 0
        engine.push("c", [{"x": 1, "z": 1, "t": 30}])
        engine.run_to_end()
        assert sorted(map(repr, run.history().rows())) == sorted(map(repr, other.history().rows()))
