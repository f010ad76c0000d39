"""Counts of events become frontiers, whatever the order in which both come."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest

from headwater.clock.counted import Counted
from headwater.errors import StreamError
from headwater.model.time import BEGINNING


def test_golden_a_3():
    """CEDR table 5 with half-open intervals: the retraction at 8 is outside, so the count is 4 (erratum 12)."""
    clock = Counted()
    for sync in (8, 4, 6, 0):
        clock = clock.after((), [(sync, 1)])
        assert clock.frontier == BEGINNING
    clock = clock.after([(0, 8, 4)], ())
    assert clock.frontier == BEGINNING
    clock = clock.after((), [(1, 1)])
    assert clock.frontier == 8
    assert clock.received == ((8, 1),)
    assert clock.intervals == ()


def test_an_interval_waits_for_the_one_before_it():
    """CEDR erratum 14: I(6,9) EXT(5,8,1) I(1,4) EXT(0,5,1)."""
    clock = Counted().after((), [(6, 1)]).after([(5, 8, 1)], ())
    assert clock.frontier == BEGINNING
    clock = clock.after((), [(1, 1)])
    assert clock.frontier == BEGINNING
    assert clock.after([(0, 5, 1)], ()).frontier == 8


def test_a_later_interval_that_was_complete_fires_when_it_becomes_the_first():
    clock = Counted().after([(0, 5, 1)], ()).after([(5, 8, 1)], ()).after((), [(6, 1)])
    assert clock.frontier == BEGINNING
    assert clock.after((), [(1, 1)]).frontier == 8


def test_an_interval_without_events_is_complete_at_once():
    assert Counted().after([(0, 5, 0)], ()).frontier == 5


def test_an_end_that_changes_later_counts_where_it_is_felt():
    """I(0,10) EXT(0,5,1) R(0,10->7): the retraction is at 7, after the frontier (erratum 13)."""
    clock = Counted().after((), [(0, 1)]).after([(0, 5, 1)], ())
    assert clock.frontier == 5
    assert clock.after((), [(7, 1)]).received == ((7, 1),)


def test_what_comes_too_late_is_not_counted():
    clock = Counted().after([(0, 5, 1)], [(1, 1)])
    late = clock.after([(0, 5, 1)], [(2, 1)])
    assert (late.frontier, late.received, late.intervals) == (5, (), ())


@pytest.mark.parametrize("seed", range(200))
def test_every_order_comes_to_the_same_and_never_lies(seed: int):
    chance = random.Random(seed)
    bounds = sorted({0, *(chance.randrange(1, 60) for _ in range(chance.randrange(1, 6)))})
    events = [chance.randrange(0, 65) for _ in range(chance.randrange(0, 40))]
    spans = list(pairwise(bounds))
    told = [("count", (a, b, sum(a <= e < b for e in events))) for a, b in spans] + [("event", e) for e in events]
    chance.shuffle(told)
    clock, open_ = Counted(), list(events)
    while told:
        cut = chance.randrange(1, 6)
        now, told = told[:cut], told[cut:]
        syncs = [(what, 1) for kind, what in now if kind == "event"]
        before = clock.frontier
        assert all(sync >= before for sync, _ in syncs), "a frontier was a lie"
        clock = clock.after([what for kind, what in now if kind == "count"], syncs)
        clock = Counted.from_manifest(json.loads(json.dumps(clock.to_manifest())))
        assert clock.frontier >= before
        for sync, _ in syncs:
            open_.remove(sync)
    assert clock.frontier == (bounds[-1] if len(bounds) > 1 else BEGINNING)
    assert sum(n for _, n in clock.received) == sum(e >= bounds[-1] for e in events)


def test_counts_must_not_contradict_each_other():
    with pytest.raises(StreamError, match=r"OVERLAPPING_COUNTS: the counts of \[0, 5\) and \[4, 8\) overlap"):
        Counted().after([(0, 5, 1), (4, 8, 1)], ())
    with pytest.raises(StreamError, match=r"MISCOUNTED: more events came than there are in \[0, 5\)"):
        Counted().after([(0, 5, 1)], [(1, 1), (2, 1)])
