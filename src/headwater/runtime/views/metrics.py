"""What an engine measures while it runs: numbers as objects, kept for the last ticks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from statistics import median
from typing import TYPE_CHECKING

from attrs import Factory, define, evolve, frozen

from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.stage import Worked

if TYPE_CHECKING:
    from headwater.runtime.checkpoint import Manifest
    from headwater.runtime.executor import TickResult
    from headwater.runtime.views.picture import Picture

_KEPT = 256
_LATELY = 10.0
"""Rates are over so many seconds."""


@frozen
class TickReport:
    """One tick."""

    tick: int
    began: float
    """Seconds since the epoch."""
    seconds: float
    phases: dict[str, float]
    rows: dict[str, int]
    """By stream."""
    answered: dict[str, int]
    """By query: rows that came or went."""
    newest: dict[str, int] = Factory(dict)
    """By stream: the newest row so far."""


@frozen
class TickTimes:
    """How long the last ticks took, in seconds."""

    ticks: int = 0
    """So many of them were looked at."""
    last: float = 0.0
    median: float = 0.0
    p95: float = 0.0
    """95 of 100 ticks took no longer."""
    phases: dict[str, float] = Factory(dict)
    """The median by what the time went into. ``operators`` is the work of all tasks, which may run at the same time."""


@frozen
class StreamReport:
    """One stream, since the beginning."""

    name: str
    rows: int
    late: int
    bad: int
    frontier: int
    newest: int
    late_by: dict[str, int] = Factory(dict)
    """Late rows by the bound that they violate."""


@frozen
class OperatorReport:
    """One operator: what it keeps and has done."""

    key: str
    name: str
    rows: int
    bytes: int
    worked: Worked
    forgotten: int = 0
    """Changes that came further behind than it remembers, and were left out (BLOCK … REMEMBER …, WEAK)."""


@define
class Metrics:
    """The last ticks, and totals per operator."""

    ticks: deque[TickReport] = Factory(lambda: deque(maxlen=_KEPT))
    worked: dict[str, Worked] = Factory(dict)
    """By node key, since the start."""
    began: float = Factory(time.time)
    committed: float = Factory(time.time)
    """When the last tick was committed."""
    count: int = 0
    """Ticks since the start."""

    def copy(self) -> Metrics:
        """As they are now."""
        return evolve(self, ticks=deque(self.ticks, _KEPT), worked=dict(self.worked))

    def record(self, manifest: Manifest, result: TickResult, began: float) -> TickReport:
        now = time.time()
        answered = {name: sum(part.rows for part in parts) for name, parts in result.staged.items()}
        phases, newest = result.phases, manifest.newest
        report = TickReport(manifest.tick, began, now - began, phases, result.rows, answered, newest)
        self.ticks.append(report)
        for key, worked in result.worked.items():
            self.worked[key] = self.worked.get(key, Worked(0, 0, 0.0)).plus(worked)
        self.committed = now
        self.count += 1
        return report

    def rate(self, *, stream: str | None = None, query: str | None = None, seconds: float = _LATELY) -> float:
        """Rows per second lately: those that came in, over all streams or of one; or those that a query answered."""

        def rows(tick: TickReport) -> int:
            if query is not None:
                return tick.answered.get(query, 0)
            return sum(tick.rows.values()) if stream is None else tick.rows.get(stream, 0)

        now, ticks = time.time(), list(self.ticks)
        first = next((i for i, t in enumerate(ticks) if t.began + t.seconds >= now - seconds), None)
        if first is None:
            return 0.0
        began = ticks[max(first - 1, 0)].began  # what a tick has came since the one before it began
        return sum(map(rows, ticks[first:])) / max(now - began, 1e-9)

    def times(self) -> TickTimes:
        """How long the kept ticks took."""
        ticks = list(self.ticks)
        if not ticks:
            return TickTimes()
        seconds = sorted(t.seconds for t in ticks)
        names = dict.fromkeys(name for t in ticks for name in t.phases)
        phases = {name: median(t.phases.get(name, 0.0) for t in ticks) for name in names}
        return TickTimes(
            len(ticks), ticks[-1].seconds, median(seconds), seconds[min(len(ticks) * 95 // 100, len(ticks) - 1)], phases
        )

    def arrived(self, streams: Iterable[str], instant: int) -> float | None:
        """When the first row came that is as new as this, in seconds since the epoch; None: none has."""
        names = list(streams)
        for tick in list(self.ticks):
            if max((tick.newest.get(name, BEGINNING) for name in names), default=BEGINNING) >= instant:
                return tick.began
        return None


def streams(picture: Picture) -> list[StreamReport]:
    """How the streams are."""
    found = []
    for name in picture.streams:
        counts = picture.counts.get(name, {})
        newest = picture.newest.get(name, BEGINNING)
        rows, late, bad = (counts.get(kind, 0) for kind in ("rows", "late", "bad"))
        clock = picture.clock
        found.append(StreamReport(name, rows, late, bad, clock.frontier(name), newest, clock.late(name)))
    return found


def operators(picture: Picture, query: str) -> list[OperatorReport]:
    """What the operators of a query keep, over all shards. Those that it shares with others are told for each of them."""
    graph = picture.graph
    found = []
    for i in sorted(graph.below(query)):
        node = graph.nodes[i]
        if node.operator is None:
            continue
        kept = [its[node.key] for its in picture.records.values() if node.key in its]
        rows, size = (sum(record[what] for record in kept) for what in ("rows", "bytes"))
        worked = picture.metrics.worked.get(node.key, Worked(0, 0, 0.0))
        forgotten = sum(record.get("counts", {}).get("forgotten", 0) for record in kept)
        found.append(OperatorReport(node.key, node.operator.name, rows, size, worked, forgotten))
    return found


def streams_of(picture: Picture, query: str) -> set[str]:
    """The streams that a query reads."""
    graph = picture.graph
    return {source for i in graph.below(query) if (source := graph.nodes[i].source) is not None}


def lag(picture: Picture, query: str) -> int:
    """How far the answer of a query is behind the newest row of its streams, in instants."""
    newest = max((picture.newest.get(s, BEGINNING) for s in streams_of(picture, query)), default=BEGINNING)
    frontier = picture.queries[query].frontier
    if BEGINNING in (newest, frontier) or frontier == INFINITY:
        return 0
    return max(newest - frontier, 0)


def wall_lag(picture: Picture, query: str) -> float:
    """How many seconds ago the first row came whose answer is not final yet."""
    frontier = picture.queries[query].frontier
    came = None if frontier == INFINITY else picture.metrics.arrived(streams_of(picture, query), frontier)
    return 0.0 if came is None else max(time.time() - came, 0.0)


def with_counts_of(
    before: Mapping[str, Mapping[str, int]], tick: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """Counts by stream and kind, with those of a tick, which come by kind and stream."""
    counts = {stream: dict(its) for stream, its in before.items()}
    for kind, by_stream in tick.items():
        for stream, n in by_stream.items():
            its = counts.setdefault(stream, {"rows": 0, "late": 0, "bad": 0})
            its[kind] = its.get(kind, 0) + n
    return counts
