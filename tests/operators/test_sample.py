"""Samples: tables by hand, every instant against the definition, what is shown when, both ends of time."""

from __future__ import annotations

import random

import pytest

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.rows.sample import SampleOperator
from headwater.state.store import MemoryStore
from headwater.testing.timeline import changes, history, timeline

X = Schema.of(x="STRING")


@pytest.mark.parametrize(
    ("period", "offset", "given", "expected"),
    [
        pytest.param(4, 3, "a 1-12, b 4-6", "a @3, a @7, a @11", id="refreshes"),
        pytest.param(4, -1, "a 1-12, b 4-6", "a @3, a @7, a @11", id="offsets repeat with the period"),
        pytest.param(3, 0, "a 3-7, b 4-6, c @6", "a @3, a @6, c @6", id="the end is not in the interval"),
        pytest.param(1, 0, "a 2-5", "a 2-5", id="every instant"),
        pytest.param(5, 2, "a -9-9", "a @-8, a @-3, a @2, a @7", id="before zero"),
        pytest.param(2, 1, "a 0-6, a 2-4, b 0-9, b 0-9>2", "a @1, a @3, a @3, a @5, b @1", id="copies and adjusts"),
    ],
)
def test_tables(period, offset, given, expected):
    operator = SampleOperator(X, period, offset)
    step = operator.step(operator.new_state(MemoryStore()), (changes(timeline(given)),), (INFINITY,))
    assert History.of(X, [step.delta]) == history(expected)


class Ticks:
    """Steps of one operator, each shown as text."""

    def __init__(self, *, speculative: bool = False) -> None:
        self.operator = SampleOperator(X, 4, 3, speculative=speculative)
        self.state = self.operator.new_state(MemoryStore())

    def __call__(self, rows: list, frontier: int, reached: int = BEGINNING) -> tuple[str, int]:
        step = self.operator.step(self.state, (Delta.from_rows(X, rows),), (frontier,), reached)
        return " ".join(sorted(f"{r[0]}{s}{w:+d}" for r, s, _, w in step.delta.rows())), step.frontier


def test_an_instant_is_shown_when_the_frontier_has_passed_it():
    tick = Ticks()
    assert tick([(("a",), 1, INFINITY, 1)], 3) == ("", 3)
    assert tick([], 4) == ("a3+1", 7)
    assert tick([(("b",), 5, 9, 1)], 7) == ("", 7)
    assert tick([(("a",), 1, INFINITY, -1), (("a",), 1, 10, 1)], 13) == ("a7+1 b7+1", 15)
    assert (tick.state.rows, tick.state.bytes) == (0, 0)


def test_speculation_shows_how_far_time_has_come_and_repairs():
    tick = Ticks(speculative=True)
    assert tick([(("a",), 1, INFINITY, 1)], 0, reached=8) == ("a3+1 a7+1", 3)
    assert tick([], 4, reached=11) == ("a11+1", 7)
    assert tick([(("a",), 1, INFINITY, -1), (("a",), 1, 5, 1)], 4, reached=11) == ("a11-1 a7-1", 7)
    assert tick([], INFINITY) == ("", INFINITY)
    assert tick.state.rows == 0


def test_every_instant_agrees_with_the_definition():
    rng = random.Random(5)
    for _ in range(60):
        period, offset = rng.randint(1, 7), rng.randint(-9, 9)
        operator = SampleOperator(X, period, offset)
        state, given, shown = operator.new_state(MemoryStore()), [], []
        for low, frontier in ((-20, -5), (-5, -5), (-5, 3), (3, INFINITY)):
            starts = (low + rng.randint(0, 12) for _ in range(3))
            given.append(Delta.from_rows(X, [((rng.choice("ab"),), s, s + rng.randint(1, 20), 1) for s in starts]))
            shown.append(operator.step(state, (given[-1],), (frontier,)).delta)
        answer, exact = History.of(X, shown), History.of(X, given)
        for instant in range(-25, 45):
            expected = exact.snapshot(instant) if (instant - offset) % period == 0 else {}
            assert answer.snapshot(instant) == expected
        assert state.rows == 0


def test_what_never_ends_is_shown_until_nothing_new_can_be_seen():
    operator = SampleOperator(X, 4, 3, delay=2)
    state = operator.new_state(MemoryStore())
    operator.step(state, (Delta.from_rows(X, [(("a",), 1, INFINITY, 1)]),), (4,))
    # What follows from a row at 10 has begun by 12, so the last look is at 15.
    step = operator.step(state, (Delta.empty(X),), (INFINITY,), 10)
    assert sorted(start for _, start, _, _ in step.delta.rows()) == [7, 11, 15]
    assert (step.frontier, state.rows) == (INFINITY, 0)


def test_too_many_instants_at_once_are_refused():
    operator = SampleOperator(X, 1)
    delta = Delta.from_rows(X, [(("a",), 0, 10**12, 1)])
    with pytest.raises(StreamError, match="1000000000000 rows at once"):
        operator.step(operator.new_state(MemoryStore()), (delta,), (10**12,))


def test_the_ends_of_time():
    operator = SampleOperator(X, 10, 9)
    state = operator.new_state(MemoryStore())
    rows = [(("a",), BEGINNING + 1, BEGINNING + 20, 1), (("b",), INFINITY - 20, INFINITY - 1, 1)]
    answer = operator.step(state, (Delta.from_rows(X, rows),), (INFINITY,)).delta
    assert [(r[0], s % 10) for r, s, _, _ in answer.rows()] == [("a", 9), ("a", 9), ("b", 9), ("b", 9)]
