"""Heartbeats against all worlds that are possible: on tiny systems the largest true value is found by trying everything.

Under bounds between clocks (a closed matrix) the clock always gives the largest value that can be inferred; under bounds
between rows it is sound, and nearly so (digest 5, E3); with chains of these it would be false (digest E2).
"""

from __future__ import annotations

import itertools
import random

import pytest
from tests.clock.worlds import heartbeats, late, random_matrix, rules_from, seen

from headwater.clock.clock import Clock
from headwater.clock.closure import closure
from headwater.testing.cases import fresh

LATEST = 6
"""Times are 0 to 6."""
INSTANTS = 9
Sent = tuple[int, int, int]
"""(stream, instant of sending, time)."""


def _allows(matrix, first: Sent, second: Sent) -> bool:
    """Does the first row allow the second one?"""
    return all(
        second[1] <= first[1] + after or second[2] > first[2] - lag
        for after, lag in matrix.get((first[0], second[0]), ())
    )


def _fits(matrix, row: Sent, others: list[Sent]) -> bool:
    return all(_allows(matrix, row, o) and _allows(matrix, o, row) for o in others)


def _sent_rows(dice, matrix, n) -> list[Sent]:
    rows: list[Sent] = []
    for now in range(5):
        for i in dice.sample(range(n), n):
            if dice.random() < 0.45:
                times = [t for t in range(LATEST + 1) if _fits(matrix, (i, now, t), rows)]
                rows += [(i, now, dice.choice(times))] if times else []
    return rows


def _largest_heartbeat(matrix, latencies, arrived, now, stream, longest) -> int:
    """One less than the smallest time that an adversary may still let arrive, over all that may have been sent when."""
    smallest = LATEST + 1
    for delays in itertools.product(*(range(min(latencies[s], at) + 1) for at, s, _ in arrived)):
        rows = [(s, at - delay, ts) for (at, s, ts), delay in zip(arrived, delays, strict=True)]
        if not all(_allows(matrix, a, b) for a in rows for b in rows if a is not b):
            continue
        for sent in range(max(0, now - latencies[stream] + 1), now + longest + 2):
            smallest = next((t for t in range(smallest) if _fits(matrix, (stream, sent, t), rows)), smallest)
    return smallest - 1


def _tried(dice, n, *, clocks: bool, chains: bool) -> tuple[int, int, int]:
    """(values compared, values that are too large, values that are the largest)."""
    matrix = random_matrix(dice, n, delay=2, lag=3, share=0.8)
    closed = closure(matrix)
    world = closed if clocks else matrix
    latencies = [dice.randint(0, 2) for _ in range(n)]
    rows = _sent_rows(dice, world, n)
    if len(rows) > 5:
        return 0, 0, 0
    arrivals = sorted((at + dice.randint(0, latencies[s]), s, ts) for s, at, ts in rows)
    longest = max(after for bounds in closed.values() for after, _ in bounds)
    clock = Clock.of(rules_from(closed if chains else matrix, latencies))
    found = [0, 0, 0]
    for now in range(INSTANTS):
        clock = clock.after(seen([(s, ts) for at, s, ts in arrivals if at == now], clock), now)
        arrived = [a for a in arrivals if a[0] <= now]
        for stream, value in enumerate(heartbeats(clock)):
            truth = _largest_heartbeat(world, latencies, arrived, now, stream, longest)
            found = [found[0] + 1, found[1] + (value > truth), found[2] + (value == truth)]
    if clocks or not chains:
        assert late(clock) == 0
    return tuple(found)


def _campaign(seed: int, worlds: int, n: int, **kind) -> tuple[int, int, int]:
    dice = random.Random(seed)
    return tuple(map(sum, zip(*(_tried(dice, n, **kind) for _ in range(worlds)), strict=True)))


def _check(n: int, worlds: int, seed: int) -> None:
    compared, false, largest = _campaign(seed, worlds, n, clocks=True, chains=True)
    assert compared > 5 * worlds
    assert (false, largest) == (0, compared), "bounds between clocks: exactly the largest"
    compared, false, largest = _campaign(seed + 1, worlds, n, clocks=False, chains=False)
    assert false == 0, "bounds between rows: sound"
    assert largest >= 0.99 * compared, "bounds between rows: nearly the largest"


@pytest.mark.parametrize(("n", "worlds"), [(1, 60), (2, 40), (3, 12)])
def test_heartbeats_are_the_largest_that_can_be_inferred(n, worlds):
    _check(n, worlds, 7 * n)


def test_chains_of_bounds_between_rows_would_be_false():
    assert _campaign(8, 60, 2, clocks=False, chains=True)[1] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("n", "worlds"), [(1, 1500), (2, 800), (3, 200)])
def test_heartbeats_are_the_largest_in_many_worlds(n, worlds):
    _check(n, worlds, fresh(7 * n))
