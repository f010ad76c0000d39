"""How streams relate by their clauses: a matrix of bounds, and what follows from it (Srivastava & Widom 3.2, 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from attrs import field, frozen

from headwater.clock.bounds import Bound, Bounds, RowBound, reduced, united
from headwater.clock.closure import closure
from headwater.language.catalog import Stream
from headwater.language.time_clauses import (
    AlongWallClock,
    ClockDeviation,
    Disorder,
    Lag,
    Skew,
    StrictlyIncreasing,
    Tokens,
    Transitive,
    Watermark,
)

Entry = tuple[str, str]
"""(leading stream, lagging stream)."""
WALL = "(wall clock)"
"""The engine's own clock as one of the streams: at every instant it has just sent that instant."""
_SECOND = 1_000_000


@frozen
class Relations:
    """The bounds as declared: of a stream to itself on the diagonal, else of one stream against another."""

    literal: Mapping[Entry, Bounds] = field(factory=dict)
    """Bounds between rows: nothing follows from two of them (digest E2)."""
    clocks: Mapping[Entry, Bounds] = field(factory=dict)
    """Bounds between the clocks of sources: chains of them hold."""
    row_bounds: Mapping[Entry, Sequence[RowBound]] = field(factory=dict)
    texts: dict[tuple[str, str, Bound | RowBound], str] = field(factory=dict)
    """Each bound as SQL."""
    groups: tuple[frozenset[str], ...] = ()
    """Streams that clauses relate to each other."""

    def declared(self) -> dict[Entry, Bounds]:
        """Everything that is written down, before chains."""
        return _both(self.literal, self.clocks)

    def closed(self) -> dict[Entry, Bounds]:
        """With all that follows, where it does."""
        return _both(self.literal, closure(self.clocks))


def relations_of(streams: Sequence[Stream]) -> Relations:
    """What the clauses of these streams say; names of others are passed over."""
    found = _Collector({s.name.casefold(): s for s in streams})
    for stream in streams:
        found.add_stream(stream)
    found.add_domains(streams)
    found.add_counters(streams)
    return Relations(
        {e: reduced(b) for e, b in found.literal.items()},
        {e: reduced(b) for e, b in found.clocks.items()},
        found.row_bounds,
        found.texts,
        tuple(found.groups),
    )


def _both(literal: Mapping[Entry, Bounds], clocks: Mapping[Entry, Bounds]) -> dict[Entry, Bounds]:
    return {
        e: united(literal.get(e, ()), clocks.get(e, ())) for e in (*literal, *(c for c in clocks if c not in literal))
    }


class _Collector:
    """Bounds by entry, while the clauses are gone through."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self.streams = streams
        self.literal: dict[Entry, list[Bound]] = defaultdict(list)
        self.clocks: dict[Entry, list[Bound]] = defaultdict(list)
        self.row_bounds: dict[Entry, list[RowBound]] = defaultdict(list)
        self.texts: dict[tuple[str, str, Bound | RowBound], str] = {}
        self.groups: list[frozenset[str]] = []

    def _add(self, entry: Entry, bound: Bound, text: str, *, clock: bool) -> None:
        (self.clocks if clock else self.literal)[entry].append(bound)
        self.texts.setdefault((*entry, bound), text)

    def add_stream(self, stream: Stream) -> None:
        """Clauses of one stream, about itself or one other."""
        name, clock = stream.name, any(isinstance(c, Transitive) for c in stream.clauses)
        for clause in stream.clauses:
            text = clause.sql(unit=stream.has_unit)
            match clause:
                case Disorder(bound=bound, after=after):
                    self._add((name, name), Bound(after, bound + 1), text, clock=False)
                case StrictlyIncreasing():
                    self._add((name, name), Bound(0, 0), text, clock=False)
                case Watermark(delay=delay):
                    self._add((name, name), Bound(0, delay), text, clock=False)
                case AlongWallClock(deviation=deviation):
                    # A row with time t was sent when it was t - d at the earliest, so what is read later is greater.
                    self._add((name, WALL), Bound(0, deviation), text, clock=True)
                    self._add((WALL, name), Bound(0, deviation + 1), text, clock=True)
                case Lag(other=other, bound=bound, after=after) | Skew(other=other, bound=bound, after=after):
                    leader = self.streams.get(other.casefold())
                    if leader is None or leader.has_unit != stream.has_unit:
                        continue
                    self._add((leader.name, name), Bound(after, bound + 1), text, clock=clock)
                    if isinstance(clause, Skew):
                        self._add((name, leader.name), Bound(after, bound + 1), text, clock=clock)
                    self.groups.append(frozenset((name, leader.name)))

    def add_domains(self, streams: Iterable[Stream]) -> None:
        """CLOCK DEVIATION: every clock is within d of a shared one (digest 7.2 as corrected by E7 and E9)."""
        for members in _by_name((s, c, c.domain) for s in streams for c in s.clauses if isinstance(c, ClockDeviation)):
            rates = [c.rate for _, c in members if c.rate is not None]
            self.groups.append(frozenset(s.name for s, _ in members))
            for leader, a in members:
                for laggard, b in members:
                    same = leader is laggard
                    entry, text = (leader.name, laggard.name), b.sql(unit=laggard.has_unit)
                    # A fast clock is set back to the shared one, by at most its deviation.
                    lag = (a.deviation if same else a.deviation + b.deviation) + 1
                    self._add(entry, Bound(0, lag), text, clock=True)
                    if rates:
                        # The shared clock passes the leader's reading when it has moved by both deviations.
                        units = (a.deviation + b.deviation + 1) * (1 if laggard.has_unit else _SECOND)
                        self._add(entry, Bound(ceil(units / max(rates)), 0), text, clock=True)

    def add_counters(self, streams: Iterable[Stream]) -> None:
        """TOKENS: a token is held for between ``low`` and ``high``, one at a time (digest 7.1)."""
        for members in _by_name((s, c, c.counter) for s in streams for c in s.clauses if isinstance(c, Tokens)):
            self.groups.append(frozenset(s.name for s, _ in members))
            for leader, a in members:
                for laggard, b in members:
                    entry, text = (leader.name, laggard.name), b.sql(unit=laggard.has_unit)
                    if leader is laggard:
                        self._add(entry, Bound(0, 0), text, clock=True)
                        continue
                    self._add(entry, Bound(max(b.high - a.low, 0), 0), text, clock=True)
                    # The next token that the laggard takes is newer than any that was given out before.
                    self.row_bounds[entry].append(RowBound(1, 0))
                    self.texts.setdefault((*entry, RowBound(1, 0)), text)


def _by_name(found: Iterable[tuple[Stream, ClockDeviation | Tokens, str]]) -> list[list]:
    """Grouped by the name of the domain or counter, in which case does not matter, and by kind of time."""
    groups: dict[tuple[str, bool], list] = defaultdict(list)
    for stream, clause, name in found:
        groups[name.casefold(), stream.has_unit].append((stream, clause))
    return list(groups.values())
