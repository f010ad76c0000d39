"""Small worlds of sources for the tests of the clock: rules from matrices, ticks from rows, sources that obey bounds."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from headwater.clock.bounds import Bounds, joined, reduced
from headwater.clock.clock import Clock
from headwater.clock.closure import Matrix, closure
from headwater.clock.rules import Rules, StreamRules, rules_of
from headwater.clock.seen import Seen
from headwater.language.binder import bind_script
from headwater.language.catalog import Stream
from headwater.model.time import BEGINNING, INFINITY

Arrival = tuple[int, int, int, int]
"""(arrival, stream, time, sent)."""


def rules_from(
    matrix: Mapping[tuple[int, int], Iterable[tuple[int, int]]],
    latencies: Sequence[int],
    *,
    ordered: bool = False,
    **more,
) -> Rules:
    """Streams s0, s1, … with a matrix of bounds as the paper has it."""
    canonical = {entry: reduced(bounds) for entry, bounds in matrix.items()}
    streams = {
        f"s{i}": StreamRules(name=f"s{i}", own=canonical.get((i, i), ()), latency=latency, ordered=ordered, **more)
        for i, latency in enumerate(latencies)
    }
    across = {(f"s{i}", f"s{j}"): bounds for (i, j), bounds in canonical.items() if i != j and bounds}
    return Rules(streams=streams, bounds=across)


def grouped(
    matrix: Matrix[int], groups: Sequence[Sequence[int]], latencies: Sequence[int]
) -> tuple[dict[tuple[int, int], Bounds], list[int]]:
    """Every group as one stream: its bounds are the weakest of its members, its latency is the longest (S & W 5)."""
    found = {}
    for a, leaders in enumerate(groups):
        for b, laggards in enumerate(groups):
            bounds = reduce(joined, (matrix.get((i, j), ()) for i in leaders for j in laggards))
            if bounds:
                found[a, b] = bounds
    return found, [max(latencies[i] for i in members) for members in groups]


def rules_of_sql(script: str) -> Rules:
    return rules_of(s for s in bind_script(script).catalog if isinstance(s, Stream))


def seen(rows: Iterable[tuple[int, int]], clock: Clock | None = None, sent: Mapping[int, int] | None = None) -> dict:
    """What a tick sees of rows (stream, time); late ones apart if there is a clock to judge them."""
    by_stream: dict[int, list[int]] = defaultdict(list)
    for stream, ts in rows:
        by_stream[stream].append(ts)
    return {f"s{i}": [seen_of(times, _frontier(clock, f"s{i}"), (sent or {}).get(i))] for i, times in by_stream.items()}


def seen_of(times: Sequence[int], frontier: int = BEGINNING, sent: int | None = None, partition: str = "") -> Seen:
    timely, late = [t for t in times if t >= frontier], [t for t in times if t < frontier]
    return Seen(
        partition,
        max(timely, default=BEGINNING),
        min(timely, default=INFINITY),
        len(timely),
        late=len(late),
        sent=BEGINNING if sent is None else sent,
        late_newest=max(late, default=BEGINNING),
        late_oldest=min(late, default=INFINITY),
    )


def _frontier(clock: Clock | None, stream: str) -> int:
    return BEGINNING if clock is None else clock.frontier(stream)


def heartbeats(clock: Clock, *, lowest: int = -1) -> list[int]:
    """As the paper counts: nothing at or below comes any more; before the first row, one less than the first time."""
    return [max(clock.frontier(name) - 1, lowest) for name in clock.rules.streams]


def late(clock: Clock) -> int:
    return sum(sum(clock.late(name).values()) for name in clock.rules.streams)


def trace(clock: Clock, arrivals: Sequence[tuple[int, int, int]], until: int, **settings) -> list[list[int]]:
    """The heartbeats after each instant."""
    found = []
    for now in range(until):
        rows = [(s, ts) for at, s, ts in arrivals if at == now]
        clock = clock.after(seen(rows, clock), now, **settings)
        found.append(heartbeats(clock))
    return found


def random_matrix(
    dice: random.Random, n: int, *, delay: int, lag: int, share: float = 1.0
) -> dict[tuple[int, int], Bounds]:
    """Of which every diagonal entry says something."""
    entries = [(i, j) for i in range(n) for j in range(n) if i == j or dice.random() < share]
    return {
        e: reduced((dice.randint(0, delay), dice.randint(0, lag)) for _ in range(dice.randint(1, 2))) for e in entries
    }


def random_closed(dice: random.Random, n: int, **shape) -> dict[tuple[int, int], Bounds]:
    return closure(random_matrix(dice, n, **shape))


def talkative(dice: random.Random, n: int) -> list[float]:
    """How many rows an instant brings from each source."""
    return [dice.choice([0.02, 0.2, 0.8]) for _ in range(n)]


def emissions(
    dice: random.Random,
    matrix: Matrix[int],
    latencies: Sequence[int],
    until: int,
    *,
    fifo: bool = False,
    often: Sequence[float] = (),
) -> list[Arrival]:
    """Rows of sources that obey the matrix and nothing else, in the order of arrival."""
    n = len(latencies)
    often = often or talkative(dice, n)
    lowest, last_arrival = [-1] * n, [0] * n
    coming: dict[int, list[tuple[int, int]]] = defaultdict(list)
    found: list[Arrival] = []
    application = 0
    for now in range(until):
        application += dice.randint(0, 3)
        for i in range(n):
            if dice.random() >= often[i]:
                continue
            ts = max(lowest[i] + 1, application - dice.randint(0, 12))
            arrival = now + dice.randint(0, latencies[i])
            if fifo:
                arrival = last_arrival[i] = max(arrival, last_arrival[i])
            found.append((arrival, i, ts, now))
            for j in range(n):
                for after, lag in matrix.get((i, j), ()):
                    coming[now + after].append((j, ts - lag))
                    if fifo and i == j and after == 0:  # what follows in the channel, also at the same instant
                        lowest[j] = max(lowest[j], ts - lag)
        for j, below in coming.pop(now, ()):  # binds what is sent strictly later
            lowest[j] = max(lowest[j], below)
    return sorted(found)


def run(
    rules: Rules, arrivals: Sequence[Arrival], until: int, *, every: int = 1, names: Sequence[int] | None = None
) -> Clock:
    """All ticks; a tick takes what arrived since the last one. ``names``: the group of each stream."""
    clock, place = Clock.of(rules), 0
    for now in range(0, until + every, every):
        rows, sent = [], {}
        while place < len(arrivals) and arrivals[place][0] <= now:
            _, stream, ts, at = arrivals[place]
            group = stream if names is None else names[stream]
            rows.append((group, ts))
            sent[group] = max(sent.get(group, BEGINNING), at)
            place += 1
        clock = clock.after(seen(rows, clock, sent), now)
    return clock
