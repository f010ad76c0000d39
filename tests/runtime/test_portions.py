"""Large ticks in portions: cut at the same instants on every edge, and the answers stay what they are."""

from __future__ import annotations

import numpy as np

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.runtime.portions import portions
from headwater.runtime.tick import Made

SCHEMA = Schema.of(x="BIGINT")


def delta(starts: list[int]) -> Delta:
    return Delta.from_rows(SCHEMA, [((i,), s, s + 5, 1) for i, s in enumerate(starts)])


def test_a_small_tick_is_one_portion():
    arrived = {0: Made(delta([3, 1, 2]), 2, 2)}
    ((same, until),) = portions(arrived, 10)
    assert same == arrived
    assert until == INFINITY


def test_rows_come_in_the_order_of_time_and_none_is_lost():
    rng = np.random.default_rng(7)
    arrived = {e: Made(delta(rng.integers(0, 100, 400).tolist()), f, f) for e, f in ((0, 60), (1, INFINITY))}
    before, rows = -1, {0: 0, 1: 0}
    for portion, until in portions(arrived, 50):
        for edge, step in portion.items():
            assert all(before <= s < until for s in step.delta.start.tolist())
            assert step.frontier == min(arrived[edge].frontier, until)
            rows[edge] += len(step.delta)
        before = until
    assert rows == {0: 400, 1: 400}
    assert before == INFINITY


def test_a_tick_of_one_instant_cannot_be_cut():
    assert len(list(portions({0: Made(delta([4] * 100), 4, 4)}, 10))) <= 2
