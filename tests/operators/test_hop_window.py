"""Hopping and tumbling windows: tables by hand, every instant against the definition, both ends of time."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime

import pyarrow as pa
import pytest

from headwater.algebra import nodes as n
from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.element import Stable
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.windows.hop_window import HopWindowOperator
from headwater.runtime.stepping import by_hand
from headwater.testing.timeline import changes, history, timeline

X = Schema.of(x="STRING")
ENDS = {"start": "window_start", "end": "window_end", "time": pa.int64()}
WINDOWED = Schema.of(x="STRING", window_start="BIGINT", window_end="BIGINT")


def hop(size, slide, offset=0, **ends):
    return HopWindowOperator(X, size, slide, offset, **(ENDS | ends))


def chronons(rows):
    return Delta.from_rows(X, [((x,), t, t + 1, w) for x, t, w in rows])


def copies(operator, rows, frontier=INFINITY):
    return operator.step(None, (chronons(rows),), (frontier,))


@pytest.mark.parametrize(
    ("size", "slide", "offset", "given", "expected"),
    [
        pytest.param(4, 4, 0, "a @1, b @3, a @4", "a/0/4 4-8, b/0/4 4-8, a/4/8 8-12", id="tumble"),
        pytest.param(4, 2, 0, "a @1", "a/-2/2 2-4, a/0/4 4-6", id="hop"),
        pytest.param(5, 2, 0, "a @4", "a/0/5 5-7, a/2/7 7-9, a/4/9 9-11", id="size is no multiple of slide"),
        pytest.param(2, 5, 0, "a @1, b @2, c @4, d @5", "a/0/2 2-7, d/5/7 7-12", id="rows in no window"),
        pytest.param(4, 4, 1, "a @0, b @1", "a/-3/1 1-5, b/1/5 5-9", id="offset"),
        pytest.param(4, 4, -3, "a @0, b @1", "a/-3/1 1-5, b/1/5 5-9", id="offsets repeat with the slide"),
        pytest.param(4, 4, 0, "a @-1, b @-4, c @-5", "a/-4/0 0-4, b/-4/0 0-4, c/-8/-4 -4-0", id="before zero"),
        pytest.param(1, 1, 0, "a @3", "a/3/4 4-5", id="one instant"),
    ],
)
def test_tables(size, slide, offset, given, expected):
    answer = hop(size, slide, offset).step(None, (changes(timeline(given)),), (INFINITY,))
    assert History.of(WINDOWED, [answer.delta]) == history(expected, WINDOWED)


@pytest.mark.parametrize(
    ("size", "slide", "lifetime", "given", "expected"),
    [
        pytest.param(4, 4, 1, "a @1, b @3, a @4", "a/0/4 4-5, b/0/4 4-5, a/4/8 8-9", id="at the end only"),
        pytest.param(4, 2, 1, "a @1", "a/-2/2 2-3, a/0/4 4-5", id="hop"),
        pytest.param(2, 5, 3, "a @1, b @2, d @5", "a/0/2 2-5, d/5/7 7-10", id="for a while"),
        pytest.param(4, 2, 2, "a @1", "a/-2/2 2-4, a/0/4 4-6", id="as long as without"),
    ],
)
def test_a_lifetime_says_how_long_a_window_is_shown(size, slide, lifetime, given, expected):
    answer = hop(size, slide, lifetime=lifetime).step(None, (changes(timeline(given)),), (5,))
    assert History.of(WINDOWED, [answer.delta]) == history(expected, WINDOWED)
    assert answer.frontier == hop(size, slide).step(None, (changes([]),), (5,)).frontier


def test_no_two_windows_are_shown_at_once():
    with pytest.raises(AssertionError, match="one window"):
        hop(4, 2, lifetime=3)


def test_the_window_is_what_a_row_counts_in_at_each_of_its_instants():
    source = n.Source("s", X)
    runner = by_hand({"q": n.HopWindow(source, 4, 2, time=pa.int64())})
    step = runner.tick({"s": changes(timeline("a 1-4, b 0-9, b 0-9>2"))}, {"s": INFINITY})["q"]
    expected = {
        (("a", -2, 2), 2, 4): 1,  # at 1
        (("a", 0, 4), 4, 6): 3,  # at 1, 2 and 3
        (("a", 2, 6), 6, 8): 2,  # at 2 and 3
        (("b", -2, 2), 2, 4): 2,
        (("b", 0, 4), 4, 6): 2,
    }
    assert {(row, s, e): w for row, s, e, w in History.of(WINDOWED, [step.delta]).delta().rows()} == expected


def test_every_instant_agrees_with_the_definition():
    rng = random.Random(3)
    for _ in range(60):
        size, slide, offset = rng.randint(1, 9), rng.randint(1, 9), rng.randint(-12, 12)
        base = rng.choice([0, -40, 1_700_000_000_000_000])
        raw = Counter((rng.choice("ab"), base + rng.randint(-9, 20)) for _ in range(rng.randint(0, 12)))
        step = copies(hop(size, slide, offset), [(x, t, w) for (x, t), w in raw.items()])
        answer = History.of(WINDOWED, [step.delta])
        for instant in range(base - 15, base + 50):
            shown = Counter()
            for k in range((instant - offset - size) // slide - 1, (instant - offset - size) // slide + 2):
                start = k * slide + offset
                for (x, t), w in raw.items():
                    if start + size <= instant < start + size + slide and start <= t < start + size:
                        shown[x, start, start + size] += w
            assert answer.snapshot(instant) == shown


def test_the_frontier_is_the_first_end_of_a_window_that_may_still_change():
    rng = random.Random(4)
    for _ in range(200):
        size, slide, offset = rng.randint(1, 9), rng.randint(1, 9), rng.randint(0, 12)
        frontier = rng.choice([0, -40, 10**15]) + rng.randint(-9, 9)
        operator = hop(size, slide, offset)
        later = copies(operator, [("a", t, 1) for t in range(frontier, frontier + size + slide)], frontier)
        assert later.frontier == later.delta.start.min()


def test_retractions_take_the_same_copies_away():
    operator = hop(6, 2)
    come, gone = (copies(operator, [("a", 3, w)]).delta for w in (2, -2))
    assert len(come) == 3
    assert len(Delta.concat(WINDOWED, [come, gone]).consolidate()) == 0


def test_a_window_that_would_end_at_the_end_of_time_is_never_reported():
    last = INFINITY - 1
    assert copies(hop(4, 4), [("a", last, 1)]).delta.rows() == []
    rows = copies(hop(10, 3), [("a", INFINITY - 9, 1)]).delta.rows()
    assert rows == [
        (("a", e - 10, e), e, min(e + 3, INFINITY), 1) for e in sorted((r[0][2] for r in rows), reverse=True)
    ]
    assert {e % 3 for (_, _, e), *_ in rows} == {10 % 3}
    assert [copies(hop(4, 4), [], f).frontier for f in (last, INFINITY - 9, INFINITY)] == [
        INFINITY,
        INFINITY - 7,
        INFINITY,
    ]


def test_a_window_that_begins_before_the_beginning_is_cut_off_there():
    rows = copies(hop(10, 10), [("a", BEGINNING + 1, 1)]).delta.rows()
    (((_, start, end), begins, *_),) = rows
    assert (start, begins) == (BEGINNING, end)
    assert end > BEGINNING + 1
    assert end % 10 == 0
    assert copies(hop(10, 10), [], BEGINNING).frontier == BEGINNING


def test_the_ends_are_timestamps_where_time_has_a_unit():
    operator = hop(60_000_000, 60_000_000, time=pa.timestamp("us"))
    ((row, start, end, _),) = copies(operator, [("a", 90_000_000, 1)]).delta.rows()
    assert row == ("a", datetime(1970, 1, 1, 0, 1), datetime(1970, 1, 1, 0, 2))
    assert (start, end) == (120_000_000, 180_000_000)
    assert operator.schema.types[1:] == (pa.timestamp("us"), pa.timestamp("us"))


def test_a_tumbling_window_copies_no_payload():
    delta = chronons([("abc", t, 1) for t in range(5)])
    out = hop(4, 4).step(None, (delta,), (0,)).delta
    assert out.columns[0].buffers()[2].address == delta.columns[0].buffers()[2].address


def test_elements_that_never_end_are_refused():
    tail = Delta.from_rows(X, [(("a",), 7, INFINITY, 1)])
    with pytest.raises(StreamError, match="never ends") as error:
        hop(4, 2).step(None, (tail,), (INFINITY,))
    assert error.value.code == "ENDLESS_HOPS"


def test_very_many_windows_are_refused():
    with pytest.raises(StreamError, match="3600000000 hopping windows") as error:
        copies(hop(3_600_000_000, 1), [("a", 7, 1)])
    assert error.value.code == "WINDOW_TOO_FINE"


COUNT = n.AggregateCall("COUNT", "n", pa.int64())


@pytest.mark.parametrize("speculative", [False, True])
@pytest.mark.parametrize(
    "given",
    [
        "a @1, a @2, b @3, a @5",
        "a @1, ~1, b @3, a @2, ~2, a @9, ~3, a @5, a 9-10>9, ~5",
        f"a @5, ~{BEGINNING}, b @3, a @1, a @2",
    ],
    ids=["at once", "in ticks", "late"],
)
def test_an_aggregate_gives_one_row_a_window_until_the_next_report(given, speculative):
    source = n.Source("s", X, chronons=True)
    window = n.HopWindow(source, 4, 2, time=pa.int64())
    plan = n.Aggregate(window, ("x", "window_start", "window_end"), (COUNT,))
    runner = by_hand({"q": plan}, speculative=speculative)
    out, arrived = [], []
    for element in [*timeline(given), Stable(INFINITY)]:
        if isinstance(element, Stable):
            out.append(runner.tick({"s": changes(arrived)}, {"s": element.at})["q"].delta)
            arrived = []
        else:
            arrived.append(element)
    expected = "a/-2/2/1 2-4, a/0/4/2 4-6, b/0/4/1 4-6, a/2/6/2 6-8, b/2/6/1 6-8, a/4/8/1 8-10"
    assert History.of(plan.schema, out) == history(expected, plan.schema)
