"""Time windows: tables of the thesis, rounding, infinite tails."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.windows.time_window import TimeWindowOperator

X = Schema.of(x="STRING")


def widened(size, slide, rows, frontier=INFINITY):
    return TimeWindowOperator(X, size, slide).step(None, (Delta.from_rows(X, rows),), (frontier,))


def chronons(text):
    return [((e[0],), int(e[1:]), int(e[1:]) + 1, 1) for e in text.split()]


def shown(delta):
    return " ".join(f"{r[0]}[{s},{'∞' if e == INFINITY else e}){'' if w == 1 else w}" for r, s, e, w in delta.rows())


S3 = chronons("b1 a3 c4 a7 b10")
LOGICAL_S1 = chronons("c1 a2 a2 a2 a3 a3 a3 b3 a4 a4 a4 b4 c4 b5 b5 b6 b6")


@pytest.mark.parametrize(
    ("size", "slide", "expected"),
    [
        (50, 1, "b[1,51) a[3,53) c[4,54) a[7,57) b[10,60)"),  # Table 11.11
        (50, 10, "b[9,59) a[9,59) c[9,59) a[9,59) b[19,69)"),  # Table 17.1
        (1, 1, "b[1,2) a[3,4) c[4,5) a[7,8) b[10,11)"),
        (INFINITY, 1, "b[1,∞) a[3,∞) c[4,∞) a[7,∞) b[10,∞)"),
        (INFINITY, 10, "b[9,∞) a[9,∞) c[9,∞) a[9,∞) b[19,∞)"),
        (1, 4, "a[3,7) a[7,11)"),  # what no slide sees is gone
    ],
)
def test_physical_tables(size, slide, expected):
    assert shown(widened(size, slide, S3).delta) == expected


@pytest.mark.parametrize(
    ("size", "slide", "expected"),
    [
        (2, 1, ["c", "aaac", "aaaaaab", "aaaaaabbc", "aaabbbc", "bbbb", "bb", ""]),  # Table 8.10
        (3, 2, ["c", "c", "aaaaaabc", "aaaaaabc", "aaaaaabbbbc", "aaaaaabbbbc", "bbbb", "bbbb", ""]),  # 13.1
    ],
)
def test_logical_tables(size, slide, expected):
    history = History.of(X, [widened(size, slide, LOGICAL_S1).delta])
    assert [
        "".join(sorted(x for (x,) in history.snapshot(t).elements())) for t in range(1, len(expected) + 1)
    ] == expected


def test_every_instant_agrees_with_the_definition():
    rng = random.Random(1)
    for _ in range(40):
        size, slide, base = rng.randint(1, 12), rng.randint(1, 9), rng.choice([0, -30, 10**6])
        raw = Counter((rng.choice("ab"), base + rng.randint(-9, 20)) for _ in range(rng.randint(0, 12)))
        step = widened(size, slide, [((x,), t, t + 1, n) for (x, t), n in raw.items()])
        history = History.of(X, [step.delta])
        for instant in range(base - 15, base + 45):
            last = (instant + 1) // slide * slide - 1  # eq. 17.1 without its cut at 0
            expected = Counter()
            for (x, t), n in raw.items():
                if last - size < t <= last:
                    expected[(x,)] += n
            assert history.snapshot(instant) == expected


def test_a_retraction_maps_like_its_insertion():
    rows = [*chronons("a3 b5"), (("a",), 3, 4, -1)]
    assert History.of(X, [widened(7, 3, rows).delta]) == History.of(X, [widened(7, 3, chronons("b5")).delta])


@pytest.mark.parametrize("slide", [1, 2, 7])
def test_the_frontier_is_where_the_next_element_can_begin(slide):
    rng = random.Random(slide)
    for _ in range(40):
        operator, checker, frontier = TimeWindowOperator(X, rng.randint(1, 9), slide), StreamValidator(X), -20
        for _ in range(6):
            rows = [(("a",), t, t + 1, 1) for t in (frontier + rng.randint(0, 9) for _ in range(3))]
            frontier += rng.randint(0, 9)
            step = operator.step(None, (Delta.from_rows(X, rows),), (frontier,))
            checker.check_delta(step.delta, step.frontier)
            assert frontier <= step.frontier < frontier + slide
            assert (step.frontier + 1) % slide == 0


def test_the_ends_of_time_stay():
    operator = TimeWindowOperator(X, 5, 10)
    for frontier in (BEGINNING, INFINITY):
        assert operator.step(None, (Delta.empty(X),), (frontier,)).frontier == frontier
    late = INFINITY - 3
    assert shown(operator.step(None, (Delta.from_rows(X, [(("a",), late, late + 1, 1)]),), (0,)).delta) == ""
    assert shown(widened(5, 1, [(("a",), late, late + 1, 1)]).delta) == f"a[{late},∞)"
    assert shown(widened(5, 1, [(("a",), INFINITY - 1, INFINITY, 1)]).delta) == f"a[{INFINITY - 1},∞)"


def test_an_endless_tail_fills_the_window():
    rng = random.Random(5)
    for _ in range(60):
        size, slide, begin = rng.randint(1, 12), rng.randint(1, 9), rng.randint(-12, 12)
        history = History.of(X, [widened(size, slide, [(("a",), begin, INFINITY, 2), *chronons("b3")]).delta])
        pieces = [(("a",), t, t + 1, 2) for t in range(begin, begin + 60)]
        expected = History.of(X, [widened(size, slide, [*pieces, *chronons("b3")]).delta])
        horizon = begin + 60
        assert history.until(horizon - 10) == expected.until(horizon - 10)
        assert history.snapshot(INFINITY - 1) == {("a",): 2 * size}


@pytest.mark.parametrize(
    ("size", "slide", "code"), [(INFINITY, 1, "UNBOUNDED_MULTIPLICITY"), (10**7, 1, "WINDOW_TOO_FINE")]
)
def test_windows_that_an_endless_tail_never_fills_are_refused(size, slide, code):
    with pytest.raises(StreamError) as error:
        widened(size, slide, [(("a",), 0, INFINITY, 1)])
    assert error.value.code == code
    assert shown(widened(10**7, 10**7, [(("a",), 0, INFINITY, 1)]).delta) == f"a[{10**7 - 1},∞){10**7}"
