"""Windows are answered when they end: what is out at a frontier, and that the answers stay what they are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.algebra import nodes as n
from headwater.algebra.plan_text import print_plan
from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Step
from headwater.optimizer.optimize import apply_rule
from headwater.optimizer.physical.early_windows import early_windows
from headwater.optimizer.physical.partial_aggregates import partial_aggregates
from headwater.runtime.replay import replay
from headwater.runtime.stepping import by_hand
from headwater.testing import plans
from headwater.testing.cases import fresh, scaled
from headwater.testing.checks import check_cases
from headwater.testing.choices import Choices, Dice
from headwater.testing.equivalence import check_equivalent
from headwater.testing.generate import Case, StreamShape, streams
from headwater.testing.plan_text import parse_plan


def with_early_windows(plan: n.Plan) -> n.Plan:
    return apply_rule(early_windows, plan)


def with_partials(plan: n.Plan) -> n.Plan:
    return apply_rule(partial_aggregates, plan)


LONG = pa.int64()
K = Schema.of(k="BIGINT")
SOURCE = n.Source("s", K, chronons=True, revisable=False)
COUNT = n.AggregateCall("COUNT", "n", LONG)
ENDS = ("window_start", "window_end")


def counts(size: int, slide: int, offset: int = 0, *, time: pa.DataType = LONG, revisable: bool = False) -> n.Aggregate:
    source = n.Source("s", K, chronons=True, revisable=revisable)
    return n.Aggregate(n.HopWindow(source, size, slide, offset, *ENDS, time), ENDS, (COUNT,))


def rows(*times: int) -> Delta:
    return Delta.from_rows(K, [((7,), t, t + 1, 1) for t in times])


class Strong:
    """A plan as it is deployed; what it says is never taken back."""

    def __init__(self, plan: n.Plan) -> None:
        self.schema = plan.schema
        self._runner = by_hand({"q": with_partials(with_early_windows(plan))})
        self.said: list[Delta] = []

    def tick(self, frontier: int, *times: int) -> Step:
        step = self._runner.tick({"s": rows(*times)}, {"s": frontier})["q"]
        assert (step.delta.weight > 0).all()
        self.said.append(step.delta)
        return step

    @property
    def history(self) -> History:
        return History.of(self.schema, self.said)


def elements(step: Step) -> list[tuple]:
    return sorted((row, start, end) for row, start, end, _ in step.delta.rows())


# -- when an answer comes ---------------------------------------------------------------------------------------------


def test_a_window_is_answered_when_the_frontier_reaches_its_end():
    query = Strong(counts(10, 10))
    step = query.tick(9, 1, 2, 11, 12, 13)
    assert (elements(step), step.frontier) == ([], 10)
    step = query.tick(10)
    assert (elements(step), step.frontier) == ([((0, 10, 2), 10, 20)], 20)
    step = query.tick(20)
    assert (elements(step), step.frontier) == ([((10, 20, 3), 20, 30)], 30)


def test_all_windows_that_have_ended_are_answered_at_once():
    step = Strong(counts(10, 10)).tick(20, 1, 2, 11, 12, 13)
    assert elements(step) == [((0, 10, 2), 10, 20), ((10, 20, 3), 20, 30)]


def test_a_window_without_rows_has_no_answer():
    query = Strong(counts(10, 10))
    assert elements(query.tick(50, 1, 31)) == [((0, 10, 1), 10, 20), ((30, 40, 1), 40, 50)]
    assert query.tick(60).frontier == 70


def ended(times: Sequence[int], size: int, slide: int, offset: int, frontier: int) -> dict[tuple[int, int], int]:
    """The windows that have ended by the frontier, with their numbers of rows."""
    found: Counter[tuple[int, int]] = Counter()
    for t in times:
        for start in range(t - size + 1, t + 1):
            if (start - offset) % slide == 0 and start + size <= frontier:
                found[start, start + size] += 1
    return dict(found)


@pytest.mark.parametrize("time", [LONG, pa.timestamp("us")], ids=str)
@pytest.mark.parametrize(
    ("size", "slide", "offset"),
    [(10, 10, 0), (10, 5, 0), (10, 3, 0), (7, 3, 2), (4, 9, 0), (4, 9, -3), (10, 10, 4), (2, 2, 1), (1, 6, 5)],
)
def test_what_is_out_at_every_frontier(size: int, slide: int, offset: int, time: pa.DataType):
    times = (1, 2, 2, 11, 12, 13, 24, 24, 37, 38)
    query, came = Strong(counts(size, slide, offset, time=time)), 0
    for frontier in range(61):
        arrived = [t for t in times if came <= t <= frontier + 2]  # two ahead of the frontier
        came = frontier + 3
        step = query.tick(frontier, *arrived)
        said = {
            (_number(start), _number(end)): count for delta in query.said for (start, end, count), *_ in delta.rows()
        }
        assert said == ended(times, size, slide, offset, frontier)
        assert step.frontier > frontier, "the output is as far as the input, and up to the next end"
    whole = Strong(counts(size, slide, offset, time=time))
    whole.tick(INFINITY, *times)
    assert query.history == whole.history


def _number(instant: object) -> int:
    if isinstance(instant, datetime):
        return (instant - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    assert isinstance(instant, int)
    return instant


def test_a_late_row_revises_what_was_shown():
    plan = counts(10, 10, revisable=True)
    runner = by_hand({"q": with_partials(with_early_windows(plan))}, speculative=True)
    out = [runner.tick({"s": rows(1, 2, 11, 21)}, {"s": BEGINNING})["q"].delta]
    assert ((0, 10, 2), 10, 20, 1) in out[0].rows(), "shown before it is final"
    out.append(runner.tick({"s": rows(3)}, {"s": 10})["q"].delta)
    assert sorted((row, weight) for row, *_, weight in out[1].rows()) == [((0, 10, 2), -1), ((0, 10, 3), 1)]
    out.append(runner.tick({}, {"s": INFINITY})["q"].delta)
    strong = Strong(plan)
    strong.tick(INFINITY, 1, 2, 3, 11, 21)
    assert History.of(plan.schema, out) == strong.history


def test_operators_above_each_other_wait_for_the_end_only_once():
    """The best of the counts of each window, joined with the counts: as in NEXMark's query 5."""
    plan = parse_plan("""
inner join on "window_end" = "end", "n" = "most"
  aggregate by "k", "window_end": COUNT(*) AS "n" BIGINT
    hop size 10 slide 5 as "window_start", "window_end" BIGINT
      source s (k BIGINT) chronons final
  project "end" = "window_end", "most"
    aggregate by "window_end": MAX("n") AS "most" BIGINT
      aggregate by "k", "window_end": COUNT(*) AS "n" BIGINT
        hop size 10 slide 5 as "window_start", "window_end" BIGINT
          source s (k BIGINT) chronons final
""")
    step = Strong(plan).tick(10, 1, 2, 7)
    assert elements(step) == [((7, 5, 2, 5, 2), 5, 10), ((7, 10, 3, 10, 3), 10, 15)]
    assert step.frontier == 15


SCRIPT = """
CREATE STREAM bid (ts {time}) ORDERED BY ts;
SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), {size}) GROUP BY window_start, window_end
"""


@pytest.mark.parametrize(
    ("time", "size", "unit"), [("BIGINT", "10", 1), ("TIMESTAMP", "10 SECONDS", 1_000_000)], ids=["numbers", "seconds"]
)
@pytest.mark.parametrize("settings", ["", "SET optimizer = off;"], ids=["optimized", "as written"])
def test_a_replay_says_it_in_the_tick_of_the_stable_point(
    tmp_path: Path, time: str, size: str, unit: int, settings: str
):
    clock = (lambda t: f"1970-01-01T00:00:{t:02}") if time == "TIMESTAMP" else (lambda t: t)
    times = (1, 2, 11, 12, 13)
    lines: list[dict] = [{"stream": "bid", "kind": "insert", "at": t * unit, "row": {"ts": clock(t)}} for t in times]
    lines.append({"kind": "tick"})
    for at in (10, 20):
        lines += [{"stream": "bid", "kind": "stable", "at": at * unit}, {"kind": "tick"}]
    recording = tmp_path / "bids.jsonl"
    recording.write_text("\n".join(map(json.dumps, lines)))
    script = bind_script(settings + SCRIPT.format(time=time, size=size))
    said = [json.loads(line) for line in replay(script, recording, open_ended=True)]
    assert [(e["kind"], e.get("start", e.get("at")) // unit, e.get("row", {}).get("n")) for e in said] == [
        *(("insert", 10, 2), ("stable", 20, None)),
        *(("insert", 20, 3), ("stable", 30, None)),
    ]


# -- which plans ------------------------------------------------------------------------------------------------------

STREAM = "source s (k BIGINT, v INT) chronons"


def rewritten(text: str) -> str:
    return print_plan(with_early_windows(parse_plan(text.strip())))


def test_the_operator_sees_each_window_for_an_instant():
    assert rewritten(f"""
aggregate by "k", "window_end": COUNT(*) AS "n" BIGINT
  filter "window_start" > 3
    hop size 60 slide 10 offset 3 as "window_start", "window_end" BIGINT
      {STREAM}""").splitlines() == [
        "granularity 10 offset 3",
        '  aggregate by "k", "window_end": COUNT(*) AS "n" BIGINT',
        '    filter "window_start" > 3',
        '      hop size 60 slide 10 offset 3 lifetime 1 as "window_start", "window_end" BIGINT',
        f"        {STREAM}",
    ]


def test_what_is_read_by_others_too_stays_for_them():
    """The rows of the window as they are, and their number: only the count waits."""
    assert rewritten(f"""
union
  project "window_end", "k"
    hop size 4 slide 4 as "window_start", "window_end" BIGINT
      {STREAM}
  aggregate by "window_end": COUNT(*) AS "k" BIGINT
    hop size 4 slide 4 as "window_start", "window_end" BIGINT
      {STREAM}""").splitlines() == [
        "union",
        '  project "window_end", "k"',
        '    hop size 4 slide 4 as "window_start", "window_end" BIGINT',
        f"      {STREAM}",
        "  granularity 4",
        '    aggregate by "window_end": COUNT(*) AS "k" BIGINT',
        '      hop size 4 slide 4 lifetime 1 as "window_start", "window_end" BIGINT',
        f"        {STREAM}",
    ]


def test_windows_that_end_together_are_joined_at_their_ends():
    made = rewritten(f"""
anti join on "window_end" = "window_end"
  distinct
    project "window_end"
      hop size 4 slide 4 as "window_start", "window_end" BIGINT
        {STREAM}
  hop size 8 slide 4 offset 4 as "window_start", "window_end" BIGINT
    {STREAM}""")
    assert made.count("granularity 4") == 1
    assert made.startswith("granularity 4\n  anti join")
    assert made.count("lifetime 1") == 2


@pytest.mark.parametrize(
    "text",
    [
        f'hop size 4 slide 2 as "a", "b" BIGINT\n  {STREAM}',
        f'aggregate by "b": COUNT(*) AS "n" BIGINT\n  hop size 4 slide 1 as "a", "b" BIGINT\n    {STREAM}',
        f'aggregate by "k": COUNT(*) AS "n" BIGINT\n  granularity 5\n    window range 7\n      {STREAM}',
        f'istream\n  hop size 4 slide 2 as "a", "b" BIGINT\n    {STREAM}',
        f'inner join on "k" = "x"\n  hop size 4 slide 2 as "a", "b" BIGINT\n    {STREAM}\n'
        "  window range 9\n    source t (x BIGINT) chronons",
        f'distinct\n  union\n    hop size 4 slide 2 as "a", "b" BIGINT\n      {STREAM}\n'
        f'    hop size 4 slide 2 offset 1 as "a", "b" BIGINT\n      {STREAM}',
    ],
    ids=["nothing waits", "slide 1", "granularity of the user", "changes", "no window", "other ends"],
)
def test_what_is_left_alone(text: str):
    assert rewritten(text) == text


@pytest.mark.parametrize("slide", [1, 3])
def test_an_early_plan_stays_as_it_is(slide: int):
    once = with_early_windows(counts(6, slide))
    assert with_early_windows(once) == once
    assert parse_plan(print_plan(once)) == once


# -- the same answers -------------------------------------------------------------------------------------------------


def _hops(c: Choices, name: str = "s", prefix: str = "") -> n.Plan:
    """A window in which something waits: a slide of more than one instant, shown until the next report."""
    source = n.Source(name, plans.schema(c, prefix), chronons=c.chance(80), revisable=c.chance(60))
    size, slide = c.pick([4, 3, 5, 1, 2]), c.pick([2, 3, 5])
    time = c.pick([LONG, pa.timestamp("us")])
    return n.HopWindow(source, size, slide, c.pick([0, 0, 1, -2]), f"{prefix}ws", f"{prefix}we", time)


def _narrowed(c: Choices, plan: n.Plan) -> n.Plan:
    return n.Filter(plan, plans.predicate(c, plan.schema)) if c.chance(30) else plan


def _pair(c: Choices) -> tuple[n.Plan, n.Plan]:
    """Two windows that end together, if their sources differ or not."""
    left = _hops(c)
    assert isinstance(left, n.HopWindow)
    source = n.Source("t", plans.schema(c, "r"), chronons=True)
    right = n.HopWindow(source, left.size + left.slide, left.slide, left.offset, "rs", "re", left.time)
    return left, right


def _set_operation(c: Choices) -> n.Plan:
    left, right = _pair(c)
    like = plans.conform(c, right, left.schema)
    return n.SetOperation(left, like, c.pick(list(n.SetKind)))


SHAPES: dict[str, Callable[[Choices], n.Plan]] = {
    "aggregate": lambda c: plans.aggregate(c, _narrowed(c, _hops(c))),
    "one row per window": lambda c: plans.aggregate_windows(c, _hops(c)),  # type: ignore[arg-type]
    "distinct": lambda c: n.Distinct(plans.project(c, _hops(c))),
    "top": lambda c: plans.top_k(c, _hops(c), limit=2),
    "join": lambda c: plans.join(c, *_pair(c)),
    "set operation": _set_operation,
    "aggregate of aggregate": lambda c: plans.aggregate(c, _narrowed(c, plans.aggregate(c, _hops(c)))),
    "aggregate of join": lambda c: plans.aggregate(c, plans.join(c, *_pair(c), kind=n.JoinKind.INNER)),
}


def _random(name: str, seed: int) -> tuple[n.Plan, n.Plan]:
    before = SHAPES[name](Dice(seed))
    return before, with_early_windows(before)


@pytest.mark.parametrize("name", SHAPES)
def test_the_answer_is_the_same(name: str):
    for seed in range(scaled(6)):
        before, after = _random(name, seed)
        assert isinstance(after, n.Granularity)
        check_equivalent(before, after, 4, first=100 * seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_the_answer_is_the_same_at_length(name: str):
    for seed in range(fresh(1_000), fresh(1_000) + scaled(60)):
        before, after = _random(name, seed)
        check_equivalent(before, after, 10, first=100 * seed)


@pytest.mark.parametrize("seed", range(6))
def test_rows_may_be_put_together_first(seed: int):
    """Every trial of the battery: cuts, orders, shards, restarts, both forms, all levels."""
    rng = Dice(seed)
    plan = with_partials(with_early_windows(counts(rng.pick([4, 5, 3]), rng.pick([2, 3]), revisable=rng.chance(50))))
    assert any(isinstance(node, n.PreAggregate) for node in plan.walk())
    shape = StreamShape(elements=22, span=10)
    check_cases([Case(plan, streams(Dice(100 * seed + i), plan, shape), i) for i in range(3)], thorough=True)
