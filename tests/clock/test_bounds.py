"""The algebra of bounds: canonical sets, step functions, composition and joins."""

from __future__ import annotations

import random

from headwater.clock.bounds import composed, is_at_least_as_tight, joined, lag_at, reduced, united


def _random_bounds(dice: random.Random):
    return reduced((dice.randint(0, 8), dice.randint(0, 9)) for _ in range(dice.randint(0, 4)))


def _worst(*lags: int | None) -> int | None:
    return None if None in lags else max(lags)


def test_the_join_of_the_digest():
    first, second = reduced([(1, 2), (3, 1)]), reduced([(0, 5), (2, 0)])
    assert joined(first, second) == ((1, 5), (2, 2), (3, 1))
    assert joined(first, ()) == ()


def test_canonical_sets_grow_in_delay_and_fall_in_lag():
    assert reduced([(3, 1), (1, 2), (1, 4), (5, 1), (4, 3)]) == ((1, 2), (3, 1))
    assert reduced([]) == ()


def test_operations_are_those_of_step_functions():
    dice = random.Random(1)
    for _ in range(500):
        a, b = _random_bounds(dice), _random_bounds(dice)
        for t in range(20):
            f, g = lag_at(a, t), lag_at(b, t)
            assert lag_at(united(a, b), t) == min((x for x in (f, g) if x is not None), default=None)
            assert lag_at(joined(a, b), t) == _worst(f, g)
            sums = [
                lag_at(a, u) + lag_at(b, t - u)
                for u in range(t + 1)
                if lag_at(a, u) is not None and lag_at(b, t - u) is not None
            ]
            assert lag_at(composed(a, b), t) == min(sums, default=None)


def test_tighter_is_pointwise():
    dice = random.Random(2)
    for _ in range(500):
        a, b = _random_bounds(dice), _random_bounds(dice)
        pairs = [(lag_at(a, t), lag_at(b, t)) for t in range(20)]
        assert is_at_least_as_tight(a, b) == all(g is None or (f is not None and f <= g) for f, g in pairs)
