"""What the rows of a tick say of those that are still to come in the same stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headwater.clock.along import credible
from headwater.clock.bounds import RowBound, joined
from headwater.clock.estimate import Estimator
from headwater.clock.rules import Rules, StreamRules
from headwater.clock.seen import Seen
from headwater.clock.track import Track
from headwater.model.time import BEGINNING

ESTIMATED = "HEARTBEAT ESTIMATED"
PARTITION_SKEW = "PartitionSkew"


class OwnBound(NamedTuple):
    """A bound of a stream to itself, as it takes effect."""

    wait: int | None
    """From the sending of a row; None: at once, whatever waits to be taken (a channel keeps the order)."""
    lag: int
    reason: str


class Taking:
    """The rules of one stream, made ready for the partitions of one tick."""

    def __init__(
        self, rules: StreamRules, all_rules: Rules, now: int, drained: int, estimator: Estimator | None
    ) -> None:
        """``drained``: what had arrived by this instant was taken by the ticks before."""
        self.rules, self.now, self.drained = rules, now, drained
        latency = rules.latency or 0
        self._bounds = [
            OwnBound(
                None if rules.ordered and bound.after == 0 else bound.after + latency,
                bound.lag,
                all_rules.reason(rules.name, rules.name, bound),
            )
            for bound in all_rules.usable(rules.name, rules.name)
        ]
        self._row_reason = all_rules.reason(rules.name, rules.name, RowBound(0, 0)) if rules.rows else ""
        learned = () if estimator is None else estimator.bounds()
        self._learned = next((bound.lag for bound in learned if bound.after == 0), None)

    def partition(self, track: Track, seen: Seen) -> Track:
        """A partition with its new rows."""
        newest, sent = seen.newest_of_all, sent_by(self.rules, [seen], self.now)
        track, enough = track.counted(seen.rows + seen.late, self.drained, newest)
        if enough is not None:
            # At once if what follows in the channel was sent later, else when all that was sent before is here.
            due = None if self.rules.ordered else self.now + (self.rules.latency or 0)
            track = _offered(track, due, enough.frontier, enough.reason)
        if self._learned is not None:  # the order of rows holds whether they have waited for us or not
            track = track.raised(track.newest - self._learned + 1, ESTIMATED)
        newest = credible(self.rules, newest, self.now)
        for wait, lag, reason in self._bounds:
            track = _offered(track, None if wait is None else sent + wait, newest - lag + 1, reason)
        for rows, lag in self.rules.rows:
            if self.rules.ordered:
                track = track.counting_from_here(rows, newest - lag + 1, self._row_reason)
            elif self.rules.latency is not None:
                track = track.counting_after(sent + self.rules.latency, rows, newest - lag + 1, self._row_reason)
        return track

    def whole(self, floor: Track, rows: int, newest: int, sent: int, partitions: int) -> Track:
        """The stream as a whole: rows that bounds to other streams count, and the skew of its partitions."""
        floor, enough = floor.counted(rows, self.drained, newest)
        latency = self.rules.latency
        if enough is not None:  # the order across partitions is not known
            at_once = self.rules.ordered and partitions == 1
            floor = _offered(floor, None if at_once else self.now + (latency or 0), enough.frontier, enough.reason)
        if latency is None:
            return floor
        # The partition of the row itself is among them, so its own bounds must allow it; equal to the full matrix where
        # the skew is not smaller than the disorder (digest 8).
        newest = credible(self.rules, newest, self.now)
        for after, lag in joined(self.rules.own, self.rules.partition_skew):
            floor = floor.offered(sent + after + latency, newest - lag + 1, self.rules.text(PARTITION_SKEW))
        return floor


def sent_by(rules: StreamRules, seen: Iterable[Seen], now: int) -> int:
    """By this instant of the wall clock all rows of a tick had been sent (digest 3.3: minimum latency, send time)."""
    if rules.sent is None:
        return now - rules.low
    sent = [s.sent for s in seen if s.newest_of_all > BEGINNING]
    known = sent and min(sent) > BEGINNING
    return min(now - rules.low, max(sent)) if known else now - rules.low


def by_partition(seen: Iterable[Seen], rules: StreamRules) -> dict[str, Seen]:
    """What all tasks saw, one per partition."""
    found: dict[str, Seen] = {}
    for one in seen:
        name = "" if rules.as_one else one.partition
        found[name] = found[name].plus(one) if name in found else one
    return found


def _offered(track: Track, due: int | None, frontier: int, reason: str) -> Track:
    return track.raised(frontier, reason) if due is None else track.offered(due, frontier, reason)
