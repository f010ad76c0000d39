"""A clock under other rules: streams come, go, and are altered while they run (digest 12.7)."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from headwater.clock.along import credible
from headwater.clock.bounds import is_at_least_as_tight, joined
from headwater.clock.progress import Progress
from headwater.clock.rules import Rules, StreamRules
from headwater.clock.taking import PARTITION_SKEW
from headwater.clock.track import Track
from headwater.model.time import BEGINNING


def altered(old: Rules, new: Rules, progress: Mapping[str, Progress], now: int | None) -> dict[str, Progress]:
    """What each stream has promised stays promised, also under bounds that no longer say it.

    Raises that are still to come were promised to nobody: they stay where all bounds are as tight as before, else they are
    discarded. Then the newest rows are offered again; they came at ``now`` at the latest, so this never comes too early.
    """
    found = {}
    for name, rules in new.streams.items():
        before = progress.get(name)
        if before is None:
            before = Progress.of(rules)
        elif old.streams[name] == rules and _incoming(old, name) == _incoming(new, name):
            found[name] = before
            continue
        else:
            before = _adjusted(old, new, name, before)
        found[name] = before if now is None else _offered_again(new, name, before, progress, now)
    return found


def _incoming(rules: Rules, laggard: str) -> dict[str, tuple]:
    """All that others say of a stream, and how soon."""
    leaders = {i for i, j in (*rules.bounds, *rules.row_bounds) if j == laggard}
    return {
        i: (
            rules.bounds.get((i, laggard), ()),
            rules.row_bounds.get((i, laggard), ()),
            rules.streams[i].low if i in rules.streams else 0,
        )
        for i in leaders
    }


def _is_looser(old: Rules, new: Rules, name: str) -> bool:
    """Does something no longer hold that raises still to come rest on?"""
    a, b = old.streams[name], new.streams[name]
    longer = a.latency is not None and (b.latency is None or b.latency > a.latency)
    if longer or b.low < a.low or (a.ordered and not b.ordered) or a.estimated != b.estimated or a.as_one != b.as_one:
        return True
    if not set(a.rows) <= set(b.rows) or not is_at_least_as_tight(b.own, a.own):
        return True
    if not is_at_least_as_tight(b.partition_skew, a.partition_skew):
        return True
    after = _incoming(new, name)
    for leader, (bounds, rows, low) in _incoming(old, name).items():
        now_bounds, now_rows, now_low = after.get(leader, ((), (), 0))
        if not is_at_least_as_tight(now_bounds, bounds) or not set(rows) <= set(now_rows) or now_low < low:
            return True
    return False


def _adjusted(old: Rules, new: Rules, name: str, before: Progress) -> Progress:
    a, b = old.streams[name], new.streams[name]
    found = before if a.estimated == b.estimated else before.learning_anew(b)
    if _is_looser(old, new, name):
        parts = tuple((part, track.without_raises()) for part, track in found.parts)
        found = evolve(found, floor=found.floor.without_raises(), parts=parts)
    if a.as_one != b.as_one:  # partitions are told apart only from now on, or no longer
        frontier, reason = (
            (before.floor.frontier, before.floor.reason) if before.ended else (before.frontier, before.reason)
        )
        found = evolve(found, floor=found.floor.raised(frontier, reason), parts=())
    return found


def _offered_again(rules: Rules, name: str, its: Progress, progress: Mapping[str, Progress], now: int) -> Progress:
    """From the newest row of every partition and of every stream that leads this one."""
    own = rules.streams[name]
    if not own.has_time:
        return its
    parts = tuple((part, _own_again(rules, own, track, now)) for part, track in its.parts)
    floor = its.floor
    if own.latency is not None:
        for after, lag in joined(own.own, own.partition_skew):
            newest = credible(own, its.newest, now)
            floor = _offered(floor, now + after + own.latency, newest, lag, own.text(PARTITION_SKEW))
        for (leader, laggard), bounds in rules.bounds.items():
            if laggard == name and leader in progress:
                for bound in bounds:
                    due = now + bound.after + own.latency
                    reason = rules.reason(leader, name, bound)
                    newest = credible(rules.streams[leader], progress[leader].newest, now)
                    floor = _offered(floor, due, newest, bound.lag, reason)
    return evolve(its, floor=floor, parts=parts)


def _own_again(rules: Rules, own: StreamRules, track: Track, now: int) -> Track:
    for bound in rules.usable(own.name, own.name):
        wait = 0 if own.ordered and bound.after == 0 else own.latency or 0
        reason = rules.reason(own.name, own.name, bound)
        newest = credible(own, track.newest, now)
        track = _offered(track, now + bound.after + wait, newest, bound.lag, reason)
    return track


def _offered(track: Track, due: int, newest: int, lag: int, reason: str) -> Track:
    return track.offered(due, newest - lag + 1, reason) if newest > BEGINNING else track
