"""What scripts have declared or defined, by name (case does not matter)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import pyarrow as pa
from attrs import evolve, field, frozen

from headwater.algebra.nodes import Constant, Plan, Source
from headwater.expressions.nodes import Expression
from headwater.language.changes import (
    ARRIVED,
    CHANGED,
    ORIGINAL,
    ChangeFormat,
    Changes,
    carried_columns,
    element_columns,
    envelope,
)
from headwater.language.consistency import Consistency
from headwater.language.emission import Emission
from headwater.language.time_clauses import Clause, HeartbeatFromSource, LateRows, SentAt
from headwater.model.functions import UserFunction
from headwater.model.schema import Field, Schema


class Kind(StrEnum):
    """What a name stands for; they share one space of names."""

    STREAM = "stream"
    TABLE = "table"
    """A relation that varies with time, or a constant one (Krämer 17.4)."""
    VIEW = "view"
    SINK = "sink"
    """A query whose answers go somewhere; it cannot be read."""
    FUNCTION = "function"


@frozen
class Connector:
    """The SOURCE of a stream, or where a sink's rows go: a function that connects to data, with its constant arguments."""

    name: str
    arguments: tuple[object, ...] = ()
    options: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        given = [repr(a) for a in self.arguments] + [f"{name} => {value!r}" for name, value in self.options]
        return f"{self.name}({', '.join(given)})"


@frozen
class Target:
    """Where the answers of a query go (TO), and how often."""

    connector: Connector
    every: int = 0
    """Microseconds of the wall clock: all answers of such an interval go together. 0: those of each tick."""

    def __str__(self) -> str:
        return str(self.connector)


@frozen
class Stream:
    """A stream or a time-varying relation whose elements come from outside.

    Without a time column the elements of either carry their own intervals and may be adjusted; what tells them apart is
    what users mean by them, and that a relation may have a key.
    """

    name: str
    schema: Schema
    source: Connector | None = None
    time: str | None = None
    """The column that orders it (ORDERED BY, TIMESTAMP BY); ``CHANGED`` where the time of change events is their own."""
    clauses: tuple[Clause, ...] = ()
    """What it promises about its time, as declared."""
    kind: Kind = Kind.STREAM
    key: tuple[str, ...] = ()
    """PRIMARY KEY: what the user vouches for, that no two rows of an instant agree in these columns. Not checked."""
    late_rows_of: str | None = None
    """The stream that declared this one for its late rows (LATE ROWS DIVERT INTO); it goes with it."""
    changes: Changes | None = None
    """How its rows say that earlier ones change; None: they do not, unless what is pushed by hand has intervals."""
    numbered: bool = False
    """Without a time column: are its instants plain numbers?"""
    registered: bool = False
    """Do its rows come from a DataFrame?"""
    statistics: tuple[tuple[str, float], ...] = ()
    """What is known of its rows, as declared: ``rate`` (per second where time has a unit), ``distinct(column)``, …"""
    computed: tuple[tuple[str, Expression], ...] = ()
    """Columns that are computed of those that rows bring, before a row is placed in time."""

    @property
    def plan(self) -> Plan:
        """Rows that are stamped with a time column are valid for one instant, and stay as they are.

        So are rows that are stamped when they come. What comes without a time, and what a table holds, has intervals of
        its own and may be changed.
        """
        if self.has_events:
            return Source(self.name, self.schema, events=True, key=self.key)
        instants = self.time is not None or self.stamped_on_arrival or self.late_rows_of is not None
        stamped = self.kind is Kind.STREAM and instants
        source = Source(self.name, self.schema, chronons=stamped, revisable=not stamped)
        told = self.changes
        if told is None or (told.ordered and not told.checked):
            return source
        # What is left out in the end must wait until it is certain that its row does not come.
        waits = not told.ordered or told.lenient
        return evolve(source, unordered=waits, checked=not waits)

    @property
    def has_events(self) -> bool:
        """Are its rows events with images of a row before and after a change?"""
        return self.changes is not None and self.changes.format is ChangeFormat.DEBEZIUM

    @property
    def carried(self) -> Schema:
        """The columns of the elements that are made of its rows."""
        return carried_columns(self.schema, self.key) if self.has_events else self.schema

    @property
    def brought(self) -> Schema:
        """The columns that its rows bring; the others are the engine's to fill in."""
        if self.has_events:
            return Schema(())
        filled = {ARRIVED, ORIGINAL, *(name for name, _ in self.computed)}
        own = tuple(f for f in self.schema if f.name not in filled)
        return self.schema if len(own) == len(self.schema) else Schema(own)

    @property
    def clocked(self) -> frozenset[str]:
        """The columns by which its rows are placed in time: a row without one is none of the stream's."""
        named = (c.column for c in self.clauses if isinstance(c, HeartbeatFromSource | SentAt))
        return frozenset(c for c in (self.time, *named) if c is not None)

    @property
    def optional(self) -> Schema:
        """The columns that its rows may have besides: those of changes."""
        if self.has_events:
            return envelope(self.schema)
        return element_columns(timestamps=self.has_unit) if self.time is None else Schema(())

    @property
    def stamped_on_arrival(self) -> bool:
        """Is the time of a row the wall clock when it comes? Then nothing before the last tick comes any more.

        Of a stream that is pushed by hand the rows tell: those that have intervals keep them.
        """
        comes = self.source is not None or self.registered
        return comes and self.time is None and self.changes is None

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.schema.fields

    @property
    def has_unit(self) -> bool:
        """Is its time measured in microseconds? Else it is a plain number."""
        if self.time is None or self.time == CHANGED:
            return not self.numbered
        return not pa.types.is_integer(self.schema.field(self.time).type)

    @property
    def diverts_into(self) -> str | None:
        return next((c.into for c in self.clauses if isinstance(c, LateRows)), None)


@frozen
class UnboundedWindow:
    """An UNBOUNDED window in a plan, and where the script asks for it."""

    window: Plan
    stream: str
    text: str
    start: int
    end: int


@frozen
class Derived:
    """Defined by a query or by constants: a macro, its plan stands wherever its name does (Krämer 7.2.5)."""

    name: str
    plan: Plan = field(eq=False)
    fields: tuple[Field, ...]
    uses: frozenset[str] = frozenset()
    """The folded names of the streams and functions that the query uses."""
    unbounded: tuple[UnboundedWindow, ...] = ()
    kind: Kind = Kind.STREAM
    key: tuple[str, ...] = ()
    consistency: Consistency | None = None
    emission: Emission | None = None
    """How its rows go out when it runs; of no concern to those who read it."""
    target: Target | None = None
    """Where they go, of a sink."""

    @property
    def is_constant(self) -> bool:
        return isinstance(self.plan, Constant)


@frozen
class Function:
    """A user's function, scalar or aggregate."""

    name: str
    definition: UserFunction
    parameters: tuple[str, ...]
    """Their names."""
    aggregate: bool = False
    kind: Kind = Kind.FUNCTION


Entry = Stream | Derived


class Catalog:
    """Streams, tables and views by name, and functions by theirs."""

    def __init__(self, *, python_functions: bool = True) -> None:
        """``python_functions``: may statements make functions by CREATE FUNCTION, so run any Python there is?"""
        self.python_functions = python_functions
        self._streams: dict[str, Entry] = {}
        self.functions: dict[str, Function] = {}
        """By folded name."""

    def copy(self) -> Catalog:
        """Another catalog with the same entries."""
        same = Catalog(python_functions=self.python_functions)
        same._streams.update(self._streams)
        same.functions.update(self.functions)
        return same

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._streams.values())

    def get(self, name: str) -> Entry | None:
        return self._streams.get(name.casefold())

    def function(self, name: str) -> Function | None:
        return self.functions.get(name.casefold())

    def add(self, entry: Entry) -> None:
        """New, or in place of the one of that name."""
        self._streams[entry.name.casefold()] = entry

    def drop(self, name: str) -> None:
        """The stream, and the one that was declared for its late rows."""
        dropped = self._streams.pop(name.casefold())
        for other in [s for s in self if _belongs_to(s, dropped.name)]:
            del self._streams[other.name.casefold()]

    def names(self, *kinds: Kind) -> list[str]:
        return [s.name for s in self if not kinds or s.kind in kinds]

    def dependents(self, name: str) -> list[str]:
        """Whose queries read the stream, or the stream of its late rows, and whose late rows go into it."""
        folded = {name.casefold(), *(s.name.casefold() for s in self if _belongs_to(s, name))}
        aside = {f"{name.casefold()}{ending}" for ending in ("_late", "_bad")}
        folded |= {found for found in aside if self.get(found) is None}
        readers = [s.name for s in self if isinstance(s, Derived) and folded & s.uses]
        feeders = [s.name for s in self if isinstance(s, Stream) and (s.diverts_into or "").casefold() in folded]
        return [d for d in dict.fromkeys([*readers, *feeders]) if d.casefold() != name.casefold()]

    def callers(self, function: str) -> list[str]:
        """Whose queries call the function."""
        return [s.name for s in self if isinstance(s, Derived) and calls(function) in s.uses]

    def gets_late_rows(self, entry: Stream) -> bool:
        """Are its rows the late ones of another stream?"""
        name = entry.name.casefold()
        diverting = (e for e in self if isinstance(e, Stream) and (e.diverts_into or "").casefold() == name)
        return entry.late_rows_of is not None or any(diverting)

    def keys(self) -> dict[Plan, tuple[str, ...]]:
        """What has a PRIMARY KEY, with that."""
        return {s.plan: s.key for s in self if s.key}

    def sources(self) -> dict[str, Schema]:
        """What comes from outside, with its columns."""
        return {s.name: s.schema for s in self if isinstance(s, Stream)}


def calls(function: str) -> str:
    """How ``uses`` says that a query calls a function."""
    return f"{function.casefold()}()"


def _belongs_to(entry: Entry, name: str) -> bool:
    owner = entry.late_rows_of if isinstance(entry, Stream) else None
    return owner is not None and owner.casefold() == name.casefold()
