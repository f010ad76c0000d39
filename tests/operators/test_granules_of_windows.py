"""A granularity above hopping windows, in the speculative form: a case that random plans have found."""

from __future__ import annotations

import pytest

from headwater.algebra import nodes as n
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.runtime.stepping import by_hand

ROWS = Schema.of(k="STRING")


@pytest.mark.xfail(reason="the row is not shown before its granule is over, though its window has ended")
def test_a_window_that_ends_with_a_granule_is_shown_at_once():
    windows = n.HopWindow(n.Source("u", ROWS, chronons=True), 1, 1, lifetime=1)
    runner = by_hand({"q": n.Granularity(windows, 3)}, speculative=True)
    step = runner.tick({"u": Delta.from_rows(ROWS, [(("a",), 11, 12, 1)])}, {})["q"]
    assert [(row[0], start) for row, start, *_ in step.delta.rows()] == [("a", 12)]
