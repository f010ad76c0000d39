"""Streams that fall silent: time-outs of a domain, and streams that others do not wait for (digest 6, 12.4).

Both are assertions of the user, not inferences: rows that come later all the same are late by declaration. Silence is
measured where everything that arrived has been taken, so the clock of a time-out stands still while there is a backlog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.clock.domains import Domain
from headwater.clock.progress import Progress
from headwater.clock.rules import Rules
from headwater.model.time import BEGINNING


def silenced(rules: Rules, progress: Mapping[str, Progress], domains: Iterable[Domain]) -> dict[str, Progress]:
    """With all that follows from silence."""
    found = dict(progress)
    for domain in domains:
        live = {name: found[name] for name in domain.streams if not found[name].ended}
        due = _timeout_due(domain, found)
        if due is not None and all(p.drained >= due for p in live.values()):
            newest = _newest(domain, found)
            found.update((name, p.raised(newest + 1, domain.reason)) for name, p in live.items())
        found.update(_idle(rules, found, domain))
    return found


def _timeout_due(domain: Domain, progress: Mapping[str, Progress]) -> int | None:
    arrivals = [arrival for name in domain.streams if (arrival := progress[name].arrival) is not None]
    return None if domain.timeout is None or not arrivals else max(arrivals) + domain.timeout


def _newest(domain: Domain, progress: Mapping[str, Progress]) -> int:
    return max(progress[name].newest for name in domain.streams)


def _idle_due(rules: Rules, progress: Mapping[str, Progress], name: str) -> int | None:
    """From when on a stream is idle if nothing comes."""
    silence, its = rules.streams[name].idle, progress[name]
    last = its.since if its.arrival is None else its.arrival
    return None if silence is None or last is None or its.ended else last + silence


def _idle(rules: Rules, progress: Mapping[str, Progress], domain: Domain) -> list[tuple[str, Progress]]:
    """Idle streams follow those of their domain that are not."""
    found = []
    for name in domain.streams:
        due = _idle_due(rules, progress, name)
        if due is not None and progress[name].drained >= due:
            frontier = _others(rules, progress, domain, name, progress[name].drained)
            found.append((name, progress[name].raised(frontier, rules.streams[name].text("IdleAfter"))))
    return found


def _others(rules: Rules, progress: Mapping[str, Progress], domain: Domain, name: str, at: int) -> int:
    """How far the streams are that are not idle at an instant; the ended ones do not count either."""
    active = []
    for other in domain.streams - {name}:
        due = _idle_due(rules, progress, other)
        if not progress[other].ended and (due is None or due > min(at, progress[other].drained)):
            active.append(progress[other].frontier)
    return min(active, default=BEGINNING)
