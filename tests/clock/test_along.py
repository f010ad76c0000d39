"""Streams whose times go along with the wall clock: time passes in silence, and nothing that is within bounds is late."""

from __future__ import annotations

import random

import pytest
from tests.clock.worlds import rules_of_sql, seen_of

from headwater.clock.clock import Clock
from headwater.clock.explain import explain_heartbeat
from headwater.clock.guarantees import blocking, notices_of_query, timeout_needed
from headwater.errors import SqlError
from headwater.model.time import BEGINNING

SECOND = 1_000_000
NOW = 1_000 * SECOND


def clock_of(*clauses: str) -> Clock:
    """Streams s0, s1, … with these clauses."""
    return Clock.of(
        rules_of_sql(";".join(f"CREATE STREAM s{i} (ts TIMESTAMP) ORDERED BY ts {c}" for i, c in enumerate(clauses)))
    )


def test_time_passes_though_nothing_ever_came():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS").after({}, NOW)
    assert clock.frontier("s0") == NOW - 2 * SECOND
    assert clock.reason("s0") == "ALONG WALL CLOCK WITHIN 2 SECONDS"
    assert clock.after({}, NOW + 5 * SECOND).frontier("s0") == NOW + 3 * SECOND


def test_without_a_length_it_is_ten_seconds():
    clock = clock_of("ALONG WALL CLOCK").after({}, NOW)
    assert clock.frontier("s0") == NOW - 10 * SECOND


def test_a_row_that_is_exactly_so_far_behind_is_in_time():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS").after({}, NOW)
    at = clock.frontier("s0")
    assert clock.after({"s0": [seen_of([at], at)]}, NOW + 1).late("s0") == {}
    assert clock.after({"s0": [seen_of([at - 1], at)]}, NOW + 1).late("s0") == {"ALONG WALL CLOCK WITHIN 2 SECONDS": 1}


def test_latency_comes_on_top():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS LATENCY 3 SECONDS").after({}, NOW)
    assert clock.frontier("s0") == NOW - 5 * SECOND


def test_without_a_known_latency_it_says_nothing_and_a_notice_says_so():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS ORDERED TRANSPORT")
    assert clock.after({}, NOW).frontier("s0") == BEGINNING
    (notice,) = (n for n in notices_of_query(clock.rules, ["s0"]) if n.code == "UNKNOWN_LATENCY")
    assert "ALONG WALL CLOCK WITHIN 2 SECONDS promises nothing" in notice.message


def test_what_waits_to_be_taken_stops_it():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS").after({}, NOW)
    later = clock.after({}, NOW + 3_600 * SECOND, drained={"s0": NOW})
    assert later.frontier("s0") == clock.frontier("s0")
    never = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS").after({}, NOW, drained={"s0": BEGINNING})
    assert never.frontier("s0") == BEGINNING


def test_a_backlog_moves_time_by_its_rows():
    """An hour of rows waits: those that have come tell when they were sent, so time follows them meanwhile."""
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS")
    waits = {"s0": BEGINNING}
    clock = clock.after({"s0": [seen_of([NOW - 3_600 * SECOND])]}, NOW, drained=waits)
    assert clock.frontier("s0") == NOW - 3_604 * SECOND
    clock = clock.after({"s0": [seen_of([NOW - 1_800 * SECOND])]}, NOW + 1, drained=waits)
    assert clock.frontier("s0") == NOW - 1_804 * SECOND


def test_a_time_from_the_future_pushes_nothing():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS").after({"s0": [seen_of([NOW + 3_600 * SECOND])]}, NOW)
    assert clock.frontier("s0") == NOW - 2 * SECOND


def test_silent_partitions_hold_nothing_back():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS")
    clock = clock.after({"s0": [seen_of([NOW], partition="a"), seen_of([NOW - SECOND], partition="b")]}, NOW)
    clock = clock.after({"s0": [seen_of([NOW + 9 * SECOND], partition="a")]}, NOW + 10 * SECOND)
    assert clock.frontier("s0") == NOW + 8 * SECOND


def test_it_stands_beside_other_clauses_and_the_furthest_counts():
    beside = "DISORDER 1 SECOND", "WATERMARK FOR ts AS ts - INTERVAL 1 SECOND", "HEARTBEAT ESTIMATED (MARGIN 0)"
    for clauses in beside:
        clock = clock_of(f"{clauses} ALONG WALL CLOCK WITHIN 5 SECONDS").after({"s0": [seen_of([NOW])]}, NOW)
        assert clock.after({}, NOW + 60 * SECOND).frontier("s0") == NOW + 55 * SECOND, clauses
    clock = clock_of("DISORDER 1 SECOND ALONG WALL CLOCK WITHIN 5 SECONDS").after({"s0": [seen_of([NOW])]}, NOW)
    assert clock.frontier("s0") == NOW - SECOND
    assert clock.reason("s0") == "DISORDER 1 SECOND"


def test_two_streams_along_the_wall_clock_are_bounded_by_each_other():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS", "ALONG WALL CLOCK WITHIN 3 SECONDS")
    (bound,) = clock.rules.bounds["s0", "s1"]
    assert bound == (0, 5 * SECOND + 1)
    assert clock.rules.streams["s1"].own == ((0, 6 * SECOND + 1),)


def test_what_follows_along_chains_of_clocks_follows_from_the_wall_clock_too():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS", "LAGS s0 BY AT MOST 4 SECONDS TRANSITIVE").after({}, NOW)
    assert clock.frontier("s1") == NOW - 6 * SECOND - 1
    literal = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS", "LAGS s0 BY AT MOST 4 SECONDS").after({}, NOW)
    assert literal.frontier("s1") == BEGINNING, "a bound between rows says nothing where no row came (digest E2)"


def test_nothing_waits_and_nothing_blocks():
    rules = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS", "ALONG WALL CLOCK").rules
    assert timeout_needed(rules, ["s0", "s1"]) == []
    assert blocking(rules, ["s0", "s1"]) == []
    text = explain_heartbeat(rules, ["s0", "s1"])
    assert "(wall clock) -> s0: at most 2 SECONDS older" in text
    assert "everything becomes final even if all streams fall silent: no TIMEOUT is needed" in text


def test_it_is_offered_where_silence_leaves_rows_waiting():
    (notice,) = notices_of_query(clock_of("DISORDER 2 SECONDS").rules, ["s0"])
    assert notice.code == "TIMEOUT_NEEDED"
    assert 'ALONG WALL CLOCK [WITHIN …] on "s0"' in notice.hint
    numbers = rules_of_sql("CREATE STREAM s (t BIGINT) ORDERED BY t DISORDER 2")
    (notice,) = notices_of_query(numbers, ["s"])
    assert "WALL CLOCK" not in notice.hint


@pytest.mark.parametrize("clause", ["ALONG WALL CLOCK", "HEARTBEAT ESTIMATED (WALL CLOCK)"])
def test_plain_numbers_cannot_go_along(clause):
    with pytest.raises(SqlError) as caught:
        rules_of_sql(f"CREATE STREAM s (t BIGINT) ORDERED BY t {clause}")
    assert caught.value.code == "TIME_UNIT"
    assert "TIMEOUT" in caught.value.hint


def test_it_goes_on_after_a_restart_and_under_other_rules():
    clock = clock_of("ALONG WALL CLOCK WITHIN 2 SECONDS").after({}, NOW)
    again = Clock.from_manifest(clock.to_manifest(), clock.rules)
    assert again == clock
    looser = again.with_rules(clock_of("ALONG WALL CLOCK WITHIN 20 SECONDS").rules)
    assert looser.after({}, NOW + SECOND).frontier("s0") == NOW - 2 * SECOND, "what was promised stays"
    assert looser.after({}, NOW + 30 * SECOND).frontier("s0") == NOW + 10 * SECOND


@pytest.mark.parametrize("seed", range(20))
def test_rows_within_their_bounds_are_never_late(seed):
    """Sources that obey, a network that reorders, and an engine that is now and then behind."""
    rnd = random.Random(seed)
    within, latency = rnd.choice([0, 3, 50]), rnd.choice([0, 7, 40])
    clauses = f"ALONG WALL CLOCK WITHIN {within} MICROSECONDS" + (f" LATENCY {latency} MICROSECONDS" if latency else "")
    clock = clock_of(clauses)
    rows = [(sent := rnd.randrange(2_000), sent + rnd.randint(-within, within)) for _ in range(300)]
    arrivals = sorted((NOW + sent + rnd.randint(0, latency), NOW + ts) for sent, ts in rows)
    now, drained = NOW, BEGINNING
    while arrivals or now < NOW + 2_200:
        now += rnd.randrange(1, 30)
        arrived = [a for a in arrivals if a[0] <= now]
        taken = arrived if rnd.random() < 0.7 else arrived[: rnd.randrange(len(arrived) + 1)]
        arrivals = arrivals[len(taken) :]
        drained = now if len(taken) == len(arrived) else drained
        seen = {"s0": [seen_of([ts for _, ts in taken], clock.frontier("s0"))]} if taken else {}
        clock = clock.after(seen, now, drained={"s0": drained})
        assert clock.late("s0") == {}
    assert clock.frontier("s0") == drained - within - latency
