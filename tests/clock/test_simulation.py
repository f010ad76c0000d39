"""No heartbeat is ever violated by sources that obey their bounds, however rows are taken in."""

from __future__ import annotations

import heapq
import random

import pytest
from attrs import evolve
from tests.clock.worlds import (
    emissions,
    grouped,
    heartbeats,
    late,
    random_closed,
    rules_from,
    rules_of_sql,
    run,
    seen,
    seen_of,
    talkative,
)

from headwater.clock.bounds import Bound, RowBound
from headwater.clock.clock import Clock
from headwater.clock.seen import Seen
from headwater.testing.cases import fresh, scaled


def _simulated(seed: int, expected: int) -> int:
    """One random system in all configurations; the number of its rows, of which at least so many are expected."""
    dice = random.Random(seed)
    n = dice.randint(2, 5)
    matrix = random_closed(dice, n, delay=4, lag=10)
    latencies = [dice.randint(0, 6) for _ in range(n)]
    often = talkative(dice, n)
    until = round(expected / min(sum(often), 1))  # where all are rarely heard, it takes longer to hear as much
    rows = emissions(dice, matrix, latencies, until, often=often)
    alone = rules_from(matrix, latencies)
    groups = [list(range(n // 2)), list(range(n // 2, n))]
    for members in (groups, [list(range(n))]):
        bounds, longest = grouped(matrix, members, latencies)
        names = [next(g for g, its in enumerate(members) if i in its) for i in range(n)]
        assert late(run(rules_from(bounds, longest), rows, until + 60, names=names)) == 0
    sent = evolve(alone, streams={name: evolve(r, sent="sent") for name, r in alone.streams.items()})
    for rules, every in ((alone, 1), (alone, 5), (sent, 1), (sent, 7)):
        clock = run(rules, rows, until + 60, every=every)
        assert late(clock) == 0
        assert min(heartbeats(clock)) > 0
    ordered = emissions(dice, matrix, latencies, until, fifo=True, often=often)
    for fifo in (False, True):
        assert late(run(rules_from(matrix, latencies, ordered=fifo), ordered, until + 60)) == 0
    return len(rows)


def test_no_violation_in_any_configuration():
    assert all(_simulated(seed, 150) > 75 for seed in range(12))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
def test_no_violation_in_many_systems(block):
    systems = scaled(50)
    first = fresh(1_000 + 50 * block)
    # Half of what is expected is more than eight standard deviations away, whatever the seed.
    assert all(_simulated(seed, 300) > 150 for seed in range(first, first + systems))


def _waits(rules, rows, until: int, names=None) -> list[int]:
    """The smallest heartbeat after each instant."""
    clock, found, place = Clock.of(rules), [], 0
    for now in range(until):
        taken = []
        while place < len(rows) and rows[place][0] <= now:
            taken.append((rows[place][1] if names is None else names[rows[place][1]], rows[place][2]))
            place += 1
        clock = clock.after(seen(taken, clock), now)
        found.append(min(heartbeats(clock)))
    return found


def test_groups_are_never_ahead_of_their_members():
    dice = random.Random(11)
    for _ in range(10):
        n = dice.randint(2, 4)
        matrix = random_closed(dice, n, delay=4, lag=10)
        latencies = [dice.randint(0, 6) for _ in range(n)]
        rows = emissions(dice, matrix, latencies, 80)
        bounds, longest = grouped(matrix, [list(range(n))], latencies)
        alone = _waits(rules_from(matrix, latencies), rows, 120)
        together = _waits(rules_from(bounds, longest), rows, 120, names=[0] * n)
        assert all(a <= b for a, b in zip(together, alone, strict=True))


def test_send_times_and_shortest_latencies_only_make_heartbeats_sooner():
    dice, sooner = random.Random(12), 0
    for _ in range(8):
        matrix = random_closed(dice, 2, delay=4, lag=10)
        rows = [(at + 3, s, ts, sent) for at, s, ts, sent in emissions(dice, matrix, [6, 6], 100)]
        plain = rules_from(matrix, [9, 9])
        known = {name: evolve(r, low=3) for name, r in plain.streams.items()}
        shortest = evolve(plain, streams=known)
        sent = evolve(plain, streams={name: evolve(r, sent="sent") for name, r in known.items()})
        clocks = [run(rules, rows, 60) for rules in (plain, shortest, sent)]
        assert [late(run(rules, rows, 140)) for rules in (plain, shortest, sent)] == [0, 0, 0]
        values = [heartbeats(clock) for clock in clocks]
        assert all(a <= b <= c for a, b, c in zip(*values, strict=True))
        sooner += values[0] != values[2]
    assert sooner > 0


def _counter_rows(
    dice: random.Random, n: int, latency: int, until: int, *, fifo: bool
) -> list[tuple[int, int, int, int]]:
    """Tokens of one counter, held for 1 to 40; instants are fine enough that no two rows are sent at once."""
    due = [(dice.randint(0, 9), i) for i in range(n)]
    heapq.heapify(due)
    token, found, last = 0, [], [0] * n
    while due:
        taken, i = heapq.heappop(due)
        if taken > until:
            continue
        token += 1
        sent = taken + dice.randint(1, 40)
        arrival = sent + dice.randint(0, latency)
        arrival = last[i] = max(arrival, last[i]) if fifo else arrival
        found.append((arrival, i, token, sent))
        heapq.heappush(due, (sent + 1, i))
    return sorted(found)


@pytest.mark.parametrize("fifo", [False, True])
def test_bounds_that_count_rows_count_only_what_was_surely_sent_later(fifo):
    """Counting every arrival gives hundreds of violations (digest 3.3)."""
    gained = 0
    for seed in range(6):
        dice = random.Random(seed)
        rows = _counter_rows(dice, 2, 30, 2_000, fifo=fifo)
        rules = rules_from({}, [30, 30], ordered=fifo)
        slow = dict.fromkeys([("s0", "s1"), ("s1", "s0")], (Bound(400, 0),))
        counted = evolve(rules, bounds=slow, row_bounds=dict.fromkeys(slow, (RowBound(1, 0),)))
        for every in (1, 7, 25):
            assert late(run(counted, rows, 2_200, every=every)) == 0
        at = 1_500
        gained += min(heartbeats(run(counted, rows, at))) - min(
            heartbeats(run(evolve(counted, row_bounds={}), rows, at))
        )
    assert gained > 0


@pytest.mark.parametrize("fifo", [False, True])
def test_rows_per_timestamp_are_counted_safely(fifo):
    for seed in range(6):
        dice, last, arrivals = random.Random(seed), 0, []
        times = sorted(t for t in range(300) for _ in range(dice.randint(0, 3)))
        for sent, ts in enumerate(times):
            arrival = sent + dice.randint(0, 9)
            arrival = last = max(arrival, last) if fifo else arrival
            arrivals.append((arrival, 0, ts, sent))
        rules = rules_from({}, [9], ordered=fifo, rows=(RowBound(2, 0),))
        for every in (1, 4, 15):
            clock = run(rules, sorted(arrivals), len(times) + 20, every=every)
            assert late(clock) == 0
            assert heartbeats(clock)[0] > 250


PARTITIONED = (
    "CREATE STREAM s0 (t BIGINT) ORDERED BY t DISORDER 3 PARTITION SKEW {skew} AFTER {after} MICROSECONDS {more};"
)


@pytest.mark.parametrize("more", ["", "ORDERED TRANSPORT LATENCY 4 MICROSECONDS"])
def test_partitions_are_streams_of_their_own(more):
    """Against the full matrix, in which every partition is a stream."""
    dice = random.Random(13)
    latency = 4 if more else 0
    for _ in range(12):
        n, skew, after = dice.randint(2, 4), dice.randint(3, 9), dice.randint(0, 4)
        clock = Clock.of(rules_of_sql(PARTITIONED.format(skew=skew, after=after, more=more)))
        entries = [(i, j) for i in range(n) for j in range(n)]
        matrix = {(i, j): [(0, 4)] if i == j else [(after, skew + 1)] for i, j in entries}
        full = Clock.of(rules_from(matrix, [latency] * n, ordered=True))
        first = [(i, 50) for i in range(n)]
        for now in range(60):
            rows = (
                first
                if now == 0
                else [(dice.randrange(n), 50 + now + dice.randint(-3, 1)) for _ in range(dice.randint(0, 3))]
            )
            times = {i: [t for s, t in rows if s == i] for i in range(n)}
            parts = [seen_of(its, clock.frontier("s0"), partition=f"p{i}") for i, its in times.items() if its]
            clock = clock.after({"s0": parts}, now)
            full = full.after(seen(rows, full), now)
            assert clock.frontier("s0") - 1 == min(heartbeats(full))


OUTAGE = [*range(100), *range(400, 1_700)]
"""The instants of ticks: for 300 instants nothing is taken."""


def _piled_up() -> list[list[tuple[int, int]]]:
    """(arrival, time) of two sources, the next one last."""
    dice, queues = random.Random(3), ([], [])
    for now in range(900):
        for queue in queues:
            if dice.random() < 0.7:
                queue.append((now + dice.randint(0, 10), 1_000 + now + dice.randint(-1, 1)))
    return [sorted(queue, reverse=True) for queue in queues]


def _taken(queues: list[list[tuple[int, int]]], now: int) -> tuple[list[list[int]], list[int]]:
    """The times that a tick takes, of one source at most 50 and of the other one, and up to where each is drained."""
    times = [
        [queue.pop()[1] for _ in range(most) if queue and queue[-1][0] <= now]
        for queue, most in zip(queues, (50, 1), strict=True)
    ]
    return times, [now if not queue or queue[-1][0] > now else queue[-1][0] - 1 for queue in queues]


@pytest.mark.parametrize("honest", [True, False])
def test_catching_up_after_an_outage_makes_nothing_late(honest):
    rules = rules_from({(i, j): [(0, 3 if i == j else 6)] for i in (0, 1) for j in (0, 1)}, [10, 10])
    clock, queues = Clock.of(rules), _piled_up()
    for now in OUTAGE:
        times, upto = _taken(queues, now)
        rows = [(i, ts) for i in (0, 1) for ts in times[i]]
        drained = {"s0": upto[0], "s1": upto[1]} if honest else {}
        clock = clock.after(seen(rows, clock), now, drained=drained)
    assert not any(queues)
    assert late(clock) == 0 if honest else late(clock) > 100


@pytest.mark.parametrize("transport", ["", "ORDERED TRANSPORT"])
def test_partitions_that_are_drained_unevenly_make_nothing_late(transport):
    declared = f"DISORDER {2 if not transport else 12} PARTITION SKEW 15 LATENCY 10 MICROSECONDS {transport}"
    clock = Clock.of(rules_of_sql(f"CREATE STREAM s0 (t BIGINT) ORDERED BY t {declared};"))
    queues = _piled_up()
    for now in OUTAGE:
        times, upto = _taken(queues, now)
        parts = [seen_of(its, clock.frontier("s0"), partition=f"p{i}") for i, its in enumerate(times) if its]
        clock = clock.after({"s0": parts}, now, drained={"s0": min(upto)})
    assert not any(queues)
    assert late(clock) == 0
    assert clock.frontier("s0") > 1_800


def test_sources_that_speak_for_themselves_are_believed():
    rules = rules_of_sql("""
        CREATE STREAM at_once (t BIGINT, h BIGINT) ORDERED BY t HEARTBEAT FROM SOURCE (h);
        CREATE STREAM reordered (t BIGINT, h BIGINT) ORDERED BY t HEARTBEAT FROM SOURCE (h) LATENCY 5 MICROSECONDS;
        CREATE STREAM timeless (x INT);
    """)
    clock, word = Clock.of(rules), Seen("", 3, 1, 2, promise=9)
    clock = clock.after({name: [word] for name in rules.streams}, 10)
    assert [clock.frontier(name) for name in ("at_once", "timeless")] == [9, 9]
    assert clock.reason("at_once") == "the source's heartbeat"
    assert clock.after({}, 14).frontier("reordered") < 0
    assert clock.after({}, 15).frontier("reordered") == 9
