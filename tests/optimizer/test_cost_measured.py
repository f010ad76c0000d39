"""Estimates beside what plans do when they run: Poisson streams, as the cost model assumes them.

Rates, elements alive and rows of state lie within a factor of two of the estimates, one by one, and most of them within a
tenth.
"""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

_spec = spec_from_file_location("measured", Path(__file__).with_name("measured.py"))
assert _spec is not None
assert _spec.loader is not None
measured = module_from_spec(_spec)
_spec.loader.exec_module(measured)

FACTOR = 2.0
ENOUGH = 100
"""Elements to count before a rate says anything."""
QUICK = ["inner", "count per key", "hop count", "distinct pairs", "except all", "anti", "rows per key", "top per key"]
SEEDS = 12
FAR_OFF = ("left", "right", "full", "filters", "split", "top", "top per key", "ranked")
"""Outer joins keep less than all pairs, ORs are not independent, and last pieces of a split are short."""


def deviations(shape: str, seed: int) -> dict[str, float]:
    """Measured over estimated: the rate, the elements alive, and the state; only where there is enough to see."""
    plan, streams, span = measured.random_case(shape, seed)
    found = measured.measure(plan, streams, span, seed)
    root, state = found.estimates.root, found.estimates.cost.state.rows
    ratios = {}
    expected = root.rate * found.span
    if min(found.rows, expected) < ENOUGH:
        assert max(found.rows, expected) < 5 * ENOUGH
    else:
        ratios["rate"] = found.rate / root.rate
        if not root.stream.endless:
            ratios["alive"] = found.alive / root.alive
    if found.kept is not None and state >= ENOUGH:
        ratios["state"] = found.kept / state
    if state == 0 and found.kept is not None:
        assert found.kept == 0
    return ratios


def check(shape: str, seed: int) -> list[float]:
    ratios = deviations(shape, seed)
    for what, ratio in ratios.items():
        assert 1 / FACTOR <= ratio <= FACTOR, f"{shape} {seed}: {what} is {ratio:.2f} of the estimate"
    return list(ratios.values())


@pytest.mark.parametrize("shape", QUICK)
def test_running_plans_do_as_estimated(shape: str):
    check(shape, 1)


@pytest.mark.slow
@pytest.mark.parametrize("shape", measured.SHAPES)
def test_many_running_plans_do_as_estimated(shape: str):
    ratios = [ratio for seed in range(SEEDS) for ratio in check(shape, seed)]
    assert np.median(np.abs(np.log(ratios))) < np.log(1.6 if shape in FAR_OFF else 1.1)
