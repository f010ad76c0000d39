"""Results of a step that go ahead in portions: the answers stay what they are, and memory stays small."""

from __future__ import annotations

import subprocess
import sys

import pytest

import headwater as hw
from headwater.algebra.nodes import JoinKind, Plan, Source
from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.operators.joins import join, pile
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


def above_it(dice: Dice, sources: tuple[Source, Source], plan: Plan) -> Plan:
    """Mostly an aggregate: there rows are put together."""
    if dice.chance(50):
        return plans.aggregate(dice, plan, ["COUNT", "SUM", "MIN", "MAX"])  # means of means would be rounded twice
    return plans._above(dice, sources, plan, 2)


def campaign(
    first: int,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    kind: JoinKind | None = JoinKind.INNER,
    trial: str = "5 shards",
) -> int:
    """Joins (None: of any kind) under one to three other operators; pairs go ahead two by two. How often they did."""
    monkeypatch.setattr(join, "BLOCK", 2)
    monkeypatch.setattr(stage, "PORTION", 0)
    monkeypatch.setattr(pile, "_LOOSE", first % 5)
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
            above = above_it(dice, (left, right), plan)
            if plans.crowd(above) <= plans._CROWD and not grows_for_ever(above, ("s", "t")):
                plan = above
        case = Case(plan, streams(Dice(seed, 78), plan, StreamShape(elements=24)), seed)
        checks.check_cases([case], kinds=[trial])
    return went


def test_answers_stay_what_they_are(monkeypatch: pytest.MonkeyPatch):
    assert campaign(0, scaled(20), monkeypatch) > 20


@pytest.mark.parametrize("seed", [24, 53, 60])
def test_what_goes_ahead_in_the_first_tick_on_other_shards(seed: int, monkeypatch: pytest.MonkeyPatch):
    """Then nothing is known of what the operators above have heard before."""
    assert campaign(seed, 1, monkeypatch, trial="restarted") > 0


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.FULL, JoinKind.SEMI, JoinKind.ANTI])
def test_answers_of_other_joins_stay_what_they_are(kind: JoinKind, monkeypatch: pytest.MonkeyPatch):
    campaign(500, scaled(4), monkeypatch, kind)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(10))
@pytest.mark.parametrize("kind", [JoinKind.INNER, None], ids=["inner", "any"])
def test_answers_of_many_plans_stay_what_they_are(kind: JoinKind | None, piece: int, monkeypatch: pytest.MonkeyPatch):
    count = scaled(150)
    campaign(fresh(1_000 + piece * count), count, monkeypatch, kind)


def test_rows_that_are_taken_away_and_rows_before_the_frontier_wait():
    rows = [((1,), 5, 9, 1), ((1,), 4, 9, 1), ((2,), 6, 9, -1)]
    goes, waits = legal_part(Delta.from_rows(SCHEMA, rows), 5)
    assert (goes.rows(), waits.rows()) == (rows[:1], rows[1:])
    goes, waits = legal_part(goes, 5)
    assert (len(goes), len(waits)) == (1, 0)


SUMMED = f"""
import resource, sys
sys.path[:0] = {sys.path!r}
import headwater as hw
with hw.connect(runner="inprocess", shards=2) as engine:
    engine.sql({STREAMS!r})
    run = engine.sql("SELECT SUM(a.v * b.v) AS n FROM a [RANGE 10000] JOIN b [RANGE 10000] ON a.k = b.k", name="q").start()
    rows = [{{"k": 7, "v": i, "t": i}} for i in range(4000)]
    engine.push("a", rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    engine.push("b", rows)
    engine.run_to_end()
    print(run.snapshot(3999).rows()[0]["n"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_pairs_that_are_only_summed_do_not_fill_the_memory():
    """Sixteen million of them, all values and times different, which took more than a gigabyte."""
    told = subprocess.run([sys.executable, "-c", SUMMED], capture_output=True, text=True, check=True)
    summed, kilobytes = map(int, told.stdout.split())
    assert summed == sum(range(4000)) ** 2
    assert kilobytes < 400_000


TOTAL = sum(range(1500))
WINDOWS = "FROM a [RANGE 10000] {} JOIN b [RANGE 10000] ON a.k = b.k"
OTHER = "(SELECT 1 FROM b [RANGE 10000] WHERE a.k = b.k AND b.v {} a.v)"
SMALL = [
    ("COUNT(*)", "INNER", 1500**2),
    ("SUM(a.v * b.v)", "INNER", TOTAL**2),
    ("SUM(CAST(a.v * b.v AS DECIMAL(30, 2)))", "INNER", TOTAL**2),
    ("AVG(a.v * b.v / 10)", "INNER", TOTAL**2 / 1500**2 / 10),
    ("MIN((a.v - 7) * b.v)", "INNER", -7 * 1499),
    ("MAX(a.v * b.v)", "INNER", 1499**2),
    ("SUM(a.v + b.v)", "LEFT", 2 * 1500 * TOTAL),
    ("COUNT(a.v + b.v)", "FULL", 1500**2),
]


@pytest.mark.parametrize("grouped", ["", " GROUP BY a.k"])
@pytest.mark.parametrize("apart", [0, 1], ids=["one instant", "all instants different"])
@pytest.mark.parametrize(("call", "kind", "answer"), SMALL)
def test_a_small_answer_goes_on_whatever_it_is_made_of(call: str, kind: str, answer: float, apart: int, grouped: str):
    check_small(f"SELECT {call} AS n {WINDOWS.format(kind)}{grouped}", apart, answer)


@pytest.mark.parametrize("apart", [0, 1], ids=["one instant", "all instants different"])
@pytest.mark.parametrize(
    ("asked", "how", "answer"), [("EXISTS", "<>", 1500), ("NOT EXISTS", ">", 1), ("NOT EXISTS", "<>", None)]
)
def test_whether_there_are_pairs_goes_on(asked: str, how: str, answer: int | None, apart: int):
    check_small(f"SELECT COUNT(*) AS n FROM a [RANGE 10000] WHERE {asked} {OTHER.format(how)}", apart, answer)


def test_speculation_goes_on_too():
    check_small(f"SELECT SUM(a.v * b.v) AS n {WINDOWS.format('INNER')} CONSISTENCY MIDDLE", 1, TOTAL**2)


def check_small(query: str, apart: int, answer: float | None) -> None:
    """With much less room than two million pairs take."""
    with hw.connect(runner="inprocess") as engine:
        engine.sql(STREAMS.replace("v INT", "v BIGINT") + "SET step_bytes = 40000000;")
        run = engine.sql(query, name="small").start()
        rows = [{"k": 7, "v": i, "t": i * apart} for i in range(1500)]
        engine.push("a", rows)
        engine.push("b", rows)
        engine.run_to_end()
        found = [float(row["n"]) for row in run.snapshot(1499).rows()]
        assert found == ([] if answer is None else [pytest.approx(answer, rel=1e-15)])


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


def test_outer_joins_do_not_fill_the_memory_before_they_are_an_error():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(STREAMS + "SET step_bytes = 20000000;")
        engine.sql(f"SELECT a.v, b.v AS w {OUTER}", name="pairs").start(hw.sinks.noop())
        engine.push("a", [{"k": 7, "v": i, "t": i % 100} for i in range(1500)])
        with pytest.raises(StreamError, match=r'STEP_TOO_LARGE: the outer join ON .* of query "pairs" .*\n.*k = 7'):
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
