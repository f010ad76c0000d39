"""Rows pass when they begin, and get their ends when these are final; what is taken back before that is never seen."""

from __future__ import annotations

import pytest

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.waiting.align_starts import AlignStartsOperator, AlignStartsState
from headwater.state.store import MemoryStore

X = Schema.of(x="STRING")
Rows = list[tuple[str, int, int, int]]


def step(operator: AlignStartsOperator, state: AlignStartsState, rows: Rows, frontier: int) -> Rows:
    delta = Delta.from_rows(X, [((x,), start, end, weight) for x, start, end, weight in rows])
    out = operator.step(state, (delta,), (frontier,))
    assert out.frontier == frontier, "nothing is held back"
    return sorted((str(row[0]), start, end, weight) for row, start, end, weight in out.delta.rows())


@pytest.fixture
def running() -> tuple[AlignStartsOperator, AlignStartsState]:
    operator = AlignStartsOperator(X)
    return operator, operator.new_state(MemoryStore())


def test_one_insert_and_one_adjust(running):
    assert step(*running, [("a", 3, 9, 1)], 3) == [], "at the frontier a row may still go"
    assert step(*running, [], 4) == [("a", 3, INFINITY, 1)]
    assert step(*running, [("a", 3, 9, -1), ("a", 3, 7, 1)], 7) == [], "at the frontier an end may still move"
    assert step(*running, [], 8) == [("a", 3, 7, 1), ("a", 3, INFINITY, -1)]
    assert step(*running, [], 10) == [], "the end that it did not get has passed too"
    assert running[1].rows == 0


def test_both_ends_at_once_are_one_row(running):
    assert step(*running, [("a", 3, 5, 2), ("a", 3, INFINITY, 1)], 6) == [("a", 3, 5, 2), ("a", 3, INFINITY, 1)]


def test_what_is_taken_back_in_time_is_never_seen(running):
    assert step(*running, [("a", 3, 9, 1), ("b", 3, 9, 1)], 2) == []
    assert step(*running, [("a", 3, 9, -1)], 20) == [("b", 3, 9, 1)]


def test_opened_it_lets_everything_pass_as_it_is(running):
    _, state = running
    step(*running, [("a", 3, 9, 1), ("b", 6, 8, 1)], 5)
    opened = AlignStartsOperator(X, opened=True)
    ends = [("a", 3, 9, 1), ("a", 3, INFINITY, -1), ("b", 6, 8, 1)]
    assert step(opened, state, [("c", 9, 10, 1)], 5) == [*ends, ("c", 9, 10, 1)]
    assert state.rows == 0
