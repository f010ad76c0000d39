"""Stamps: the instant as a column."""

from __future__ import annotations

import pytest

from headwater.algebra import nodes as n
from headwater.errors import StreamError
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.rows.stamp import StampOperator
from headwater.runtime.stepping import by_hand
from headwater.testing.timeline import changes, history, timeline

X = Schema.of(x="STRING")
STAMPED = Schema.of(x="STRING", at="BIGINT")


def test_each_instant_is_its_own():
    step = StampOperator(X, "at").step(None, (changes(timeline("a @1, a @2, b @2")),), (7,))
    assert History.of(STAMPED, [step.delta]) == history("a/1 @1, a/2 @2, b/2 @2", STAMPED)
    assert step.frontier == 7


def test_an_interval_counts_at_each_of_its_instants():
    runner = by_hand({"q": n.Stamp(n.Source("s", X), "at")})
    step = runner.tick({"s": changes(timeline("a 1-4, b 0-9, b 0-9>2"))}, {"s": INFINITY})["q"]
    assert History.of(STAMPED, [step.delta]) == history("a/1 @1, a/2 @2, a/3 @3, b/0 @0, b/1 @1", STAMPED)


def test_what_never_ends_would_arrive_for_ever():
    runner = by_hand({"q": n.Stamp(n.Source("s", X), "at")})
    runner.tick({"s": changes(timeline("a 1-"))}, {"s": 5})
    with pytest.raises(StreamError, match="would arrive anew at every instant"):
        runner.tick({}, {"s": INFINITY})
