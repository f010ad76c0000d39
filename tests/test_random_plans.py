"""Random plans, three to five operators deep, over streams with disorder and retractions, against the oracle."""

from __future__ import annotations

import pytest

from headwater.testing.cases import campaign, plan_cases, scaled

PIECES = 50
SLOW_PLANS = 5000


@pytest.mark.parametrize("piece", range(10))
def test_random_plans(piece: int):
    plans = scaled(15)
    campaign(plan_cases(piece * plans), plans)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
def test_many_random_plans(piece: int):
    plans = scaled(SLOW_PLANS // PIECES)
    campaign(plan_cases(100_000 + piece * plans), plans)
