"""Estimates of plans in which nearly nothing happens."""

from __future__ import annotations

import math

from headwater.optimizer.cost import Estimator, Statistics, StreamStatistics
from headwater.testing.plan_text import parse_plan


def test_streams_that_hardly_ever_meet_have_a_cost():
    plan = parse_plan(
        'inner join on "k" = "rk"\n  source s (k BIGINT) chronons final\n  source t (rk BIGINT) chronons final'
    )
    for rate in (1.0, 1e-12, 1e-160, 1e-200, 0.0):
        known = Statistics({"s": StreamStatistics(rate=rate), "t": StreamStatistics(rate=rate)})
        assert math.isfinite(Estimator(known).cost(plan))
