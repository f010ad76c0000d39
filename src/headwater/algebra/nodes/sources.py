"""Where rows come from: streams, and relations that never change."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from headwater.algebra.nodes.base import Leaf, Plan
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.plan_line import after, plain_name, schema_text
from headwater.algebra.plan_values import literal
from headwater.algebra.row_properties import AT_MOST_ONE, Rows, is_exact, simplest
from headwater.algebra.time_properties import NO_ROW_TIMES, RowTimes, Times
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY


@frozen(cache_hash=True)
class Source(Leaf):
    """A registered stream.

    ``chronons``: every element is valid for one instant; ``revisable``: elements may be adjusted; ``unordered``: a change
    may come before the element that it changes; ``checked``: one that does is a mistake. ``events``: its rows are made of
    change events, each valid from its event until the next one: of the ``key``, if the table has one.
    """

    name: str
    columns: Schema
    chronons: bool = False
    revisable: bool = True
    unordered: bool = False
    checked: bool = False
    events: bool = False
    key: tuple[str, ...] = ()

    words = ("source",)

    @property
    def streams(self) -> tuple[str, ...]:
        return (self.name,)

    def line(self) -> str:
        flags = f"{' chronons' if self.chronons else ''}{'' if self.revisable else ' final'}"
        flags += f"{' unordered' if self.unordered else ''}{' checked' if self.checked else ''}"
        if self.events:
            flags += f" events{after('key', self.key)}"
        return f"source {plain_name(self.name)} {schema_text(self.columns)}{flags}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        name, columns = cursor.plain_name("the name of a stream"), cursor.schema()
        chronons = cursor.accept("chronons")
        revisable = not cursor.accept("final")
        unordered, checked = cursor.accept("unordered"), cursor.accept("checked")
        events = cursor.accept("events")
        key = cursor.columns_after(columns, "key") if events else ()
        return cls(name, columns, chronons, revisable, unordered, checked, events, key)

    def label(self, *, timed: bool) -> str:
        return f"Source {self.name}"

    def _schema(self) -> Schema:
        return self.columns

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """Of a table that is made of change events each key has one row at a time."""
        return simplest(self.columns, [frozenset(self.key)]) if self.events and self.key else Rows(self.columns)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        """A source that carries intervals may have endless ones."""
        return Times(1 if self.chronons else None)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        """The column that orders it is not known here (``row_times.py``)."""
        return RowTimes(lifetime=1 if self.chronons else None)

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return True


@frozen(cache_hash=True)
class Constant(Leaf):
    """A relation that never changes: its rows are valid in [0, infinity) (17.4)."""

    columns: Schema
    rows: tuple[tuple[object, ...], ...] = ()
    """Python values, one per column; without rows the empty stream."""

    words = ("constant",)

    def line(self) -> str:
        types = self.columns.types
        rows = (", ".join(literal(v, t) for v, t in zip(row, types, strict=True)) for row in self.rows)
        return f"constant {schema_text(self.columns)} [{', '.join(f'({row})' for row in rows)}]"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        columns = cursor.schema()
        rows: list[tuple[object, ...]] = []
        cursor.expect("[")
        while not cursor.accept("]"):
            if rows:
                cursor.expect(",")
            rows.append(_read_row(cursor, columns))
        return cls(columns, tuple(rows))

    def label(self, *, timed: bool) -> str:
        many = len(self.rows)
        return f"Constant of {many} row{'' if many == 1 else 's'}" if many else "Nothing"

    def _schema(self) -> Schema:
        return self.columns

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """The rows themselves are known (17.4)."""
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(self.columns)
        pairs = list(zip(self.columns, columns, strict=True))
        fields = tuple(Field(f.name, f.type, f.nullable and any(v is None for v in values)) for f, values in pairs)
        exact = {f.name: values for f, values in pairs if is_exact(f.type)}
        many = len(self.rows)
        keys = [frozenset((name,)) for name, values in exact.items() if len(set(values)) == many]
        if many <= 1:
            keys = [AT_MOST_ONE]
        elif exact and len(set(zip(*exact.values(), strict=True))) == many:
            keys.append(frozenset(exact))
        fixed = {name: literal(values[0]) for name, values in exact.items() if len(set(values)) == 1}
        return simplest(Schema(fields), keys, constants=fixed)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return Times(INFINITY)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return NO_ROW_TIMES

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return False


def _read_row(cursor: Cursor, columns: Schema) -> tuple[object, ...]:
    cursor.expect("(")
    values: list[object] = []
    for type_ in columns.types:
        if values:
            cursor.expect(",")
        values.append(cursor.constant(type_))
    cursor.expect(")")
    return tuple(values)
