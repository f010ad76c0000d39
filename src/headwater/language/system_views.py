"""Tables that every engine has: what it knows of itself, to be queried like anything else."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.language.catalog import Catalog, Entry, Kind, Stream
from headwater.language.put_aside import put_aside
from headwater.model.schema import Schema

HEARTBEATS = Stream(
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
    kind=Kind.TABLE,
)
"""How far each partition of each stream is, and why no further. Valid in wall-clock time, from tick to tick.

Times are instants of the stream; ``next_due`` is microseconds of the wall clock.
"""

SYSTEM_VIEWS: dict[str, Stream] = {HEARTBEATS.name: HEARTBEATS}


def found(catalog: Catalog, name: str) -> Entry | None:
    """What is declared under a name, or else what every engine, or every stream, has."""
    return catalog.get(name) or SYSTEM_VIEWS.get(name.casefold()) or put_aside(catalog, name)


def comes_with(catalog: Catalog, name: str) -> str:
    """The stream whose source brings the rows of this one: late and malformed rows come with those in time."""
    entry = found(catalog, name)
    return entry.late_rows_of or name if isinstance(entry, Stream) else name


def have_unit(catalog: Catalog, names: Iterable[str]) -> bool:
    """Are the instants of these streams microseconds? Rows put aside have the time of the stream whose rows they are."""
    streams = [entry for name in names if isinstance(entry := found(catalog, name), Stream)]
    parents = [catalog.get(s.late_rows_of) if s.late_rows_of is not None else s for s in streams]
    return all(stream.has_unit for stream in parents if isinstance(stream, Stream))
