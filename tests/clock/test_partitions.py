"""Heartbeats of a source that has partitions: each speaks for itself."""

from __future__ import annotations

from headwater.clock.clock import Clock
from headwater.clock.rules import rules_of
from headwater.clock.seen import Seen
from headwater.language.catalog import Stream
from headwater.language.time_clauses import HeartbeatFromSource, Latency
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY


def beat(partition: str, promise: int) -> Seen:
    return Seen(partition, BEGINNING, INFINITY, 0, own_promise=promise)


def clock(*clauses: Latency) -> Clock:
    columns = Schema.of(ts="BIGINT", hb="BIGINT")
    return Clock.of(rules_of([Stream("s", columns, time="ts", clauses=(HeartbeatFromSource("hb"), *clauses))]))


def test_the_slowest_partition_counts():
    its = clock().after({"s": [beat("a", 10), beat("b", 7)]}, 1)
    assert its.frontier("s") == 7
    its = its.after({"s": [beat("b", 20)]}, 2)
    assert its.frontier("s") == 10
    assert its.reason("s") == "the source's heartbeat"
    assert its.after({"s": [beat("a", 5)]}, 3).frontier("s") == 10


def test_on_a_network_that_reorders_it_waits_for_the_latency():
    its = clock(Latency(0, 5)).after({"s": [beat("a", 10)]}, 1)
    assert its.frontier("s") == BEGINNING
    assert its.after({}, 5).frontier("s") == BEGINNING
    assert its.after({}, 6).frontier("s") == 10
