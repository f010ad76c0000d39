"""Streams that fall silent: time-outs, and streams that others do not wait for."""

from __future__ import annotations

from tests.clock.worlds import rules_of_sql, seen_of

from headwater.clock.clock import Clock
from headwater.clock.domains import domains_of
from headwater.clock.seen import Seen
from headwater.model.time import BEGINNING, INFINITY

PAIR = """
    CREATE STREAM s0 (t BIGINT) ORDERED BY t STRICTLY INCREASING TIMEOUT 30 MICROSECONDS;
    CREATE STREAM s1 (t BIGINT) ORDERED BY t STRICTLY INCREASING LAGS s0 BY AT MOST 4;
    CREATE STREAM s2 (t BIGINT) ORDERED BY t DISORDER 9 TIMEOUT 5 MICROSECONDS;
    CREATE STREAM other (x INT);
"""


def _silent(clock: Clock, until: int, **settings) -> Clock:
    return clock.after({}, until, **settings)


def test_a_time_out_releases_what_is_stuck():
    clock = Clock.of(rules_of_sql(PAIR)).after({"s0": [seen_of([100])], "s1": [seen_of([95])]}, 0)
    assert (clock.frontier("s0"), clock.frontier("s1")) == (101, 96)
    assert _silent(clock, 29).frontier("s1") == 96
    fired = _silent(clock, 30)
    assert (fired.frontier("s1"), fired.reason("s1")) == (101, "TIMEOUT 30 MICROSECONDS")
    assert fired.frontier("s2") == fired.frontier("other") == BEGINNING


def test_a_backlog_stops_the_clock_of_a_time_out():
    clock = Clock.of(rules_of_sql(PAIR)).after({"s0": [seen_of([100])], "s1": [seen_of([95])]}, 0)
    behind = _silent(_silent(clock, 25, drained={"s0": 20}), 50, drained={"s0": 20})
    assert behind.frontier("s1") == 96
    assert _silent(behind, 51).frontier("s1") == 101


def test_domains_are_related_or_read_together():
    rules = rules_of_sql(PAIR)
    assert {(d.streams, d.timeout) for d in domains_of(rules)} == {
        (frozenset(("s0", "s1")), 30),
        (frozenset(("s2",)), 5),
    }
    (domain,) = domains_of(rules, [frozenset(("s1", "s2", "other"))])
    assert (domain.streams, domain.timeout) == (frozenset(("s0", "s1", "s2")), 5)
    named = "CREATE STREAM {0} (t BIGINT) ORDERED BY t CLOCK DEVIATION 1 IN DOMAIN {1};"
    rules = rules_of_sql(named.format("a", "D") + named.format("b", "d") + named.format("c", "e"))
    assert {d.streams for d in domains_of(rules)} == {frozenset("ab"), frozenset("c")}


IDLE = """
    CREATE STREAM fast (t BIGINT) ORDERED BY t IN ORDER;
    CREATE STREAM slow (t BIGINT) ORDERED BY t IN ORDER IDLE AFTER 10 MICROSECONDS;
    CREATE STREAM third (t BIGINT) ORDERED BY t IN ORDER IDLE AFTER 20 MICROSECONDS;
"""
TOGETHER = [("fast", "slow", "third")]


def test_an_idle_stream_follows_those_that_are_not():
    clock = Clock.of(rules_of_sql(IDLE))
    clock = clock.after({name: [seen_of([5])] for name in ("fast", "slow", "third")}, 0, together=TOGETHER)
    for now in range(1, 10):
        clock = clock.after({"fast": [seen_of([5 + now])]}, now, together=TOGETHER)
    assert clock.frontier("slow") == 5
    clock = clock.after({"fast": [seen_of([15])]}, 10, together=TOGETHER)
    assert clock.frontier("slow") == 5, "it follows the slowest that is not idle"
    assert clock.blocked_by(["fast", "slow", "third"]) == ("slow", "third")
    clock = clock.after({}, 20, together=TOGETHER)
    assert [clock.frontier(name) for name in ("fast", "slow", "third")] == [15, 15, 15]
    assert clock.reason("slow") == "IDLE AFTER 10 MICROSECONDS"
    clock = clock.after({"slow": [seen_of([9, 20], clock.frontier("slow"))]}, 21, together=TOGETHER)
    assert clock.late("slow") == {"IDLE AFTER 10 MICROSECONDS": 1}
    clock = clock.after({"fast": [seen_of([40])]}, 25, together=TOGETHER)
    assert clock.frontier("slow") == 20, "awake again"


def test_a_stream_that_never_sent_a_row_becomes_idle_too():
    clock = Clock.of(rules_of_sql(IDLE)).after({"fast": [seen_of([7])]}, 100, together=TOGETHER)
    clock = clock.after({}, 119, together=TOGETHER)
    assert clock.frontier("slow") == BEGINNING, "the third stream may still speak"
    assert clock.after({}, 120, together=TOGETHER).frontier("slow") == 7


def test_idle_streams_alone_do_not_move_each_other():
    clock = Clock.of(rules_of_sql(IDLE)).after({"slow": [seen_of([7])]}, 0, together=[("slow", "third")])
    clock = clock.after({}, 500, together=[("slow", "third")])
    assert clock.frontier("third") == BEGINNING


def test_heartbeats_say_who_holds_whom_back():
    rules = rules_of_sql("CREATE STREAM s0 (t BIGINT) ORDERED BY t DISORDER 2 DISORDER 0 AFTER 10 MICROSECONDS;")
    clock = Clock.of(rules).after({"s0": [seen_of([50], partition="a"), seen_of([20], partition="b")]}, 0)
    a, b = clock.describe("s0")
    assert (a.partition, a.heartbeat, a.max_ts, a.blocked_by) == ("a", 47, 50, "s0/b")
    assert (b.partition, b.heartbeat, b.max_ts, b.blocked_by) == ("b", 17, 20, "")
    assert (b.next_due, b.next_value) == (10, 19)


def test_what_is_counted_without_a_time_is_no_partition():
    rules = rules_of_sql("CREATE STREAM s0 (t BIGINT) ORDERED BY t IN ORDER;")
    clock = Clock.of(rules).after({"s0": [seen_of([50], partition="a")]}, 0)
    clock = clock.after({"s0": [Seen("", BEGINNING, INFINITY, 0, late=2, bad=1), seen_of([60], partition="a")]}, 1)
    assert (clock.frontier("s0"), clock.late("s0")) == (60, {"IN ORDER": 2})
