"""Granularity conversion."""

from __future__ import annotations

import random

import pytest

from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.rows.granularity import GranularityOperator

X = Schema.of(x="STRING")
S1 = [(("c",), 1, 8, 1), (("a",), 5, 11, 1), (("d",), 6, 14, 1), (("a",), 9, 10, 1), (("b",), 12, 17, 1)]
LOGICAL_S1 = ["c", "aaa", "aaab", "aaabc", "bb", "bb"]


def coarse(granule, rows):
    return GranularityOperator(X, granule).step(None, (Delta.from_rows(X, rows),), (INFINITY,)).delta


def test_table_20_2():
    shown = [(r[0], s, e) for r, s, e, w in coarse(2, S1).rows() if w == 1]
    assert shown == [("c", 2, 8), ("a", 6, 12), ("d", 6, 14), ("b", 12, 18)]


def test_table_20_1():
    rows = [((x,), t, t + 1, 1) for t, content in enumerate(LOGICAL_S1, start=1) for x in content]
    history = History.of(X, [coarse(2, rows)])
    assert ["".join(sorted(x for (x,) in history.snapshot(t).elements())) for t in (2, 4, 6)] == ["aaa", "aaabc", "bb"]


@pytest.mark.parametrize("granule", [1, 2, 7])
def test_answers_at_the_granules_are_exact_and_promises_hold(granule):
    rng = random.Random(granule)
    for _ in range(15):
        operator, checker, ours, theirs = GranularityOperator(X, granule), StreamValidator(X), [], []
        frontier, live = BEGINNING, []
        for _ in range(6):
            low = -20 if frontier == BEGINNING else frontier
            rows = [
                ((rng.choice("ab"),), s, s + rng.randint(1, 15), 1) for s in (low + rng.randint(0, 9) for _ in range(3))
            ]
            for i in rng.sample(range(len(live)), min(2, len(live))):
                row, start, end, _ = live[i]
                if end >= low:
                    live[i] = (row, start, max(low, start + 1) + rng.choice([0, 4, INFINITY - 100]), 1)
                    rows += [(row, start, end, -1), live[i]]
            live += rows[:3]
            frontier = low + rng.randint(0, 9)
            delta = Delta.from_rows(X, rows)
            step = operator.step(None, (delta,), (frontier,))
            checker.check_delta(step.delta, step.frontier)
            assert step.frontier == -(-frontier // granule) * granule
            ours.append(step.delta)
            theirs.append(delta)
        exact, rounded = History.of(X, theirs), History.of(X, ours)
        for instant in range(-20 // granule * granule, 80, granule):
            assert rounded.snapshot(instant) == exact.snapshot(instant)


def test_adjusting_inside_a_granule_changes_nothing():
    rows = [(("a",), 3, 15, -1), (("a",), 3, 17, 1)]
    assert len(coarse(10, rows)) == 0


def test_the_ends_of_time_stay():
    operator = GranularityOperator(X, 10)
    for frontier in (BEGINNING, INFINITY):
        assert operator.step(None, (Delta.empty(X),), (frontier,)).frontier == frontier
    late = INFINITY - 3
    assert [r[1:3] for r in coarse(10, [(("a",), -7, late, 1), (("b",), late, INFINITY, 1)]).rows()] == [(0, INFINITY)]
