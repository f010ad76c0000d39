"""The streams that scripts have declared or defined, by name (case does not matter)."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import field, frozen

from headwater.algebra.nodes import Plan, Source, TimeWindow
from headwater.model.schema import Field, Schema


@frozen
class Connector:
    """The SOURCE of a stream: a function that connects to data, with its constant arguments."""

    name: str
    arguments: tuple[object, ...] = ()
    options: tuple[tuple[str, object], ...] = ()


@frozen
class Stream:
    """A stream whose elements come from outside."""

    name: str
    schema: Schema
    source: Connector | None = None
    time: str | None = None
    """The column that orders it (ORDERED BY, TIMESTAMP BY)."""

    @property
    def plan(self) -> Plan:
        return Source(self.name, self.schema)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.schema.fields


@frozen
class UnboundedWindow:
    """An UNBOUNDED window in a plan, and where the script asks for it."""

    window: TimeWindow
    stream: str
    text: str
    start: int
    end: int


@frozen
class Derived:
    """A stream defined by a query: a macro, its plan stands wherever its name does (Krämer 7.2.5)."""

    name: str
    plan: Plan = field(eq=False)
    fields: tuple[Field, ...]
    uses: frozenset[str] = frozenset()
    """The folded names of the streams that the query reads."""
    unbounded: tuple[UnboundedWindow, ...] = ()


class Catalog:
    """Streams by name."""

    def __init__(self) -> None:
        self._streams: dict[str, Stream | Derived] = {}

    def __iter__(self) -> Iterator[Stream | Derived]:
        return iter(self._streams.values())

    def get(self, name: str) -> Stream | Derived | None:
        return self._streams.get(name.casefold())

    def add(self, stream: Stream | Derived) -> None:
        assert stream.name.casefold() not in self._streams
        self._streams[stream.name.casefold()] = stream

    def drop(self, name: str) -> None:
        del self._streams[name.casefold()]

    def names(self) -> list[str]:
        return [s.name for s in self]

    def dependents(self, name: str) -> list[str]:
        """The derived streams whose queries read the stream."""
        return [s.name for s in self if isinstance(s, Derived) and name.casefold() in s.uses]

    def sources(self) -> dict[str, Schema]:
        """The streams that come from outside, with their columns."""
        return {s.name: s.schema for s in self if isinstance(s, Stream)}
