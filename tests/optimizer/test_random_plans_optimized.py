"""Random plans of every operator: optimized, with all rules and without each of those that took part, they mean the same."""

from __future__ import annotations

import pytest

from headwater.algebra.plan_text import print_plan
from headwater.testing import plans
from headwater.testing.cases import fresh, scaled
from headwater.testing.checks import CheckError
from headwater.testing.choices import Dice
from headwater.testing.equivalence import check_equivalent
from headwater.testing.sql_checks import variants

PIECES, PLANS = 4, 20
SLOW_PIECES, SLOW_PLANS = 12, 30


def check(seed: int) -> None:
    dice = Dice(seed, 7)
    plan = plans.plan(dice, depth=dice.integer(3, 6))
    for name, other in variants(plan):
        try:
            check_equivalent(plan, other, 3, first=seed * 10, run=name == "optimized")
        except CheckError as failure:
            raise CheckError(
                f"seed {seed}, {name}\n{print_plan(plan)}\n\n{print_plan(other)}\n\n{failure}"
            ) from failure


@pytest.mark.parametrize("piece", range(PIECES))
def test_random_plans_keep_their_meaning(piece: int):
    count = scaled(PLANS)
    for seed in range(piece * count, (piece + 1) * count):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(SLOW_PIECES))
def test_many_random_plans_keep_their_meaning(piece: int):
    count = scaled(SLOW_PLANS)
    for seed in range(50_000 + piece * count, 50_000 + (piece + 1) * count):
        check(fresh(seed))
