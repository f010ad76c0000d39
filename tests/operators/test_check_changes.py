"""A change must find what it changes, in its own tick or an earlier one."""

from __future__ import annotations

import pytest

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.tables.check_changes import CheckChangesOperator
from headwater.state.store import MemoryStore

SCHEMA = Schema.of(x="INT", y="STRING")


class Run:
    def __init__(self) -> None:
        self._operator = CheckChangesOperator(SCHEMA, "s")
        self.state = self._operator.new_state(MemoryStore())

    def step(self, *rows: tuple, frontier: int = BEGINNING) -> list[tuple]:
        delta = Delta.from_rows(SCHEMA, rows)
        result = self._operator.step(self.state, (delta,), (frontier,))
        assert result.frontier == frontier
        return sorted(result.delta.rows())


A, B = (1, "a"), (2, "b")


def test_changes_of_what_is_there_pass_as_they_are():
    run = Run()
    assert run.step((A, 0, 10, 1), (A, 0, 10, 1)) == [(A, 0, 10, 2)]
    assert run.step((A, 0, 10, -1), (A, 0, 8, 1)) == [(A, 0, 8, 1), (A, 0, 10, -1)]
    assert run.step((A, 0, 8, -1), (A, 0, 10, -1)) == [(A, 0, 8, -1), (A, 0, 10, -1)]
    assert run.step((B, 3, 5, 1), (B, 3, 5, -1)) == []
    assert run.step(frontier=INFINITY) == []
    assert run.state.rows == 0


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(B, 0, 10, -1)], "(x=2, y='b') in [0, 10)"),
        ([(A, 0, 9, -1)], "(x=1, y='a') in [0, 9)"),
        ([(A, 1, INFINITY, -1), (A, 1, 7, 1)], "(x=1, y='a') in [1, infinity)"),
        ([(A, 0, 10, -2)], "(x=1, y='a') in [0, 10)"),
    ],
)
def test_a_change_of_what_is_not_there_is_told_with_its_row(rows: list, told: str):
    run = Run()
    run.step((A, 0, 10, 1))
    with pytest.raises(StreamError) as caught:
        run.step(*rows)
    assert caught.value.code == "UNKNOWN_RETRACTION"
    assert caught.value.message == f'stream "s" changes a row that is not there: {told}'


def test_rows_that_have_ended_are_forgotten():
    run = Run()
    run.step((A, 0, 10, 1), (B, 0, INFINITY, 1))
    run.step(frontier=11)
    assert run.state.rows == 1
