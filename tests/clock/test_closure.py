"""Chains of bounds."""

from __future__ import annotations

import itertools
import random
from functools import reduce

from tests.clock.worlds import random_matrix

from headwater.clock.bounds import Bound, composed, reduced
from headwater.clock.closure import closure, product

CHAIN = {(1, 2): ((1, 1),), (1, 3): ((1, 3),), (2, 3): ((1, 1),)}


def _bounds(matrix):
    return {entry: reduced(bounds) for entry, bounds in matrix.items()}


def test_a_chain_gives_another_pair():
    assert closure(_bounds(CHAIN)) == {**_bounds(CHAIN), (1, 3): ((1, 3), (2, 2))}


def test_cycles_count_on_the_diagonal():
    found = closure(_bounds({(1, 2): [(1, 1)], (2, 1): [(2, 3)]}))
    assert found[1, 1] == found[2, 2] == ((3, 4),)
    ring = closure({(i, (i + 1) % 4): reduced([(1, 1)]) for i in range(4)})
    assert all(ring[i, i] == ((4, 4),) for i in range(4))


def test_the_closure_is_the_power_n_and_the_sum_over_all_simple_paths():
    dice = random.Random(3)
    for _ in range(150):
        n = dice.randint(2, 4)
        matrix = {e: b for e, b in random_matrix(dice, n, delay=4, lag=4, share=0.6).items() if dice.random() < 0.7}
        found = closure(matrix)
        power = reduce(lambda m, _: product(m, matrix), range(n - 1), matrix)
        assert power == found
        for i, j in itertools.product(range(n), repeat=2):
            assert found.get((i, j), ()) == _by_paths(matrix, n, i, j)


def _by_paths(matrix, n, i, j):
    others = [k for k in range(n) if k not in {i, j}]
    paths = [p for m in range(len(others) + 1) for p in itertools.permutations(others, m)]
    found: list[Bound] = []
    for path in paths:
        stations = [i, *path, j]
        steps = [matrix.get(step, ()) for step in itertools.pairwise(stations)]
        found += reduce(composed, steps)
    return reduced(found)


def test_counters_and_plain_sensors_are_idempotent_but_not_sensors_with_a_rate_of_their_own():
    dice = random.Random(4)
    gained = 0
    for _ in range(200):
        n = dice.randint(2, 4)
        low = [dice.randint(0, 9) for _ in range(n)]
        high = [a + dice.randint(0, 9) for a in low]
        deviation, rate = [dice.randint(0, 6) for _ in range(n)], [dice.randint(1, 4) for _ in range(n)]
        pairs = list(itertools.product(range(n), repeat=2))
        counter = {(i, j): reduced([(0 if i == j else max(high[j] - low[i], 0), 0)]) for i, j in pairs}
        lags = {(i, j): deviation[i] + (deviation[j] if i != j else 0) + 1 for i, j in pairs}
        sensors = {e: reduced([(0, lag)]) for e, lag in lags.items()}
        assert closure(counter) == counter
        assert closure(sensors) == sensors
        rated = {(i, j): reduced([(0, lags[i, j]), (-(-lags[i, j] // rate[j]), 0)]) for i, j in pairs}
        gained += closure(rated) != rated
    assert gained > 50
