"""How everything is at one moment: what views are given to look at, instead of what runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from headwater.clock.clock import Clock
from headwater.language.consistency import Consistency
from headwater.language.emission import Emission
from headwater.runtime.deployment import Running
from headwater.runtime.graph import Graph
from headwater.runtime.stage import Record
from headwater.runtime.views.metrics import Metrics


@frozen
class QueryPicture:
    """One query."""

    name: str
    since: int
    """The tick before which it had seen nothing."""
    frontier: int
    rows: int
    """Rows it has answered since it was started here."""
    level: Consistency
    emission: Emission
    timestamps: bool
    """Are its instants microseconds? Else they are plain numbers."""

    @classmethod
    def of(cls, query: Running) -> QueryPicture:
        output = query.output
        known = (query.name, query.since, query.frontier, query.rows)
        return cls(*known, query.level, output.emission, output.timestamps)

    @classmethod
    def kept(cls, name: str, kept: Mapping[str, Any], *, timestamps: bool) -> QueryPicture:
        """Of a query that does not run, as the checkpoint has it."""
        level, emission = Consistency.from_manifest(kept["level"]), Emission.from_manifest(kept["emission"])
        return cls(name, kept["since"], kept["frontier"], 0, level, emission, timestamps)


@frozen
class Picture:
    """An engine at one moment. Nothing in it changes any more."""

    tick: int
    """The last one that was committed."""
    records: Mapping[int, Mapping[str, Record]]
    """By shard and node key: what operators keep."""
    counts: Mapping[str, Mapping[str, int]]
    """By stream: rows, late rows, malformed rows since the beginning."""
    newest: Mapping[str, int]
    """By stream: its newest row."""
    streams: Mapping[str, bool]
    """By stream whose rows are taken: are its instants microseconds?"""
    clock: Clock
    graph: Graph
    queries: Mapping[str, QueryPicture]
    """What runs."""
    awaited: Mapping[str, QueryPicture]
    """What the checkpoint has, and must be started again or dropped before anything runs."""
    metrics: Metrics
