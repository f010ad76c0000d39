"""Learned bounds: the worked examples, what starts them, what makes them fall, and what they promise of random streams."""

from __future__ import annotations

import json
import pickle
from bisect import bisect_right
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.time import worlds
from benchmarks.time.headwater_side import declared, headwater
from benchmarks.time.rivals import instants
from benchmarks.time.scoring import NEVER, Heartbeats, late_rows, score
from headwater.clock.bounds import Bound
from headwater.clock.estimate import Estimator
from headwater.clock.learners import LEAST_ROWS, ForgettingMaximum, ForgettingQuantile, Window
from headwater.clock.seen import Seen
from headwater.language.time_clauses import HeartbeatEstimated
from headwater.model.time import BEGINNING, INFINITY

SECOND = 1_000_000


class Past:
    """The largest time seen by each wall-clock instant."""

    def __init__(self) -> None:
        self.walls: list[int] = []
        self.newest: list[int] = []

    def at(self, wall: int) -> int:
        found = bisect_right(self.walls, wall)
        return self.newest[found - 1] if found else BEGINNING

    def add(self, wall: int, newest: int) -> None:
        self.walls.append(wall)
        self.newest.append(max(newest, self.newest[-1] if self.newest else BEGINNING))


def plain(**options) -> HeartbeatEstimated:
    """The printed algorithm: no margin, no warm-up, nothing known."""
    return HeartbeatEstimated(**{"margin": 0.0, "warmup_rows": 0, "initial": 0, **options})


def deltas(estimator: Estimator, rows: list[int]) -> list[int | None]:
    """The bound at once after each row, one tick per row."""
    past, found = Past(), []
    for wall, time in enumerate(rows):
        estimator = estimator.learn(time, 1, wall, past.at, False)
        past.add(wall, time)
        found.append(estimator.delta)
    return found


def fed(estimator: Estimator, ages: list[int], *, rows: int = 1, now: int = 0, step: int = 1) -> Estimator:
    """With ticks whose oldest rows have these ages, at every delay."""
    for age in ages:
        now += step
        estimator = estimator.learn(1_001 - age, rows, now, lambda wall: 1_000, False)
    return estimator


def heartbeats(rows: worlds.Rows, clause: HeartbeatEstimated) -> Heartbeats:
    """A stream in ticks of 100 ms, its frontier never going back."""
    at = instants(rows.end)
    estimator, past, frontier, found, begin = Estimator.of(clause, has_unit=True), Past(), BEGINNING, [], 0
    for wall, end in zip(at.tolist(), np.searchsorted(rows.arrival, at, side="right").tolist(), strict=True):
        if end > begin:
            part = rows.time[begin:end]
            estimator = estimator.learn(int(part.min()), end - begin, wall, past.at, False)
            past.add(wall, int(part.max()))
            begin = end
        frontier = max(frontier, estimator.frontier(wall, past.at))
        found.append(max(frontier - 1, NEVER))
    return Heartbeats(at, np.array(found, np.int64))


# -- the worked examples ----------------------------------------------------------------------------------------------


def test_the_largest_age_so_far_is_measured_before_the_row_itself_counts():
    assert deltas(Estimator.of(plain(alpha=1.0), has_unit=False), [10, 12, 11, 15, 9]) == [0, 0, 2, 2, 7]


def test_a_bound_falls_after_a_window_and_rises_at_once():
    estimator = Estimator.of(plain(window_rows=2, initial=8), has_unit=False)
    found = []
    for age in (2, 4, 2, 0, 0, 0, 5):
        estimator = fed(estimator, [age])
        found.append(estimator.delta)
    assert found == [8, 8, 6, 6, 6, 3, 5]
    assert estimator.learners[0].rows == 0


def test_without_a_memory_a_bound_is_the_maximum_of_the_last_window():
    estimator = Estimator.of(plain(window_rows=2, alpha=0.0, initial=8), has_unit=False)
    assert fed(estimator, [2, 4, 2]).delta == 4


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 0.99])
def test_a_bound_that_is_not_needed_falls_to_nothing(alpha):
    learner = ForgettingMaximum(Window(rows=1), alpha, lag=100)
    lags = []
    for now in range(3_000):
        learner = learner.after(0, 1, now)
        lags.append(learner.lag)
    assert lags == sorted(lags, reverse=True)
    assert lags[-1] == 0


def test_a_bound_never_falls_below_what_the_window_saw():
    learner = ForgettingMaximum(Window(rows=1), 0.9, lag=100)
    for now in range(1_000):
        learner = learner.after(7, 1, now)
    assert learner.lag == 7


# -- the beginning ----------------------------------------------------------------------------------------------------


def test_the_first_bound_falls_with_the_delay():
    estimator = Estimator.of(HeartbeatEstimated(margin=0.0, warmup_rows=0), has_unit=True)
    assert estimator.bounds() == (
        *(Bound(0, SECOND), Bound(SECOND // 5, 4 * SECOND // 5), Bound(SECOND // 2, SECOND // 2)),
        Bound(SECOND, 0),
    )


def test_plain_numbers_begin_with_what_is_given_and_reach_nothing_at_the_horizon():
    clause = plain(initial=10, horizon=SECOND)
    assert Estimator.of(clause, has_unit=False).bounds() == (
        *(Bound(0, 10), Bound(SECOND // 5, 8), Bound(SECOND // 2, 5)),
        Bound(SECOND, 0),
    )
    assert Estimator.of(plain(initial=None), has_unit=False).bounds() == (Bound(0, 0),)


@pytest.mark.parametrize(
    ("horizon", "delays"),
    [
        (10 * SECOND, (0, 0.2, 0.5, 1, 2, 5, 10)),
        (SECOND // 10, (0, 0.1)),
        (3 * SECOND, (0, 0.2, 0.5, 1, 2, 3)),
        (40 * SECOND, (0, 0.2, 0.5, 1, 2, 5, 10, 20, 40)),
    ],
)
def test_delays_are_spaced_evenly_in_magnitude_up_to_the_horizon(horizon, delays):
    found = Estimator.of(plain(horizon=horizon), has_unit=True).delays
    assert found == tuple(round(delay * SECOND) for delay in delays)


def test_nothing_is_offered_during_the_warm_up_but_everything_is_learned():
    estimator = Estimator.of(plain(warmup_rows=10), has_unit=False)
    estimator = fed(estimator, [3], rows=9)
    assert (estimator.bounds(), estimator.delta) == ((), None)
    assert fed(estimator, [0]).delta == 3


def test_a_margin_widens_the_bound_and_the_delay():
    estimator = Estimator.of(HeartbeatEstimated(warmup_rows=0, initial=SECOND), has_unit=True)
    assert estimator.bounds() == (
        *(Bound(0, 1_500_000), Bound(300_000, 1_200_000), Bound(750_000, 750_000)),
        Bound(1_500_000, 0),
    )


def test_with_a_margin_rows_with_equal_times_may_come_in_two_ticks():
    estimator = Estimator.of(plain(margin=0.5), has_unit=False)
    assert fed(estimator, [0]).bounds()[0] == Bound(0, 1)


# -- windows of time, backlogs ----------------------------------------------------------------------------------------


def test_a_window_of_time_ends_when_it_has_lasted_and_has_seen_enough():
    clause = plain(window_time=SECOND, initial=8)
    estimator = Estimator.of(clause, has_unit=False)
    many = fed(estimator, [0] * 11, rows=LEAST_ROWS, step=SECOND // 10)
    assert many.delta == 4
    assert fed(estimator, [0] * 10, rows=LEAST_ROWS, step=SECOND // 10).delta == 8
    few = fed(estimator, [0] * 11, rows=1, step=SECOND // 10)
    assert few.delta == 8


def test_silence_is_no_evidence():
    estimator = fed(Estimator.of(plain(window_time=SECOND, initial=8), has_unit=False), [0], rows=1)
    assert fed(estimator, [0], rows=1, now=3600 * SECOND).delta == 8


def test_in_a_backlog_only_the_order_of_rows_is_learned():
    estimator = Estimator.of(plain(alpha=1.0), has_unit=False)
    behind = estimator.learn(900, 1, 60 * SECOND, lambda wall: 1_000, True)
    assert [learner.lag for learner in behind.learners] == [101, 0, 0, 0, 0, 0, 0]
    soon = behind.learn(900, 1, 61 * SECOND, lambda wall: 1_000, False)
    assert [learner.lag for learner in soon.learners] == [101, 101, 101, 0, 0, 0, 0]  # 1 s ago it was behind
    later = behind.learn(900, 1, 71 * SECOND, lambda wall: 1_000, False)
    assert [learner.lag for learner in later.learners] == [101] * 7


# -- the stream's clock -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clauses", ["HEARTBEAT ESTIMATED", "HEARTBEAT ESTIMATED (LATE BUDGET 1 %, WARMUP 0 ROWS)"])
def test_the_clock_of_a_stream_learns_like_its_estimator(clauses):
    rows = worlds.spikes(2, 60)
    at = instants(rows.end)
    by_clock = headwater({"s": rows}, {"s": clauses}, at)["s"]
    clause = HeartbeatEstimated(late_budget=0.01, warmup_rows=0) if "BUDGET" in clauses else HeartbeatEstimated()
    assert by_clock.heartbeat.tolist() == heartbeats(rows, clause).heartbeat.tolist()


def test_a_bound_that_grows_never_takes_a_promise_back():
    estimator, past = Estimator.of(plain(), has_unit=True), Past()
    clock = declared({"s": "HEARTBEAT ESTIMATED (MARGIN 0, INITIAL 0 SECONDS, WARMUP 0 ROWS)"})
    alone, by_clock = [], []
    for wall, time in ((1, 100), (2, 200), (3, 20), (4, 210), (5, 290)):
        frontier = clock.frontier("s")
        late = time < frontier
        seen = (
            Seen("", BEGINNING, INFINITY, 0, late=1, late_newest=time, late_oldest=time)
            if late
            else Seen("", time, time, 1)
        )
        clock = clock.after({"s": [seen]}, wall * SECOND // 10)
        estimator = estimator.learn(time, 1, wall * SECOND // 10, past.at, False)
        past.add(wall * SECOND // 10, time)
        alone.append(estimator.frontier(wall * SECOND // 10, past.at))
        by_clock.append(clock.frontier("s"))
    assert alone == [101, 201, 20, 120, 120]
    assert by_clock == [101, 201, 201, 201, 201]
    assert clock.late("s") == {"HEARTBEAT ESTIMATED": 1}


# -- promises ---------------------------------------------------------------------------------------------------------


def test_what_never_forgets_knows_the_largest_age_at_every_delay():
    rows = worlds.pareto(3, 20)
    at = instants(rows.end, tail=0)
    past, estimator, begin = Past(), Estimator.of(plain(alpha=1.0), has_unit=True), 0
    expected = [0] * len(estimator.delays)
    for wall, end in zip(at.tolist(), np.searchsorted(rows.arrival, at, side="right").tolist(), strict=True):
        if end > begin:
            oldest = int(rows.time[begin:end].min())
            for n, delay in enumerate(estimator.delays):
                before = rows.time[:begin][_tick(rows.arrival[:begin], at) <= wall - delay]
                expected[n] = max(expected[n], int(before.max()) - oldest + 1 if len(before) else 0)
            estimator = estimator.learn(oldest, end - begin, wall, past.at, False)
            past.add(wall, int(rows.time[begin:end].max()))
            begin = end
    assert [learner.lag for learner in estimator.learners] == expected


def _tick(arrival: np.ndarray, at: np.ndarray) -> np.ndarray:
    return at[np.searchsorted(at, arrival, side="left")]


@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_canonical_whatever_comes(seed):
    rng = np.random.default_rng(seed)
    estimators = [Estimator.of(clause, has_unit=True) for clause in (plain(), plain(late_budget=0.01))]
    past = Past()
    for wall in np.cumsum(rng.integers(1, SECOND, 400)).tolist():
        oldest = wall - int(rng.exponential(SECOND))
        estimators = [e.learn(oldest, int(rng.integers(1, 100)), wall, past.at, False) for e in estimators]
        past.add(wall, wall)
        for estimator in estimators:
            bounds = estimator.bounds()
            assert bounds[0].after == 0
            assert all(b.after < c.after and b.lag > c.lag >= 0 for b, c in pairwise(bounds))


def test_a_stream_that_falls_silent_becomes_final_by_itself():
    rows = worlds.on_off(1, 100)
    found = score(rows, heartbeats(rows, HeartbeatEstimated(warmup_rows=0)))
    assert found.stuck == 0
    assert found.p99 < 3_000  # milliseconds; the silence lasts 28 s
    assert found.late_share < 0.005


def test_the_next_rise_is_when_the_frontier_rises():
    estimator = Estimator.of(plain(initial=SECOND), has_unit=True)
    past = [(0, 50 * SECOND), (300_000, 51 * SECOND)]
    frontier = estimator.frontier(300_000, lambda wall: 51 * SECOND if wall >= 300_000 else 50 * SECOND)
    assert frontier == 50 * SECOND + 1
    assert estimator.next_rise(past, frontier) == 500_000  # the newer row, after 0.2 s
    assert estimator.next_rise(past, 51 * SECOND) == 1_300_000
    assert estimator.next_rise(past, 51 * SECOND + 1) is None


def test_a_margin_pays_for_itself_when_delays_come_in_bursts():
    rows = worlds.spikes(11, 300)
    without, with_margin = (late_rows(rows, heartbeats(rows, HeartbeatEstimated(margin=m))).mean() for m in (0.0, 0.5))
    assert with_margin < without / 2


@pytest.mark.parametrize("world", ["calm", "regimes", "sinusoid", "Pareto"])
@pytest.mark.parametrize("budget", [0.01, 0.001])
def test_the_late_budget_is_kept_within_a_factor_of_four(world, budget):
    rows = worlds.DELAYS[world](5, 300)
    late = late_rows(rows, heartbeats(rows, HeartbeatEstimated(late_budget=budget))).mean()
    assert budget / 4 < late < budget * 4


def test_a_quantile_remembers_only_recent_rows():
    learner = ForgettingQuantile(Window(rows=100), 0.01, unit=1_000)
    for now in range(100):
        learner = learner.after(500_000, 1, now)
    assert 500_000 <= learner.lag < 700_000
    for now in range(1_000):
        learner = learner.after(0, 1, 100 + now)
    assert learner.lag == 0


def test_a_small_share_keeps_its_first_bound_until_there_are_enough_rows():
    learner = ForgettingQuantile(Window(rows=10_000), 0.001, initial=77, unit=1)
    assert learner.after(0, 1_999, 0).lag == 77
    assert learner.after(0, 2_000, 0).lag == 0


@pytest.mark.parametrize(
    "clause", [HeartbeatEstimated(), HeartbeatEstimated(late_budget=0.001, window_time=SECOND), plain(window_rows=7)]
)
def test_it_comes_back_from_a_manifest_as_it_was(clause):
    estimator = fed(Estimator.of(clause, has_unit=True), [5, 0, 900, 3, 1], rows=300, step=SECOND)
    again = Estimator.from_manifest(json.loads(json.dumps(estimator.to_manifest())))
    assert again == estimator
    assert pickle.loads(pickle.dumps(estimator)) == estimator
    assert fed(again, [4, 7], rows=300) == fed(estimator, [4, 7], rows=300)
