"""The formulas of Krämer chapter 22, against the numbers of the thesis and of simulations with Poisson arrivals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headwater.algebra.nodes import SetKind
from headwater.optimizer.estimation.characteristics import (
    Characteristics,
    coalesced,
    distinct,
    filtered,
    grouped,
    grouping,
    hop_window,
    joined,
    matched,
    occupied,
    partial_aggregates,
    rounded,
    row_window,
    session_wait,
    split,
    time_window,
    topmost,
    touched,
    unbounded_window,
    united,
    unmatched,
)
from headwater.optimizer.estimation.multiplicities import combined

of = Characteristics.of


def close(value: float, expected: float, digits: float = 1e-4):
    assert value == pytest.approx(expected, rel=digits)


# -- as printed -------------------------------------------------------------------------------------------------------


def test_a_filter_keeps_its_part_of_the_elements():  # OF 22.1
    out = filtered(of(10, 100, 5), 0.25)
    assert (out.distance, out.lifetime, out.granule) == (40, 100, 5)


def test_a_union_adds_rates():  # OF 22.3
    out = united(of(10, 100), of(30, 400))
    close(out.distance, 7.5)
    close(out.lifetime, 175)


def test_a_product():  # OF 22.4; a simulation gave 0.1346 and 333.5
    out = joined(of(10, 1000), of(20, 500))
    close(out.distance, 0.13333)
    close(out.lifetime, 333.33)
    assert out.distance == pytest.approx(0.1346, rel=0.02)
    assert out.lifetime == pytest.approx(333.5, rel=0.01)


def test_the_join_of_the_experiments():  # 24.3, in milliseconds
    stream = of(10, 10_000)
    close(joined(stream, stream, 1 / 50).distance, 0.25)
    shed = of(20, 10_000)
    close(joined(shed, shed, 1 / 50).rate, 4 / 4)


@pytest.mark.parametrize(
    ("d", "l", "g", "distance", "kept"),
    [
        (10, 100, 1, 5.4917, 9.5618),
        (10, 1000, 1, 5.5142, 95.208),
        (10, 1000, 10, 11.547, 63.397),
        (10, 1000, 100, 100.00, 10.000),
        (50, 600, 20, 35.922, 10.027),
        (100, 1000, 1, 50.477, 9.955),
        (1, 10, 1, 1.1384, 6.5132),
    ],
)
def test_scalar_aggregation(d: float, l: float, g: float, distance: float, kept: float):  # noqa: E741 - OF 22.6, (22.31)
    out = grouping(of(d, l, g))
    close(out.distance, distance)
    close(out.lifetime, distance)
    close(partial_aggregates(of(d, l, g)), kept)
    assert grouped(of(d, l, g)).distance == pytest.approx(
        distance, rel=0.02
    )  # the continuous form, far from the border


@pytest.mark.parametrize(
    ("d", "l", "g", "n", "distance", "lifetime", "kept"),
    [
        (10, 1000, 1, 5, 5.0982, 25.491, 99.056),
        (10, 1000, 10, 20, 5.2291, 104.58, 98.02),
        (10, 1000, 100, 20, 7.6767, 153.53, 81.902),
        (10, 1000, 1, 200, 10, 1000, None),
    ],
)
def test_grouping(d: float, l: float, g: float, n: int, distance: float, lifetime: float, kept: float | None):  # noqa: E741 - OF 22.7
    out = grouping(of(d, l, g), n)
    close(out.distance, distance)
    close(out.lifetime, lifetime)
    if kept is not None:
        close(partial_aggregates(of(d, l, g), n), kept)
        assert grouped(of(d, l, g), n).distance == pytest.approx(distance, rel=0.05)


def test_the_limits_of_aggregation():
    fine, coarse = of(10, 1000, 1e-6), of(10, 1000, 1000)
    close(grouping(fine).distance, 5)
    close(partial_aggregates(fine), 100)
    close(partial_aggregates(fine._replace(granule=0)), 100)
    close(grouping(coarse).distance, 1000)
    close(partial_aggregates(coarse), 1)
    assert grouping(of(10, 5)) == of(10, 5)  # one at a time
    assert partial_aggregates(of(10, 5)) == 1


def test_a_granule_that_is_longer_than_the_elements_is_no_trouble():
    assert math.isfinite(grouping(of(1, 10, 100)).distance)
    assert math.isfinite(grouped(of(1, 10, 100)).distance)
    assert math.isfinite(partial_aggregates(of(1, 10, 100)))


def test_split():  # OF 22.8
    out = split(of(10, 100), 1)
    close(out.distance, 0.1)
    close(out.lifetime, 1)
    assert split(of(10, 100), 200) == of(10, 100)


def test_granularity():  # OF 22.9
    out = rounded(of(10, 100), 400)
    close(out.distance, 40)
    close(out.lifetime, 400)
    assert out.granule == 400
    assert rounded(of(10, 100), 50) == of(10, 100, 50)


def test_windows():  # OF 22.10 to 22.12
    chronons = of(10, 1)
    assert time_window(chronons, 300) == of(10, 300)
    close(row_window(chronons, 5).lifetime, 50)
    close(row_window(chronons, 5, partitions=20).lifetime, 1000)


# -- continuous forms, and simulations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "lifetime", "simulated"), [(20, 198.65, 198.8), (100, 632.1, 633.1), (500, 906.3, 905.7)]
)
def test_values_alive_without_the_border(values: int, lifetime: float, simulated: float):
    """As Krämer cuts them, every element is one piece; ours are fewer and longer, and as many are alive."""
    stream = of(10, 1000)
    close(occupied(stream.alive, values) * 10, lifetime)
    assert distinct(stream, values).alive * 10 == pytest.approx(simulated, rel=0.01)


@pytest.mark.parametrize(
    ("d", "l", "g", "formula", "simulated"),
    [
        (10, 11, 1, (6.685, 4.460), (6.670, 4.462)),
        (10, 9, 1, (7.014, 4.162), (7.015, 4.164)),
        (10, 30, 5, (8.163, 7.756), (8.188, 7.777)),
    ],
)
def test_aggregation_without_the_border(d, l, g, formula, simulated):  # noqa: E741
    out = grouped(of(d, l, g))
    assert (out.distance, out.lifetime) == pytest.approx(formula, rel=1e-3)
    assert (out.distance, out.lifetime) == pytest.approx(simulated, rel=5e-3)


def poisson(rng: np.random.Generator, distance: float, count: int) -> np.ndarray:
    return np.cumsum(rng.exponential(distance, count))


def test_busy_periods_of_values():
    rng = np.random.default_rng(5)
    start, value = poisson(rng, 1.0, 60_000), rng.integers(0, 40, 60_000)
    periods = 0
    for v in range(40):
        mine = start[value == v]
        periods += 1 + np.count_nonzero(np.diff(mine) > 100)
    out = distinct(Characteristics(1.0, 100.0, 1e-9), 40)
    assert out.rate == pytest.approx(periods / start[-1], rel=0.1)


def test_waiting_for_the_end_of_a_session():
    rng = np.random.default_rng(6)
    start = poisson(rng, 10, 200_000)
    last = np.append(np.diff(start) > 20, True)
    ends = start[last][np.searchsorted(np.flatnonzero(last), np.arange(len(start)))] + 20
    assert session_wait(0.1, 20) == pytest.approx((ends - start).mean(), rel=0.05)
    assert session_wait(1e-9, 20) == pytest.approx(20, rel=1e-6)
    assert session_wait(0, 20) == 20
    assert math.isfinite(session_wait(1e3, 1e6))


def test_rows_that_enter_and_leave_the_top():
    rng = np.random.default_rng(7)
    start, rank = poisson(rng, 1.0, 4_000), rng.random(4_000)
    events = sorted([(t, True, i) for i, t in enumerate(start)] + [(t + 30, False, i) for i, t in enumerate(start)])
    alive: set[int] = set()
    shown: set[int] = set()
    begun = 0
    for _, comes, i in events:
        (alive.add if comes else alive.discard)(i)
        now = set(sorted(alive, key=rank.__getitem__)[:5])
        begun += len(now - shown)
        shown = now
    out = topmost(of(1, 30), 5)
    assert out.rate == pytest.approx(begun / start[-1], rel=0.15)
    assert out.alive == pytest.approx(5)
    assert topmost(of(1, 30), 1000) == of(1, 30)


def test_a_hopping_count_has_a_row_a_group_and_slide():
    out = grouped(hop_window(of(0.1, 1), 60, 20), 4)
    assert (out.rate, out.alive) == pytest.approx((4 / 20, 4))
    sparse = grouped(hop_window(of(100, 1), 20, 20), 4)
    assert sparse.rate == pytest.approx(4 * -math.expm1(-20 / 400) / 20)


def test_a_hopping_window_shown_for_an_instant_lasts_until_the_next_after_rounding():
    brief, full = hop_window(of(0.1, 1), 60, 20, 1), hop_window(of(0.1, 1), 60, 20)
    assert (brief.rate, brief.alive) == pytest.approx((full.rate, full.rate))
    assert rounded(brief, 20) == full


def test_groups_that_elements_touch_together():
    assert touched(1, 10) == 1
    assert touched(0.5, 10) == 0.5
    assert touched(7, 1) == 1
    assert touched(10, 10) == pytest.approx(10 * (1 - 0.9**10))


# -- ours -------------------------------------------------------------------------------------------------------------


def test_a_slide_rounds_like_a_granularity():
    assert time_window(of(10, 1), 100, 20) == Characteristics(0.1, 10, 20)
    seldom = time_window(of(10, 1), 5, 20)
    assert (seldom.distance, seldom.lifetime) == pytest.approx((40, 20))


def test_what_never_ends_gathers_until_the_horizon():
    out = unbounded_window(of(10, 1), 1e6)
    assert out.grows
    assert out.alive == 1e5
    assert not Characteristics(0.0, 3.0, math.inf, endless=True).grows  # a relation


def test_a_relation_joins_without_changing_the_lifetime():
    relation = Characteristics(0.0, 50.0, math.inf, endless=True)
    out = joined(of(10, 100), relation, 1 / 50)
    assert (out.rate, out.alive, out.granule, out.endless) == pytest.approx((0.1, 10, 1, False))


def test_semi_and_anti_join_share_the_rows():
    left, right = of(10, 300), of(5, 200)
    for share in (0.2, 1.0):
        yes, no = matched(left, right, 1 / 30, share), unmatched(left, right, 1 / 30, share)
        assert yes.alive + no.alive == pytest.approx(left.alive)
        assert yes.rate + no.rate >= left.rate
    assert matched(left, right, 0.0, 0.0).rate == 0
    assert unmatched(left, right, 0.0, 0.0) == left


def test_coalesce_keeps_what_is_alive():
    chronons = of(2, 1)
    out = coalesced(chronons, 3)
    assert out.alive == chronons.alive
    assert out.rate < chronons.rate
    assert coalesced(of(10, 100), 10**9, longest=20).lifetime == pytest.approx(20)


@pytest.mark.parametrize("kind", list(SetKind))
def test_set_operations_of_nothing_and_with_nothing(kind: SetKind):
    some, nothing = of(10, 100), Characteristics(0.0, 0.0)
    assert combined(nothing, nothing, 5, 5, kind).alive == 0
    left = combined(some, nothing, 10**9, 10**9, kind)
    expected = 0 if kind in (SetKind.INTERSECT, SetKind.INTERSECT_ALL) else some.alive
    assert left.alive == pytest.approx(expected, rel=1e-3)
    assert left.rate == pytest.approx(expected / 100, rel=1e-3)


def test_difference_and_intersection_share_the_values():
    left, right = of(10, 100), of(7, 130)
    parts = [combined(left, right, 12, 12, kind).alive for kind in (SetKind.EXCEPT, SetKind.INTERSECT)]
    assert sum(parts) == pytest.approx(occupied(left.alive, 12), rel=1e-2)
    many = [combined(of(1, 5000), of(1, 5000), 10, 10, kind).alive for kind in SetKind]
    assert all(0 <= alive <= 10.01 for alive in many)
