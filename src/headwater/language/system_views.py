"""Tables that every engine has: what it knows of itself, to be queried like anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from attrs import frozen

from headwater.language.catalog import Catalog, Entry, Kind, Stream
from headwater.language.durations import shown_duration
from headwater.language.put_aside import put_aside
from headwater.model.element import Row
from headwater.model.schema import Schema
from headwater.model.time import render

if TYPE_CHECKING:
    from headwater.clock.clock import Clock


class Known(NamedTuple):
    """What an engine knows of itself after a tick; nothing of it may be changed."""

    clock: Clock
    counts: Mapping[str, Mapping[str, int]]
    """By stream: rows, late rows, malformed rows since the beginning."""


@frozen
class SystemView:
    """A table with what ``rows`` gives at each tick, valid in wall-clock time from tick to tick; SHOW names it, too."""

    stream: Stream
    rows: Callable[[Known], Iterable[Row]]
    shown: Callable[[Known], Iterable[Row]]
    """The same for people: times as they read them."""

    @classmethod
    def of(
        cls,
        name: str,
        schema: Schema,
        rows: Callable[[Known], Iterable[Row]],
        *,
        shown: Callable[[Known], Iterable[Row]] | None = None,
    ) -> SystemView:
        return cls(Stream(name, schema, kind=Kind.TABLE), rows, shown or rows)

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def schema(self) -> Schema:
        return self.stream.schema

    @property
    def title(self) -> str:
        """Of what SHOW answers."""
        return f"SHOW {self.name.upper()}"


def _read_beat(beat: Row, *, unit: bool) -> Row:
    """A row of heartbeats as people read it."""
    stream, partition, heartbeat, newest, due, value, blocked, late, bound = beat
    times = [None if t is None else render(t, timestamps=unit) for t in (heartbeat, newest, value)]
    when = None if due is None else render(due, timestamps=True)
    length = None if bound is None else shown_duration(bound, unit=unit)
    return stream, partition, times[0], times[1], when, times[2], blocked, late, length


HEARTBEATS = SystemView.of(
    "heartbeats",
    Schema.of(
        stream="STRING",
        partition="STRING",
        heartbeat="BIGINT",
        max_ts="BIGINT",
        next_due="BIGINT",
        next_value="BIGINT",
        blocked_by="STRING",
        late_rows="BIGINT",
        estimated_delta="BIGINT",
    ),
    lambda engine: (beat for stream in sorted(engine.clock.progress) for beat in engine.clock.describe(stream)),
    shown=lambda engine: (
        _read_beat(beat, unit=engine.clock.rules.streams[stream].has_unit)
        for stream in sorted(engine.clock.progress)
        for beat in engine.clock.describe(stream)
    ),
)
"""How far each partition of each stream is, and why no further.

Times are instants of the stream; ``next_due`` is microseconds of the wall clock.
"""

SYSTEM_VIEWS: dict[str, SystemView] = {view.name: view for view in (HEARTBEATS,)}


def find_entry(catalog: Catalog, name: str) -> Entry | None:
    """What is declared under a name, or else what every engine, or every stream, has."""
    view = SYSTEM_VIEWS.get(name.casefold())
    return catalog.get(name) or (view.stream if view is not None else put_aside(catalog, name))


def comes_with(catalog: Catalog, name: str) -> str:
    """The stream whose source brings the rows of this one: late and malformed rows come with those in time."""
    entry = find_entry(catalog, name)
    return entry.late_rows_of or name if isinstance(entry, Stream) else name


def have_unit(catalog: Catalog, names: Iterable[str]) -> bool:
    """Are the instants of these streams microseconds? Rows put aside have the time of the stream whose rows they are."""
    streams = [entry for name in names if isinstance(entry := find_entry(catalog, name), Stream)]
    parents = [catalog.get(s.late_rows_of) if s.late_rows_of is not None else s for s in streams]
    return all(stream.has_unit for stream in parents if isinstance(stream, Stream))
