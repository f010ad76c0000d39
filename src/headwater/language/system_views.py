"""Tables that every engine has: what it knows of itself, to be queried like anything else."""

from __future__ import annotations

from headwater.language.catalog import Catalog, Entry, Kind, Stream
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
    """What is declared under a name, or else what every engine has."""
    return catalog.get(name) or SYSTEM_VIEWS.get(name.casefold())
