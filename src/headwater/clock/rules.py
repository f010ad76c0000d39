"""What the declared clauses of all streams come to: bounds, latencies, time-outs (Srivastava & Widom 2, 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, field, frozen

from headwater.clock.bounds import Bound, Bounds, RowBound, reduced
from headwater.clock.relations import WALL, Relations, relations_of
from headwater.language.catalog import Stream
from headwater.language.time_clauses import (
    DECLARED_BOUNDS,
    AlongWallClock,
    HeartbeatEstimated,
    HeartbeatFromSource,
    IdleAfter,
    Latency,
    OrderedTransport,
    PartitionSkew,
    RowsPerTimestamp,
    SentAt,
    Timeout,
    Watermark,
)

_SETTING = (Timeout, IdleAfter, RowsPerTimestamp, PartitionSkew)


@frozen(kw_only=True)
class StreamRules:
    """What is known of one stream's time before any row has come."""

    name: str
    has_unit: bool = True
    has_time: bool = True
    """Without a time column only the source's promises count."""
    stamped: bool = False
    """The time of a row is the wall clock when it comes: what has not come yet is newer."""
    own: Bounds = ()
    """Of the stream to itself, for each partition."""
    rows: tuple[RowBound, ...] = ()
    low: int = 0
    """The shortest latency."""
    latency: int | None = 0
    """The longest; 0 where bounds describe the stream as it arrives; None: unknown."""
    ordered: bool = True
    """Rows of a partition arrive in the order of sending."""
    sent: str | None = None
    """The column of the time of sending."""
    heartbeat: str | None = None
    """The column of the source's own heartbeats."""
    ahead: int | None = None
    """No time is further ahead of the wall clock; None: that is not known."""
    partition_skew: Bounds = ()
    timeout: int | None = None
    idle: int | None = None
    as_one: bool = False
    """Bounds hold over all partitions together, so these are not told apart."""
    estimated: HeartbeatEstimated | None = None
    learns_wall_clock: bool = False
    """How far its times are behind the wall clock is learned."""
    clauses: tuple[tuple[str, str], ...] = ()
    """By kind of clause, the SQL of those that set frontiers and are no bounds in time."""

    def text(self, kind: str) -> str:
        return dict(self.clauses).get(kind, kind)


@frozen(kw_only=True)
class Rules:
    """What is known of all streams, and of each against the others."""

    streams: Mapping[str, StreamRules] = field(factory=dict)
    bounds: Mapping[tuple[str, str], Bounds] = field(factory=dict)
    """By (leading stream, lagging stream), chains included where they are sound; never of a stream to itself.

    The wall clock (``WALL``) leads those whose times go along with it.
    """
    row_bounds: Mapping[tuple[str, str], tuple[RowBound, ...]] = field(factory=dict)
    relations: Relations = field(factory=Relations)
    """As declared."""

    def reason(self, leader: str, laggard: str, bound: Bound | RowBound) -> str:
        """The bound as its declaration says it."""
        found = self.relations.texts.get((leader, laggard, bound))
        if found is not None:
            return found
        if isinstance(bound, RowBound):
            return self.streams[laggard].text("RowsPerTimestamp")
        if (WALL, laggard) in self.bounds:
            return self._along(laggard)
        return f"TRANSITIVE bounds from {leader}" if leader != laggard else "TRANSITIVE bounds"

    def standing_still(self) -> Rules:
        """As if the wall clock said nothing: what remains needs rows, or delays and silences that are over."""
        streams = {name: evolve(r, stamped=False, learns_wall_clock=False) for name, r in self.streams.items()}
        return evolve(self, streams=streams, bounds={e: b for e, b in self.bounds.items() if e[0] != WALL})

    def _along(self, laggard: str) -> str:
        """What follows from the wall clock, by the clause that says so of the stream itself, or of one that leads it."""
        own = [text for (i, j, _), text in self.relations.texts.items() if i == WALL and j == laggard]
        return own[0] if own else "TRANSITIVE bounds from the wall clock"

    def usable(self, leader: str, laggard: str) -> Bounds:
        """The bounds that can take effect: without a known latency only those of an ordered stream to itself, at once."""
        rules = self.streams[laggard]
        bounds = rules.own if leader == laggard else self.bounds.get((leader, laggard), ())
        if rules.latency is not None:
            return bounds
        return tuple(b for b in bounds if leader == laggard and b.after == 0)


def rules_of(streams: Iterable[Stream]) -> Rules:
    """The rules of these streams; clauses that name streams which do not exist (yet) say nothing."""
    known = {s.name: s for s in streams}
    relations = relations_of([s for s in known.values() if s.time is not None])
    closed = relations.closed()
    found = {name: _stream_rules(s, closed.get((name, name), ())) for name, s in known.items()}
    return Rules(
        streams=found,
        bounds={(i, j): bounds for (i, j), bounds in closed.items() if j not in (i, WALL)},
        row_bounds={(i, j): tuple(sorted(set(rows))) for (i, j), rows in relations.row_bounds.items()},
        relations=relations,
    )


def _stream_rules(stream: Stream, own: Bounds) -> StreamRules:
    by_kind = {type(c): c for c in stream.clauses}
    if stream.time is None:
        return StreamRules(name=stream.name, has_time=False, stamped=stream.stamped_on_arrival)
    latency, ordered = by_kind.get(Latency), OrderedTransport in by_kind
    high: int | None = None if ordered else 0
    low = 0
    if isinstance(latency, Latency):
        low, high = latency.low, latency.high
    estimated = _estimated(stream)
    texts = {type(c).__name__: c.sql(unit=stream.has_unit) for c in stream.clauses if isinstance(c, _SETTING)}
    sent, heartbeat = by_kind.get(SentAt), by_kind.get(HeartbeatFromSource)
    timeout, idle, along = by_kind.get(Timeout), by_kind.get(IdleAfter), by_kind.get(AlongWallClock)
    return StreamRules(
        name=stream.name,
        has_unit=stream.has_unit,
        own=own,
        rows=_row_bounds(stream, own),
        low=low,
        latency=high,
        ordered=ordered or latency is None,
        sent=sent.column if isinstance(sent, SentAt) else None,
        heartbeat=heartbeat.column if isinstance(heartbeat, HeartbeatFromSource) else None,
        ahead=along.deviation if isinstance(along, AlongWallClock) else None,
        partition_skew=reduced((c.after, c.bound + 1) for c in stream.clauses if isinstance(c, PartitionSkew)),
        timeout=timeout.silence if isinstance(timeout, Timeout) else None,
        idle=idle.silence if isinstance(idle, IdleAfter) else None,
        as_one=Watermark in by_kind or estimated is not None,
        estimated=estimated,
        learns_wall_clock=estimated is not None and estimated.wall_clock,
        clauses=tuple(sorted(texts.items())),
    )


def _estimated(stream: Stream) -> HeartbeatEstimated | None:
    """Bounds are learned where nothing is declared that could raise the frontier.

    Before anything is learned a second protects TIMESTAMPs (INITIAL), so they need no rows to warm up; plain numbers do.
    """
    asked = next((c for c in stream.clauses if isinstance(c, HeartbeatEstimated)), None)
    if any(isinstance(c, (*DECLARED_BOUNDS, HeartbeatFromSource, AlongWallClock)) for c in stream.clauses):
        return asked
    by_default = HeartbeatEstimated(warmup_rows=0, wall_clock=True) if stream.has_unit else HeartbeatEstimated()
    return asked or by_default


def _row_bounds(stream: Stream, own: Bounds) -> tuple[RowBound, ...]:
    """ROWS PER TIMESTAMP AT MOST k, with disorder d: of the times within d of a row's there are at most k(2d + 1) rows.

    When all but the row itself have come, either one of them was so new that disorder alone makes the row's time final,
    or none is left. In order (d = 0) it is the (k - 1, 0) of digest E11.
    """
    most = next((c for c in stream.clauses if isinstance(c, RowsPerTimestamp)), None)
    if most is None or not own or own[0].after > 0:
        return ()
    disorder = max(own[0].lag - 1, 0)
    bound = RowBound(most.rows * (2 * disorder + 1) - 1, 0)
    return (bound,)
