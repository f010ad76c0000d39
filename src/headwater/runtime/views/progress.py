"""How an engine, its streams and its queries are doing: objects to read, to print and to log."""

from __future__ import annotations

import html
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from attrs import asdict, define, field, frozen

from headwater.language.introspection import Answer
from headwater.model.time import moment_text as readable
from headwater.runtime.views import metrics
from headwater.runtime.views.amounts import length_text, moment, rate_text, seconds_text, size_text
from headwater.runtime.views.metrics import TickReport, TickTimes

if TYPE_CHECKING:
    from headwater.runtime.views.picture import Picture

log = logging.getLogger("headwater")

_EVERY = 10.0
"""Seconds between two lines of the log."""


@frozen
class StreamProgress:
    """One stream, since the beginning."""

    name: str
    rows: int
    """Rows that came on time."""
    rows_per_second: float
    late_rows: int
    bad_rows: int
    newest: datetime | int | None
    """The time of the newest row."""
    frontier: datetime | int | None
    """Nothing before this comes any more; None: nothing is known, or the stream has ended."""
    late_by: dict[str, int] = field(factory=dict)
    """Late rows by the bound that they violate."""


@frozen
class QueryProgress:
    """How a running query is doing."""

    query: str
    ticks: int
    frontier: datetime | int | None
    """Its answer is final before this."""
    lag: timedelta | int
    """How far that is behind the newest row, in application time."""
    wall_lag: timedelta
    """How long ago, by the clock on the wall, the first row came whose answer is not final yet."""
    staleness: timedelta
    """How long ago the last tick was committed, by the clock on the wall."""
    rows_per_second: float
    """Rows that come in, of its streams."""
    rows_out: int
    rows_out_per_second: float
    state_rows: int
    state_bytes: int
    late_rows: int
    bad_rows: int
    tick_seconds: float
    """The last tick."""
    phases: dict[str, float]
    """The last tick by phase, in seconds."""
    times: TickTimes
    """The ticks lately: median, 95 of 100, and the median of each phase."""
    streams: tuple[str, ...]
    """What it reads."""
    forgotten_rows: int = 0
    """Changes that its level of consistency left out, because they came further behind than it remembers."""

    def __str__(self) -> str:
        return (
            f"{self.query}: {self.rows_out:,} rows out ({rate_text(self.rows_out_per_second)}), "
            f"{length_text(self.lag)} behind (came {seconds_text(self.wall_lag.total_seconds())} ago), "
            f"state {self.state_rows:,} rows in {size_text(self.state_bytes)}, "
            f"{self.late_rows:,} late and {self.bad_rows:,} malformed rows{_forgotten_text(self.forgotten_rows)}; "
            f"{_ticks_text(self.times)}"
        )


@frozen
class EngineProgress:
    """How everything that runs is doing."""

    tick: int
    """The last one that was committed."""
    running: timedelta
    """For how long."""
    rows: int
    rows_per_second: float
    state_rows: int
    """What is shared counts once."""
    state_bytes: int
    times: TickTimes
    streams: tuple[StreamProgress, ...]
    queries: tuple[QueryProgress, ...]

    @property
    def late_rows(self) -> int:
        return sum(stream.late_rows for stream in self.streams)

    @property
    def bad_rows(self) -> int:
        return sum(stream.bad_rows for stream in self.streams)

    def lost(self, *, since: EngineProgress | None = None) -> list[str]:
        """For people, at the end of a run: late rows by the bound that they violate, and what queries have forgotten."""
        late = {s.name: Counter(s.late_by) for s in self.streams}
        forgot = Counter({q.query: q.forgotten_rows for q in self.queries})
        if since is not None:
            for stream in since.streams:
                late.get(stream.name, Counter()).subtract(stream.late_by)
            forgot.subtract({q.query: q.forgotten_rows for q in since.queries})
        told = [f"late in {name}: {late_by_text(its)}" for name, its in late.items() if late_by_text(its)]
        return told + [f"forgotten by {q}: {n:,} that came too far behind" for q, n in forgot.items() if n > 0]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values."""
        return asdict(self)

    def __str__(self) -> str:
        tables = [str(table) for table in (self._streams(), self._queries()) if table.rows]
        return "\n\n".join([self._headline(), *tables])

    def _repr_html_(self) -> str:
        tables = "".join(_html(table) for table in (self._streams(), self._queries()) if table.rows)
        return f"<p>{html.escape(self._headline())}</p>{tables}"

    def _headline(self) -> str:
        return (
            f"tick {self.tick}: {self.rows:,} rows in ({rate_text(self.rows_per_second)}), "
            f"state {self.state_rows:,} rows in {size_text(self.state_bytes)}; {_ticks_text(self.times)}"
        )

    def _streams(self) -> Answer:
        columns = ("stream", "rows", "rate", "late", "malformed", "newest", "final before")
        return Answer(
            "streams",
            columns,
            tuple(
                (
                    *(s.name, f"{s.rows:,}", rate_text(s.rows_per_second), f"{s.late_rows:,}", f"{s.bad_rows:,}"),
                    *(moment_text(s.newest), moment_text(s.frontier)),
                )
                for s in self.streams
            ),
        )

    def _queries(self) -> Answer:
        columns = (
            "query",
            "rows out",
            "rate",
            "final before",
            "behind",
            "came",
            "state rows",
            "state",
            "late",
            "forgotten",
        )
        return Answer(
            "queries",
            columns,
            tuple(
                (
                    *(q.query, f"{q.rows_out:,}", rate_text(q.rows_out_per_second), moment_text(q.frontier)),
                    *(length_text(q.lag), f"{seconds_text(q.wall_lag.total_seconds())} ago"),
                    *(f"{q.state_rows:,}", size_text(q.state_bytes), f"{q.late_rows:,}", f"{q.forgotten_rows:,}"),
                )
                for q in self.queries
            ),
        )


def engine_progress(picture: Picture) -> EngineProgress:
    """All of it, as it is now."""
    kept = [record for its in picture.records.values() for record in its.values()]
    streams = tuple(stream_progress(picture))
    return EngineProgress(
        picture.tick,
        timedelta(seconds=time.time() - picture.metrics.began),
        sum(s.rows for s in streams),
        picture.metrics.rate(),
        sum(record["rows"] for record in kept),
        sum(record["bytes"] for record in kept),
        picture.metrics.times(),
        streams,
        tuple(query_progress(picture, query) for query in picture.queries),
    )


def stream_progress(picture: Picture) -> Iterable[StreamProgress]:
    for stream in metrics.streams(picture):
        timestamps = picture.streams[stream.name]
        yield StreamProgress(
            stream.name,
            stream.rows,
            picture.metrics.rate(stream=stream.name),
            stream.late,
            stream.bad,
            moment(stream.newest, timestamps=timestamps),
            moment(stream.frontier, timestamps=timestamps),
            stream.late_by,
        )


def query_progress(picture: Picture, name: str) -> QueryProgress:
    query = picture.queries[name]
    timestamps = query.timestamps
    kept = metrics.operators(picture, name)
    streams = metrics.streams_of(picture, name)
    counted = [s for s in metrics.streams(picture) if s.name in streams]
    behind = metrics.lag(picture, name)
    ticks = list(picture.metrics.ticks)
    last = ticks[-1] if ticks else None
    return QueryProgress(
        name,
        picture.tick,
        moment(query.frontier, timestamps=timestamps),
        timedelta(microseconds=behind) if timestamps else behind,
        timedelta(seconds=metrics.wall_lag(picture, name)),
        timedelta(seconds=max(time.time() - picture.metrics.committed, 0.0)),
        sum(picture.metrics.rate(stream=stream) for stream in streams),
        query.rows,
        picture.metrics.rate(query=name),
        sum(o.rows for o in kept),
        sum(o.bytes for o in kept),
        sum(s.late for s in counted),
        sum(s.bad for s in counted),
        last.seconds if last else 0.0,
        dict(last.phases) if last else {},
        picture.metrics.times(),
        tuple(sorted(streams)),
        sum(o.forgotten for o in kept),
    )


# -- the log ----------------------------------------------------------------------------------------------------------


@define
class TickLog:
    """Says what ticks do: each of them at DEBUG, and every ten seconds or so at INFO how it goes; and what rows lack."""

    every: float = _EVERY
    _written: float = field(factory=time.monotonic, init=False)
    _ticks: int = field(default=0, init=False)
    _rows: int = field(default=0, init=False)
    _lacked: set[tuple[str, str]] = field(factory=set, init=False)

    def note(self, tick: TickReport, look: Callable[[], Picture]) -> None:
        """``look``: how it goes, which is asked for only where it is told."""
        rows = sum(tick.rows.values())
        self._ticks, self._rows = self._ticks + 1, self._rows + rows
        if log.isEnabledFor(logging.DEBUG):
            answered = sum(tick.answered.values())
            phases = _phases_text(tick.phases)
            log.debug(
                "tick %d: %s rows in, %s out, %s%s", tick.tick, rows, answered, seconds_text(tick.seconds), phases
            )
        now = time.monotonic()
        passed = now - self._written
        if passed >= self.every:
            if log.isEnabledFor(logging.INFO):
                log.info("%s", self._line(look(), tick, passed))
            self._written, self._ticks, self._rows = now, 0, 0

    def tell_missing(self, missing: Mapping[str, Mapping[str, str]]) -> None:
        """Of streams whose rows lack columns, once each: it may be a slip of the pen."""
        for stream, column, text in ((s, c, text) for s, its in missing.items() for c, text in its.items()):
            if (stream, column) not in self._lacked:
                log.warning("%s", text)
            self._lacked.add((stream, column))

    def _line(self, picture: Picture, tick: TickReport, passed: float) -> str:
        times = picture.metrics.times()
        behind = [query_progress(picture, query) for query in picture.queries]
        furthest = max(behind, key=lambda q: q.wall_lag, default=None)
        lag = "" if furthest is None else f", furthest behind: {furthest.query} by {length_text(furthest.lag)}"
        return (
            f"tick {tick.tick}: {self._ticks} ticks in {seconds_text(passed)}, {rate_text(self._rows / passed)} rows in, "
            f"median {seconds_text(times.median)} per tick{lag}"
        )


# -- texts ------------------------------------------------------------------------------------------------------------


def late_by_text(late_by: Mapping[str, int]) -> str:
    """Late rows by the bound that they violate, most first."""
    most_first = sorted(late_by.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{rows:,} by {bound}" for bound, rows in most_first if rows > 0)


def _forgotten_text(rows: int) -> str:
    return f", {rows:,} forgotten" if rows else ""


def _ticks_text(times: TickTimes) -> str:
    if not times.ticks:
        return "no tick yet"
    return f"a tick takes {seconds_text(times.median)} (95 %: {seconds_text(times.p95)}){_phases_text(times.phases)}"


def _phases_text(phases: dict[str, float]) -> str:
    return f": {', '.join(f'{name} {seconds_text(s)}' for name, s in phases.items())}" if phases else ""


def moment_text(found: datetime | int | None) -> str:
    """An instant as a person reads it."""
    if isinstance(found, datetime):
        return readable(found, timespec="milliseconds")
    return "-" if found is None else f"{found:,}"


def _html(table: Answer) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{row(table.columns, 'th')}{''.join(row(cells, 'td') for cells in table.rows)}</table>"
