"""Results of a step that go ahead in portions: the answers stay what they are, and memory stays small."""

from __future__ import annotations

import subprocess
import sys

import pytest

import headwater as hw
from headwater.algebra.nodes import JoinKind
from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators import endpoints, join
from headwater.operators.endpoints import only_ends
from headwater.runtime import stage
from headwater.runtime.ahead import legal_part
from headwater.testing import checks, plans
from headwater.testing.cases import fresh, scaled
from headwater.testing.choices import Dice
from headwater.testing.generate import Case, StreamShape, streams
from headwater.testing.shape import grows_for_ever

SCHEMA = Schema.of(x="BIGINT")
STREAMS = "CREATE STREAM a (k INT, v INT, t INT) ORDERED BY t; CREATE STREAM b (k INT, v INT, t INT) ORDERED BY t;"
PAIRS = "FROM a [RANGE 100] JOIN b [RANGE 100] ON a.k = b.k"


def campaign(first: int, count: int, monkeypatch: pytest.MonkeyPatch, kind: JoinKind | None = JoinKind.INNER) -> int:
    """Joins (None: of any kind) under one to three other operators; pairs go ahead two by two. How often they did."""
    monkeypatch.setattr(join, "BLOCK", 2)
    monkeypatch.setattr(stage, "PORTION", 0)
    went, go_ahead = 0, stage.Stage._go_ahead

    def counted(*args: object) -> None:
        nonlocal went
        went += 1
        go_ahead(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(stage.Stage, "_go_ahead", counted)
    for seed in range(first, first + count):
        dice = Dice(seed, 77)
        left, right = (plans.source(dice, name) for name in "st")
        plan = plans.join(dice, left, right, kind=kind)
        for _ in range(dice.integer(1, 3)):
            above = plans._above(dice, (left, right), plan, 2)
            if plans.crowd(above) <= plans._CROWD and not grows_for_ever(above, ("s", "t")):
                plan = above
        case = Case(plan, streams(Dice(seed, 78), plan, StreamShape(elements=24)), seed)
        checks.check_cases([case], kinds=["5 shards"])
    return went


def test_answers_stay_what_they_are(monkeypatch: pytest.MonkeyPatch):
    assert campaign(0, scaled(20), monkeypatch) > 20


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.FULL, JoinKind.SEMI, JoinKind.ANTI])
def test_answers_of_other_joins_stay_what_they_are(kind: JoinKind, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(endpoints, "_LOOSE", 4)
    campaign(500, scaled(4), monkeypatch, kind)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(10))
@pytest.mark.parametrize("kind", [JoinKind.INNER, None], ids=["inner", "any"])
def test_answers_of_many_plans_stay_what_they_are(kind: JoinKind | None, piece: int, monkeypatch: pytest.MonkeyPatch):
    count = scaled(150)
    monkeypatch.setattr(endpoints, "_LOOSE", 4)
    campaign(fresh(1_000 + piece * count), count, monkeypatch, kind)


def test_what_sees_only_ends_sees_the_same():
    rows = [((1,), 0, 5, 1), ((1,), 3, 5, 2), ((1,), 5, 9, 1), ((2,), 0, INFINITY, 1), ((2,), 4, 6, -1)]
    whole = Delta.from_rows(SCHEMA, rows)
    ends = only_ends(whole)
    assert History.of(SCHEMA, [ends]) == History.of(SCHEMA, [whole])
    assert len(ends) == len({(x, t) for (x,), start, end, _ in rows for t in (start, end) if t < INFINITY})


def test_rows_that_are_taken_away_and_rows_before_the_frontier_wait():
    rows = [((1,), 5, 9, 1), ((1,), 4, 9, 1), ((2,), 6, 9, -1)]
    goes, waits = legal_part(Delta.from_rows(SCHEMA, rows), 5)
    assert (goes.rows(), waits.rows()) == (rows[:1], rows[1:])
    goes, waits = legal_part(goes, 5)
    assert (len(goes), len(waits)) == (1, 0)


COUNTED = f"""
import resource, sys
sys.path[:0] = {sys.path!r}
import headwater as hw
with hw.connect(runner="inprocess", shards=2) as engine:
    engine.sql({STREAMS!r})
    run = engine.sql("SELECT COUNT(*) AS n {PAIRS}", name="q").start()
    rows = [{{"k": 7, "v": i, "t": i % 100}} for i in range(4000)]
    engine.push("a", rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    engine.push("b", rows)
    engine.run_to_end()
    print(run.snapshot(99).rows()[0]['n'], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_pairs_that_are_only_counted_do_not_fill_the_memory():
    """Sixteen million of them, which took more than a gigabyte."""
    told = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    counted, kilobytes = map(int, told.stdout.split())
    assert counted == 4000 * 4000
    assert kilobytes < 300_000


def test_a_step_that_makes_too_much_is_an_error_that_names_query_and_key():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(STREAMS + "SET step_bytes = 20000000;")
        engine.sql(f"SELECT a.v, b.v AS w {PAIRS}", name="pairs").start(hw.sinks.noop())
        engine.push("a", [{"k": 3, "v": 0, "t": 1}, *({"k": 7, "v": i, "t": i % 100} for i in range(1500))])
        told = r'STEP_TOO_LARGE: the join ON k = .*k of query "pairs" makes more than 20,000,000 bytes .*\n.* b.k = 7'
        with pytest.raises(StreamError, match=told):
            engine.push("b", [{"k": 7, "v": i, "t": i % 100} for i in range(1500)])


OUTER = "FROM a [RANGE 100] LEFT JOIN b [RANGE 100] ON a.k = b.k"
EXISTS = "FROM a [RANGE 100] WHERE EXISTS (SELECT 1 FROM b [RANGE 100] WHERE a.k = b.k AND a.v <> b.v)"


@pytest.mark.parametrize(
    ("query", "operator", "most"),
    [(f"SELECT a.v, b.v AS w {OUTER}", "outer join", 20_000_000), (f"SELECT a.v {EXISTS}", "semi join", 2_000_000)],
)
def test_outer_joins_and_semi_joins_do_not_fill_the_memory_before_they_are_an_error(
    query: str, operator: str, most: int
):
    with hw.connect(runner="inprocess") as engine:
        engine.sql(STREAMS + f"SET step_bytes = {most};")
        engine.sql(query, name="pairs").start(hw.sinks.noop())
        engine.push("a", [{"k": 7, "v": i, "t": i % 100} for i in range(1500)])
        with pytest.raises(StreamError, match=rf'STEP_TOO_LARGE: the {operator} ON .* of query "pairs" .*\n.*k = 7'):
            engine.push("b", [{"k": 7, "v": i, "t": i % 100} for i in range(1500)])


@pytest.mark.parametrize(("query", "count"), [(OUTER, 1500 * 1500 + 1), (EXISTS, 1500)])
def test_what_is_only_counted_of_them_goes_on(query: str, count: int):
    with hw.connect(runner="inprocess") as engine:
        engine.sql(STREAMS + "SET step_bytes = 40000000;")
        run = engine.sql(f"SELECT COUNT(*) AS n {query}", name="counted").start()
        engine.push("a", [{"k": 3, "v": 0, "t": 99}, *({"k": 7, "v": i, "t": i % 100} for i in range(1500))])
        engine.push("b", [{"k": 7, "v": i, "t": i % 100} for i in range(1500)])
        engine.run_to_end()
        assert run.snapshot(99).rows() == [{"n": count}]
