"""Learned lags: behind the wall clock, and behind the streams that are read with a silent one (digest 9.1c)."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.clock.worlds import rules_of_sql, seen_of

from benchmarks.time import worlds
from benchmarks.time.headwater_side import headwater
from benchmarks.time.rivals import instants
from benchmarks.time.scoring import score
from headwater.clock.clock import Clock
from headwater.clock.guarantees import notices_of_query
from headwater.clock.lags import ACROSS, ALONG, ENOUGH_ROWS
from headwater.model.time import BEGINNING

SECOND = 1_000_000
NOW = worlds.START
SOON = "HEARTBEAT ESTIMATED (WARMUP 0 ROWS, SILENCE {0} SECONDS)"
PAIR = [("s0", "s1")]


def clock_of(*clauses: str, kind: str = "TIMESTAMP") -> Clock:
    return Clock.of(
        rules_of_sql(";".join(f"CREATE STREAM s{i} (ts {kind}) ORDERED BY ts {c}" for i, c in enumerate(clauses)))
    )


def fed(clock: Clock, seconds: int, *, lag: int, rows: int = 1, unit: int = SECOND, **settings) -> Clock:
    """A row of each stream in every second; those of the second stream come with an older time."""
    start = clock.now or NOW
    for second in range(1, seconds + 1):
        now = start + second * SECOND
        at = now if unit == SECOND else now // SECOND
        seen = {"s0": [seen_of([at] * rows, clock.frontier("s0"))]}
        if "s1" in clock.progress:
            seen["s1"] = [seen_of([at - lag * unit] * rows, clock.frontier("s1"))]
        clock = clock.after(seen, now, together=PAIR, **settings)
    return clock


# -- other streams ----------------------------------------------------------------------------------------------------


def test_a_silent_stream_does_not_hold_the_others_up_for_ever():
    clock = fed(clock_of("", ""), 30, lag=5)
    held = clock.frontier("s1")
    for second in range(1, 300):
        now = NOW + (30 + second) * SECOND
        clock = clock.after({"s0": [seen_of([now])]}, now, together=PAIR)
    assert held < clock.frontier("s1")
    assert clock.frontier("s1") == clock.newest("s0") - 60 * SECOND + 1, "a minute of silence may be a delay"


def test_what_it_lags_is_learned_with_a_margin():
    clock = fed(clock_of("", SOON.format(1)), 30, lag=5)
    clock = clock.after({"s0": [seen_of([NOW + 100 * SECOND])]}, NOW + 100 * SECOND, together=PAIR)
    # The rows before are compared, so a second is missing of the five: four seconds and one instant, and half of that.
    assert clock.frontier("s1") == NOW + 100 * SECOND - (6 * SECOND + 2) + 1
    assert clock.reason("s1") == ACROSS


def test_of_hardly_any_rows_nothing_is_learned():
    clock = fed(clock_of("", SOON.format(1)), ENOUGH_ROWS, lag=5)
    far = NOW + 1_000 * SECOND
    later = clock.after({"s0": [seen_of([far])]}, far, together=PAIR)
    assert later.reason("s1") != ACROSS, "the first row had nothing to be compared with"
    later = fed(clock, 1, lag=5).after({"s0": [seen_of([far])]}, far, together=PAIR)
    assert later.reason("s1") == ACROSS
    never = clock_of("", "").after({"s0": [seen_of([far])]}, far, together=PAIR)
    assert never.after({}, far + 3_600 * SECOND, together=PAIR).frontier("s1") == BEGINNING


def test_streams_that_are_not_read_together_say_nothing_of_each_other():
    clock = fed(clock_of("", SOON.format(1)), 30, lag=5)
    far = NOW + 1_000 * SECOND
    later = clock.after({"s0": [seen_of([far])]}, far, together=[("s0",), ("s1",)])
    assert later.frontier("s1") < far - 900 * SECOND


def test_a_stream_that_comes_later_and_is_far_ahead_moves_nobody():
    """What was learned against others says nothing of it."""
    clock = fed(clock_of("", SOON.format(1), ""), 30, lag=5)
    far = NOW + 10_000 * SECOND
    three = [("s0", "s1", "s2")]
    for n in range(5):
        now = NOW + (31 + n) * SECOND
        seen = {"s2": [seen_of([far + n])], "s1": [seen_of([now - 5 * SECOND], clock.frontier("s1"))]}
        clock = clock.after(seen, now, together=three)
    assert clock.late("s1") == {}
    assert clock.frontier("s1") < NOW + 40 * SECOND


def test_plain_numbers_are_compared_with_plain_numbers_only():
    clock = Clock.of(
        rules_of_sql("""
            CREATE STREAM s0 (ts BIGINT) ORDERED BY ts HEARTBEAT ESTIMATED (WARMUP 0 ROWS);
            CREATE STREAM s1 (ts BIGINT) ORDERED BY ts HEARTBEAT ESTIMATED (WARMUP 0 ROWS);
            CREATE STREAM s2 (ts TIMESTAMP) ORDERED BY ts""")
    )
    clock = fed(clock, 30, lag=5, unit=1)
    at = (NOW + 500 * SECOND) // SECOND
    later = clock.after(
        {"s0": [seen_of([at])], "s2": [seen_of([NOW])]}, NOW + 500 * SECOND, together=[("s0", "s1", "s2")]
    )
    assert later.frontier("s1") == at - 8 + 1, "four behind and the instant itself, and half of that"


def test_rows_that_wait_to_be_taken_are_waited_for():
    clock = fed(clock_of("", SOON.format(1)), 30, lag=5)
    until = clock.now
    far = NOW + 1_000 * SECOND
    later = clock.after({"s0": [seen_of([far])]}, far, together=PAIR, drained={"s1": until})
    assert later.frontier("s1") <= NOW + 26 * SECOND


@pytest.mark.parametrize("seed", range(2))
def test_a_sparse_stream_loses_nothing_and_holds_nobody_up(seed):
    """The digest's figures: with a warm-up and a margin none of the sparse rows is late, and the join is not held up."""
    streams = worlds.fast_and_sparse(seed, 3_600)
    at = instants(max(rows.end for rows in streams.values()), SECOND // 2)
    # Its own disorder is protected, so that only the other stream can make rows late.
    clauses = "HEARTBEAT ESTIMATED (WARMUP 0 ROWS, ALPHA 1, INITIAL 12 SECONDS, MARGIN 0.2, SILENCE 1 SECOND)"
    found = headwater(streams, {"fast": "", "sparse": clauses}, at)
    sparse = score(streams["sparse"], found["sparse"])
    assert sparse.late == 0
    begun = streams["fast"].sent > NOW + 600 * SECOND  # the stall of the warm-up is over
    rows = worlds.Rows(
        *(values[begun] for values in (streams["fast"].time, streams["fast"].arrival, streams["fast"].sent))
    )
    join = score(rows, found["fast"].least(found["sparse"]), judged=found["fast"])
    assert join.mean < 14_000, "12 s in the digest, and ticks"
    assert join.p99 < 15_000


def test_what_was_learned_survives_a_restart():
    clock = fed(clock_of("", SOON.format(1)), 30, lag=5)
    again = Clock.from_manifest(json.loads(json.dumps(clock.to_manifest())), clock.rules)
    assert again == clock


def test_a_notice_says_until_when_it_blocks():
    rules = clock_of("", "").rules
    notices = [n for n in notices_of_query(rules, ["s0", "s1"]) if n.code == "CAN_BLOCK"]
    assert notices[1].message == (
        'stream "s1" can block the query: until 20 of its rows have come, nobody knows how far it lags "s0"'
    )


# -- the wall clock ---------------------------------------------------------------------------------------------------


def test_time_passes_though_nothing_is_declared():
    clock = fed(clock_of(""), 30, lag=0)
    later = clock.after({}, NOW + 3_600 * SECOND)
    assert later.frontier("s0") == NOW + 3_540 * SECOND + 1
    assert later.reason("s0") == ALONG


def test_it_passes_only_if_that_is_asked_for_where_something_is():
    clock = fed(clock_of("HEARTBEAT ESTIMATED (WARMUP 0 ROWS)"), 30, lag=0)
    assert clock.after({}, NOW + 3_600 * SECOND).frontier("s0") == clock.newest("s0") + 1
    clock = fed(clock_of("HEARTBEAT ESTIMATED (WARMUP 0 ROWS, SILENCE 5 SECONDS, WALL CLOCK)"), 30, lag=0)
    assert clock.after({}, NOW + 3_600 * SECOND).frontier("s0") == NOW + 3_595 * SECOND + 1


def test_times_of_long_ago_are_left_in_peace():
    """Recorded rows have nothing to do with the wall clock: however long nothing comes, the next ones are in time."""
    clock, old = clock_of(""), NOW - 10**9 * SECOND
    for n in range(100):
        clock = clock.after({"s0": [seen_of([old + n * SECOND])]}, NOW + n * 1_000)
    clock = clock.after({}, NOW + 86_400 * SECOND)
    assert clock.frontier("s0") == old + 99 * SECOND + 1


@pytest.mark.parametrize("kind", ["cut off", "spikes"])
def test_no_more_rows_are_late_than_without_it(kind):
    rows = worlds.DELAYS[kind](11, 300)
    at = instants(rows.end)
    late = [
        score(rows, headwater({"s": rows}, {"s": clauses}, at)["s"]).late
        for clauses in ("", "HEARTBEAT ESTIMATED (WARMUP 0 ROWS)")
    ]
    assert late[0] == late[1]


def test_an_outage_is_learned_and_costs_rows_once():
    """Half an hour of nothing, and then all of it: the first time rows are late, the second time they are not."""
    sent = np.arange(0, 4 * 3_600_000, 5_000.0)
    arrival = sent.copy()
    for begin in (3_600_000, 3 * 3_600_000):
        cut = (arrival >= begin) & (arrival < begin + 1_800_000)
        arrival[cut] = begin + 1_800_000
    rows = worlds.Rows.of(sent, arrival)
    beats = headwater({"s": rows}, {"s": ""}, instants(rows.end, 5 * SECOND))["s"]
    late = rows.time <= beats.before(rows.arrival)
    again = rows.sent > NOW + 2 * 3_600 * SECOND
    assert late[~again].sum() > 200
    assert late[again].sum() == 0
