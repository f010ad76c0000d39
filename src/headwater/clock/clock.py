"""How far time has come in all streams: one immutable value, and a pure function from what a tick saw to the next one.

The driver and every task compute it alike, so they agree on frontiers without asking each other. The order within a tick
follows from the strict "after" of the bounds (digest 3.2, 12.2): rows are judged against the frontiers before the tick,
then bounds are offered, then what is due fires.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from headwater.clock.along import credible
from headwater.clock.altered import altered
from headwater.clock.domains import Domain, domains_of
from headwater.clock.lags import ACROSS, packs
from headwater.clock.progress import STAMPED, Progress
from headwater.clock.raises import Step
from headwater.clock.ring import newest_at
from headwater.clock.rules import Rules
from headwater.clock.seen import Seen
from headwater.clock.silence import silenced
from headwater.clock.taking import sent_by
from headwater.clock.view import Heartbeat, heartbeats
from headwater.model.time import BEGINNING


@frozen
class Clock:
    """Frontiers of all streams, and everything that will raise them."""

    rules: Rules = field(factory=Rules)
    progress: Mapping[str, Progress] = field(factory=dict)
    now: int | None = None
    """The stamp of the last tick."""
    together: tuple[frozenset[str], ...] = ()
    """The streams that each running query reads, as of the last tick."""

    @classmethod
    def of(cls, rules: Rules) -> Clock:
        """Before the first row."""
        return cls(rules, {name: Progress.of(r) for name, r in rules.streams.items()})

    def after(
        self,
        seen: Mapping[str, Sequence[Seen]],
        now: int,
        *,
        drained: Mapping[str, int] | None = None,
        together: Iterable[Collection[str]] = (),
        ended: Collection[str] = frozenset(),
    ) -> Clock:
        """The clock once a tick has come; no frontier goes back.

        Parameters
        ----------
        seen
            What all tasks saw of each stream.
        now
            The wall clock after everything was polled, in microseconds. It does not step back.
        drained
            The instant up to which everything that arrived in a stream has been taken: that of the last poll that left
            nothing behind. Without it, ``now``.
        together
            The streams that each running query reads.
        ended
            Streams of which nothing more comes.
        """
        now = now if self.now is None else max(now, self.now)
        upto = {name: min(now, (drained or {}).get(name, now)) for name in self.progress}
        progress = {
            name: before.taken(self.rules.streams[name], self.rules, seen.get(name, ()), self.now, now, upto[name])
            for name, before in self.progress.items()
        }
        groups = tuple(frozenset(group) for group in together)
        domains = domains_of(self.rules, groups)
        self._offer_across(progress, seen, now)
        self._learn_across(progress, seen, domains, now)
        progress = {name: p.fired(self.rules, name, now) for name, p in progress.items()}
        stamped = [name for name, r in self.rules.streams.items() if r.stamped]
        progress.update((name, progress[name].raised(now + 1, STAMPED)) for name in stamped)
        progress.update((name, evolve(progress[name], ended=True)) for name in ended if name in progress)
        self._follow_others(progress, domains, now)
        return evolve(self, progress=silenced(self.rules, progress, domains), now=now, together=groups)

    def _offer_across(self, progress: dict[str, Progress], seen: Mapping[str, Sequence[Seen]], now: int) -> None:
        """What the rows of each stream say of the others. Late rows were sent like all others, so they count."""
        rules = self.rules
        sent: dict[str, tuple[int, int]] = {}
        for name, parts in seen.items():
            newest = max((s.newest_of_all for s in parts), default=BEGINNING)
            if name in progress and newest > BEGINNING:
                sent[name] = sent_by(rules.streams[name], parts, now), credible(rules.streams[name], newest, now)
        for leader, laggard in dict.fromkeys((*rules.bounds, *rules.row_bounds)):
            latency = rules.streams[laggard].latency
            if leader in sent and latency is not None:
                by, newest = sent[leader]
                floor = progress[laggard].floor
                for bound in rules.bounds.get((leader, laggard), ()):
                    reason = rules.reason(leader, laggard, bound)
                    floor = floor.offered(by + bound.after + latency, newest - bound.lag + 1, reason)
                for counted in rules.row_bounds.get((leader, laggard), ()):
                    reason = rules.reason(leader, laggard, counted)
                    floor = floor.counting_after(by + latency, counted.rows, newest - counted.lag + 1, reason)
                if floor is not progress[laggard].floor:
                    progress[laggard] = evolve(progress[laggard], floor=floor)

    def _learn_across(
        self, progress: dict[str, Progress], seen: Mapping[str, Sequence[Seen]], domains: Iterable[Domain], now: int
    ) -> None:
        """How far the rows of each stream are behind the newest that had come of the others before (digest 9.1c)."""
        for pack in (
            p for d in domains if len(d.streams) > 1 for p in packs(self.rules.streams, d.streams, self.progress)
        ):
            for name in pack.names:
                its, leader = progress[name], pack.leader(name)
                rows = [s for s in seen.get(name, ()) if s.newest_of_all > BEGINNING]
                if its.across is None or leader is None or not rows:
                    continue
                known = its.across if its.across.against == pack.names else its.across.anew(pack.names)
                age = pack.newest(leader) - min(s.oldest_of_all for s in rows) + 1
                count = sum(s.rows + s.late for s in rows)
                # A leader that reads a backlog is behind itself: that says nothing of who lags whom.
                known = known.learn(age, count, now, only_more=progress[leader].behind)
                progress[name] = evolve(its, across=known)

    def _follow_others(self, progress: dict[str, Progress], domains: Iterable[Domain], now: int) -> None:
        """What has been learned so, applied to what had come of the others when all of the stream was taken."""
        for pack in (p for d in domains if len(d.streams) > 1 for p in packs(self.rules.streams, d.streams, progress)):
            for name in pack.names:
                its, leader = progress[name], pack.leader(name)
                if its.across is None or its.across.lag is None or its.across.against != pack.names or leader is None:
                    continue
                newest = pack.newest_at(leader, min(now, its.drained))
                if newest > BEGINNING and not its.ended:
                    progress[name] = its.raised(newest - its.across.lag + 1, ACROSS)

    def ended(self, stream: str) -> Clock:
        """Nothing more comes of a stream."""
        return evolve(self, progress={**self.progress, stream: evolve(self.progress[stream], ended=True)})

    def with_rules(self, rules: Rules) -> Clock:
        """Streams have come, gone or been altered; what a stream has promised stays promised (digest 12.7)."""
        return evolve(self, rules=rules, progress=altered(self.rules, rules, self.progress, self.now))

    # -- what is known ------------------------------------------------------------------------------------------------

    def frontier(self, stream: str) -> int:
        """Rows before it are late."""
        return self.progress[stream].frontier

    def newest(self, stream: str) -> int:
        """The largest time seen."""
        return self.progress[stream].newest

    def newest_at(self, stream: str, wall: int) -> int:
        """The largest time seen by an instant of the wall clock; perhaps a little less, if that was long ago."""
        return newest_at(self.progress[stream].ring, wall)

    def reason(self, stream: str) -> str:
        """The bound that set the frontier, as SQL."""
        return self.progress[stream].reason

    def late(self, stream: str) -> dict[str, int]:
        """Late rows, by the bound that they violate."""
        return dict(self.progress[stream].late)

    def next_raise(self, stream: str) -> Step | None:
        """What raises the frontier of a stream next if no row comes."""
        return self.progress[stream].next_raise(self.rules, stream)

    def domains(self) -> list[Domain]:
        """Which streams share a time-out."""
        return domains_of(self.rules, self.together)

    def blocked_by(self, streams: Iterable[str]) -> tuple[str, ...]:
        """Of some streams those that hold the others back; none if all that has come of them is final."""
        its = {name: self.progress[name] for name in streams}
        slowest = min((p.frontier for p in its.values()), default=BEGINNING)
        if all(p.newest < slowest or p.newest == BEGINNING for p in its.values()):
            return ()
        return tuple(sorted(name for name, p in its.items() if p.frontier == slowest))

    def describe(self, stream: str) -> list[Heartbeat]:
        """The rows of the view ``heartbeats`` for a stream, one per partition."""
        domain = next((d.streams for d in self.domains() if stream in d.streams), frozenset((stream,)))
        return heartbeats(stream, self.progress[stream], self.next_raise(stream), self.blocked_by(domain))

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def to_manifest(self) -> dict[str, Any]:
        """Everything but the rules, as JSON."""
        return {
            "now": self.now,
            "together": [sorted(group) for group in self.together],
            "streams": {name: p.to_manifest() for name, p in self.progress.items()},
        }

    @classmethod
    def from_manifest(cls, kept: dict[str, Any], rules: Rules) -> Clock:
        """As it was, with the rules under which it was written. Streams that it does not know begin anew."""
        progress = {
            name: Progress.from_manifest(kept["streams"][name]) if name in kept["streams"] else Progress.of(r)
            for name, r in rules.streams.items()
        }
        return cls(rules, progress, kept["now"], tuple(frozenset(group) for group in kept["together"]))
