"""How far one stream has come: its partitions, and what holds for all of them (digest 12.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, field, frozen

from headwater.clock.along import BREATH, by_wall_clock
from headwater.clock.counted import Counted
from headwater.clock.estimate import Estimator
from headwater.clock.lags import ALONG, LearnedLag
from headwater.clock.raises import Step
from headwater.clock.ring import Ring, newest_at, remembered
from headwater.clock.rules import Rules, StreamRules
from headwater.clock.seen import Seen
from headwater.clock.taking import ESTIMATED, Taking, by_partition, sent_by
from headwater.clock.track import Track
from headwater.model.time import BEGINNING, INFINITY

BY_SOURCE = "the source's heartbeat"
BY_COUNT = "the source's count"
STAMPED = "the wall clock"


@frozen(kw_only=True)
class Progress:
    """Immutable: every method gives the next one."""

    floor: Track = field(factory=Track)
    """What holds for all partitions: promises of the source, bounds to other streams, time-outs."""
    parts: tuple[tuple[str, Track], ...] = ()
    """Every partition is a stream of its own; sorted."""
    ring: Ring = ()
    since: int | None = None
    """The first tick that knew the stream."""
    arrival: int | None = None
    """The last tick that brought rows."""
    drained: int = BEGINNING
    """Everything that had arrived by this instant of the wall clock has been taken."""
    behind: bool = False
    """Rows wait that had arrived by the tick before the last one."""
    late: tuple[tuple[str, int], ...] = ()
    """Late rows by the bound that they violate."""
    estimator: Estimator | None = None
    along: LearnedLag | None = None
    """How far it is behind the wall clock, where that is learned."""
    across: LearnedLag | None = None
    """How far it is behind the streams that are read with it, where that is learned."""
    counted: Counted | None = None
    """Where the source counts its events."""
    ended: bool = False

    @classmethod
    def of(cls, rules: StreamRules) -> Progress:
        """A stream of which nothing has come."""
        learning = rules.estimated
        if learning is None:
            return cls()
        lag = LearnedLag.of(learning, has_unit=rules.has_unit)
        along = lag if rules.learns_wall_clock else None
        return cls(estimator=Estimator.of(learning, has_unit=rules.has_unit), along=along, across=lag)

    def learning_anew(self, rules: StreamRules) -> Progress:
        """What was learned is forgotten, what was promised is not."""
        new = Progress.of(rules)
        return evolve(self, estimator=new.estimator, along=new.along, across=new.across)

    # -- what is known ------------------------------------------------------------------------------------------------

    @property
    def frontier(self) -> int:
        return INFINITY if self.ended else self._holding.frontier

    @property
    def newest(self) -> int:
        return self.floor.newest

    @property
    def reason(self) -> str:
        """The bound that set the frontier."""
        return "the end of the stream" if self.ended else self._holding.reason

    @property
    def _holding(self) -> Track:
        """The floor, or the slowest partition if even that is further."""
        if not self.parts:
            return self.floor
        slowest = min((track for _, track in self.parts), key=lambda t: t.frontier)
        return slowest if slowest.frontier > self.floor.frontier else self.floor

    def next_raise(self, rules: Rules, name: str) -> Step | None:
        """The step that raises the frontier next if no row comes. Partitions must all have passed it."""
        if self.ended:
            return None
        frontier = self.frontier
        own = [track.next_above(frontier) for _, track in self.parts if track.frontier <= frontier]
        by_parts = max((s for s in own if s is not None), default=None) if own and None not in own else None
        passing = by_wall_clock(rules, name, self.drained + BREATH if self.drained > BEGINNING else BEGINNING)
        passing = passing if passing is not None and passing.frontier > frontier else None
        steps = (self.floor.next_above(frontier), by_parts, self._next_learned(frontier), passing)
        return min((s for s in steps if s is not None), default=None)

    def _next_learned(self, frontier: int) -> Step | None:
        due = None if self.estimator is None else self.estimator.next_rise(self.ring, frontier)
        if due is None or self.estimator is None:
            return None
        return Step(due, self.estimator.frontier(due, lambda wall: newest_at(self.ring, wall)), ESTIMATED)

    # -- a tick -------------------------------------------------------------------------------------------------------

    def taken(
        self, rules: StreamRules, all_rules: Rules, seen: Iterable[Seen], last: int | None, now: int, drained: int
    ) -> Progress:
        """The rows of a tick have come: what follows for the stream itself. Nothing is fired yet.

        ``last`` is the stamp of the tick before. Sources are asked before a tick gets its stamp, so that a little is
        always not drained; only what waits longer than a tick is a backlog.
        """
        parts = by_partition(seen, rules)
        behind = drained < (now if last is None else last)
        progress = evolve(self, drained=drained, behind=behind, since=now if self.since is None else self.since)
        promise = max((s.promise for s in parts.values()), default=BEGINNING)
        if promise > BEGINNING:
            progress = progress._promised(rules, promise, now)
        progress = progress._promised_by_parts(rules, parts, now)._complete(parts.values())
        progress = progress._counting_late(self.reason, sum(s.late for s in parts.values()))
        parts = {name: s for name, s in parts.items() if s.newest_of_all > BEGINNING}
        if not parts:
            return progress
        rows = sum(s.rows + s.late for s in parts.values())
        progress = progress._learned(parts.values(), rows, now)
        taking = Taking(rules, all_rules, now, self.drained, progress.estimator)
        known, new = dict(progress.parts), Track(self.frontier, self.reason)
        for name, part in parts.items():
            known[name] = taking.partition(known.get(name, new), part)
        newest, sent = max(s.newest_of_all for s in parts.values()), sent_by(rules, parts.values(), now)
        floor = taking.whole(progress.floor, rows, newest, sent, len(known))
        ring = remembered(progress.ring, now, floor.newest)
        return evolve(progress, parts=tuple(sorted(known.items())), floor=floor, arrival=now, ring=ring)

    def fired(self, rules: Rules, name: str, now: int) -> Progress:
        """What is due has happened; but not what became due while rows waited to be taken (digest 12.3)."""
        until = min(now, self.drained)
        floor = self.floor.fired(until)
        passed = by_wall_clock(rules, name, until)
        if passed is not None:
            floor = floor.raised(passed.frontier, passed.reason)
        if self.along is not None and self.along.lag is not None and rules.streams[name].learns_wall_clock:
            floor = floor.raised(until - self.along.lag + 1, ALONG)
        parts = tuple((name, track.fired(until)) for name, track in self.parts)
        if self.estimator is not None and self.ring:
            learned = self.estimator.frontier(until, lambda wall: newest_at(self.ring, wall))
            floor = floor.raised(learned, ESTIMATED)
        same = floor is self.floor and all(new is old for (_, new), (_, old) in zip(parts, self.parts, strict=True))
        return self if same else evolve(self, floor=floor, parts=parts)

    def raised(self, frontier: int, reason: str) -> Progress:
        """All partitions have come so far."""
        return evolve(self, floor=self.floor.raised(frontier, reason)) if frontier > self.frontier else self

    def _promised(self, rules: StreamRules, promise: int, now: int) -> Progress:
        if rules.ordered:
            return self.raised(promise, BY_SOURCE)
        return evolve(self, floor=self.floor.offered(now + (rules.latency or 0), promise, BY_SOURCE))

    def _promised_by_parts(self, rules: StreamRules, seen: Mapping[str, Seen], now: int) -> Progress:
        told = {name: s.own_promise for name, s in seen.items() if s.own_promise > BEGINNING}
        if not told:
            return self
        parts, new = dict(self.parts), Track(self.frontier, self.reason)
        for name, promise in told.items():
            track = parts.get(name, new)
            due = now + (rules.latency or 0)
            parts[name] = track.raised(promise, BY_SOURCE) if rules.ordered else track.offered(due, promise, BY_SOURCE)
        return evolve(self, parts=tuple(sorted(parts.items())))

    def _complete(self, seen: Iterable[Seen]) -> Progress:
        """The source may have said how many events there are (CEDR A.12)."""
        seen = tuple(seen)
        told, events = ([c for s in seen for c in s.counted], [e for s in seen for e in s.syncs])
        if not told and not events:
            return self
        counted = (self.counted or Counted()).after(told, events)
        return evolve(self, counted=counted).raised(counted.frontier, BY_COUNT)

    def _counting_late(self, reason: str, late: int) -> Progress:
        if not late:
            return self
        counts = dict(self.late)
        counts[reason] = counts.get(reason, 0) + late
        return evolve(self, late=tuple(sorted(counts.items())))

    def _learned(self, seen: Iterable[Seen], rows: int, now: int) -> Progress:
        """Late rows teach too; and a row is not compared with those of its own tick (digest E16)."""
        if self.estimator is None:
            return self
        oldest, ring = min(s.oldest_of_all for s in seen), self.ring
        learned = self.estimator.learn(oldest, rows, now, lambda wall: newest_at(ring, wall), self.behind)
        along = None if self.along is None else self.along.learn(now - oldest + 1, rows, now)
        return evolve(self, estimator=learned, along=along)

    def to_manifest(self) -> dict[str, Any]:
        return {
            "floor": self.floor.to_manifest(),
            "parts": [[name, track.to_manifest()] for name, track in self.parts],
            "ring": [list(entry) for entry in self.ring],
            "since": self.since,
            "arrival": self.arrival,
            "drained": self.drained,
            "behind": self.behind,
            "late": [list(entry) for entry in self.late],
            "estimator": None if self.estimator is None else self.estimator.to_manifest(),
            "along": None if self.along is None else self.along.to_manifest(),
            "across": None if self.across is None else self.across.to_manifest(),
            "counted": None if self.counted is None else self.counted.to_manifest(),
            "ended": self.ended,
        }

    @classmethod
    def from_manifest(cls, kept: dict[str, Any]) -> Progress:
        return cls(
            floor=Track.from_manifest(kept["floor"]),
            parts=tuple((name, Track.from_manifest(track)) for name, track in kept["parts"]),
            ring=tuple((wall, newest) for wall, newest in kept["ring"]),
            since=kept["since"],
            arrival=kept["arrival"],
            drained=kept["drained"],
            behind=kept["behind"],
            late=tuple((reason, rows) for reason, rows in kept["late"]),
            estimator=None if kept["estimator"] is None else Estimator.from_manifest(kept["estimator"]),
            along=LearnedLag.from_manifest(kept["along"]) if kept.get("along") else None,
            across=LearnedLag.from_manifest(kept["across"]) if kept.get("across") else None,
            counted=None if kept["counted"] is None else Counted.from_manifest(kept["counted"]),
            ended=kept["ended"],
        )
