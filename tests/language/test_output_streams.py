"""INTERNAL windows, Wstream and restore against Golab's definitions, result by result (3.3.2 to 3.3.4)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from attrs import frozen

from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.optimizer.plan_query import plan_query
from headwater.runtime.stepping import by_hand
from headwater.settings import Settings

STREAMS = "CREATE STREAM s (k INT, x STRING); CREATE STREAM t (k INT, y STRING);"
LEFT, RIGHT = Schema.of(k="INT", x="STRING"), Schema.of(k="INT", y="STRING")
Arrivals = list[tuple[int, int, str]]
"""(instant, key, value)"""


@frozen
class Result:
    """A pair of rows: when it is born, when it expires, what is seen of it."""

    born: int
    gone: int
    row: tuple[str, str]


def arrivals(rng: random.Random, values: str) -> Arrivals:
    """Few keys and values, so that equal results come and go at the same instants."""
    return [(rng.randint(0, 20), rng.randint(1, 2), rng.choice(values)) for _ in range(rng.randint(0, 9))]


def pairs(left: Arrivals, right: Arrivals, sizes: tuple[int, int]) -> Iterator[Result]:
    """The results of a join of two windows, by the definition: both rows are in theirs."""
    for a, k, x in left:
        for b, m, y in right:
            born, gone = max(a, b), min(a + sizes[0], b + sizes[1])
            if k == m and born < gone:
                yield Result(born, gone, (x, y))


def refresh(instant: int, period: int) -> int:
    """The first refresh at the instant or after it."""
    return -(-(instant + 1) // period) * period - 1


def answer(sql: str, left: Arrivals, right: Arrivals, cuts: int, *, speculative: bool = False) -> dict:
    """What the query gives, run in ticks: (row, instant) -> copies."""
    query = bind_script(STREAMS + sql).result
    assert query is not None
    runner = by_hand({"q": plan_query(query.plan, Settings()).plan}, speculative=speculative)
    given = {"s": (LEFT, sorted(left)), "t": (RIGHT, sorted(right))}
    parts = []
    for tick in range(cuts):
        low, high = 21 * tick // cuts, 21 * (tick + 1) // cuts
        deltas = {
            name: Delta.from_rows(schema, [((k, v), at, at + 1, 1) for at, k, v in rows if low <= at < high])
            for name, (schema, rows) in given.items()
        }
        parts.append(runner.tick(deltas, dict.fromkeys("st", high if tick + 1 < cuts else INFINITY))["q"].delta)
    history = History.of(query.plan.schema, parts)
    return {(r, t): n for t in range(60) for r, n in history.snapshot(t).items()}


def counted(results) -> dict:
    return dict(Counter(results))


@pytest.mark.parametrize("speculative", [False, True])
def test_a_join_of_internal_windows_gives_every_pair_when_it_is_born(speculative: bool):
    rng = random.Random(1)
    for case in range(25):
        left, right = arrivals(rng, "ab"), arrivals(rng, "c")
        sizes = rng.randint(1, 6), rng.randint(1, 6)
        windows = f"s [RANGE {sizes[0]} INTERNAL], t [RANGE {sizes[1]} INTERNAL]"
        found = answer(
            f"SELECT x, y FROM {windows} WHERE s.k = t.k", left, right, 1 + case % 4, speculative=speculative
        )
        assert found == counted((p.row, p.born) for p in pairs(left, right, sizes))


def test_with_a_slide_a_pair_is_new_at_the_first_refresh_that_sees_it():
    rng = random.Random(2)
    for case in range(25):
        left, right, period = arrivals(rng, "ab"), arrivals(rng, "c"), rng.randint(1, 5)
        sizes = period * rng.randint(1, 3), period * rng.randint(1, 3)
        windows = f"s [RANGE {sizes[0]} SLIDE {period} INTERNAL], t [RANGE {sizes[1]} SLIDE {period} INTERNAL]"
        found = answer(f"SELECT x, y FROM {windows} WHERE s.k = t.k", left, right, 1 + case % 4)
        seen = ((p.row, refresh(p.born, period)) for p in refreshed(left, right, sizes, period))
        assert found == counted(seen)


def refreshed(left: Arrivals, right: Arrivals, sizes: tuple[int, int], period: int) -> Iterator[Result]:
    """The pairs that some refresh sees: both rows arrived in the window that ends there."""
    for a, k, x in left:
        for b, m, y in right:
            first = max(refresh(a, period), refresh(b, period))
            if k == m and first - sizes[0] < a and first - sizes[1] < b:
                yield Result(max(a, b), 0, (x, y))


@pytest.mark.parametrize("speculative", [False, True])
def test_restore_tells_of_all_pairs_that_an_eager_query_inserts(speculative: bool):
    rng = random.Random(3)
    for case in range(25):
        left, right, period = arrivals(rng, "ab"), arrivals(rng, "c"), rng.randint(1, 6)
        sizes = rng.randint(1, 8), rng.randint(1, 8)
        windows = f"s [RANGE {sizes[0]} SLIDE {period}], t [RANGE {sizes[1]} SLIDE {period}]"
        every = list(pairs(left, right, sizes))
        queries = (f"SELECT {kind}-restore(x, y) FROM {windows} WHERE s.k = t.k" for kind in ("Istream", "Rstream"))
        found, shown = (answer(sql, left, right, 1 + case % 4, speculative=speculative) for sql in queries)
        assert found == counted((p.row, refresh(p.born, period)) for p in every)
        expected: Counter = Counter()
        for at in range(60):
            last = refresh(at + 1, period) - period  # the refresh at or before this instant
            there = (p for p in every if p.born <= last < p.gone or last - period < p.born <= last)
            expected.update((p.row, at) for p in there)
        assert shown == dict(expected)


def test_an_aggregate_over_internal_windows_gives_one_answer_a_refresh():
    rng = random.Random(4)
    for case in range(25):
        left, period = arrivals(rng, "ab"), rng.randint(1, 5)
        size = period * rng.randint(1, 3)
        sql = f"SELECT x, COUNT(*) AS n FROM s [RANGE {size} SLIDE {period} INTERNAL] GROUP BY x"
        expected = {}
        for at in range(period - 1, 60, period):
            seen = Counter(x for a, _, x in left if at - size < a <= at)
            expected |= {((x, n), at): 1 for x, n in seen.items()}
        assert answer(sql, left, [], 1 + case % 4) == expected


def test_wstream_is_a_window_over_all_results():
    rng = random.Random(5)
    for case in range(25):
        left, right = arrivals(rng, "ab"), arrivals(rng, "c")
        sizes, size = (rng.randint(1, 6), rng.randint(1, 6)), rng.randint(1, 6)
        sql = f"SELECT Wstream(x, y)[RANGE {size}] FROM s [RANGE {sizes[0]}], t [RANGE {sizes[1]}] WHERE s.k = t.k"
        every = pairs(left, right, sizes)
        expected = counted((p.row, t) for p in every for t in range(p.born, p.born + size))
        assert answer(sql, left, right, 1 + case % 4) == expected


WSTREAM = [
    ("SELECT Wstream(*)[ROWS 2] FROM s [RANGE 5]", "SELECT * FROM (SELECT * FROM s [RANGE 5 INTERNAL]) [ROWS 2]"),
    (
        "SELECT MAX(Wstream(SUM(k))[ROWS 2]) AS m FROM s [RANGE 4 SLIDE 2]",
        "SELECT MAX(wstream_1) AS m FROM (SELECT SUM(k) AS wstream_1 FROM s [RANGE 4 SLIDE 2 INTERNAL]) [ROWS 2]",
    ),
    (
        "SELECT Wstream(x AS v)[RANGE 3] FROM s [ROWS 2] WHERE k > 1",
        "SELECT * FROM (SELECT x AS v FROM s [ROWS 2 INTERNAL] WHERE k > 1) [RANGE 3]",
    ),
]


@pytest.mark.parametrize(("short", "long"), WSTREAM)
def test_wstream_is_short_for_a_sub_query(short: str, long: str):
    plans = [bind_script(STREAMS + sql).result for sql in (short, long)]
    assert plans[0] is not None
    assert plans[1] is not None
    assert plans[0].plan == plans[1].plan
