"""Which streams share a time domain: a time-out is about all of them at once (Srivastava & Widom 3.4)."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from headwater.clock.rules import Rules


@frozen
class Domain:
    """Streams that are related by their clauses, or read by one query."""

    streams: frozenset[str]
    timeout: int | None
    """The shortest that one of them declares."""
    reason: str = ""


def domains_of(rules: Rules, together: Iterable[frozenset[str]] = ()) -> list[Domain]:
    """All domains. Streams without a time column belong to none: only their sources speak for them."""
    timed = [name for name, r in rules.streams.items() if r.has_time]
    root = {name: name for name in timed}

    def root_of(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for group in (*rules.relations.groups, *together):
        first, *others = sorted(name for name in group if name in root) or [""]
        for other in others:
            root[root_of(other)] = root_of(first)
    members: dict[str, list[str]] = {}
    for name in timed:
        members.setdefault(root_of(name), []).append(name)
    return [_domain(rules, names) for names in members.values()]


def _domain(rules: Rules, names: list[str]) -> Domain:
    declared = [(r.timeout, r.text("Timeout")) for n in names if (r := rules.streams[n]).timeout is not None]
    timeout, reason = min(declared, default=(None, ""))
    return Domain(frozenset(names), timeout, reason)
