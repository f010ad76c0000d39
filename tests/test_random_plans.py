"""Random plans, three to five operators deep, over streams with disorder and retractions, against the oracle."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from headwater.testing import strategies
from headwater.testing.cases import campaign, fresh, plan_cases, scaled
from headwater.testing.checks import check_case
from headwater.testing.generate import Case

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
    campaign(plan_cases(fresh(100_000 + piece * plans)), plans)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(strategies.cases(depth=2))
def test_plans_that_hypothesis_draws(case: Case):
    check_case(case.plan, case.streams, case.seed, thorough=False)
