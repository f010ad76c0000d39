"""What is known of the rows of a plan's snapshots: columns that are never NULL, keys, columns of one value only.

Everything here is about single snapshots. An operator that is snapshot-reducible (Krämer 10.1, Lemma 10.1) has the
properties that its relational counterpart has; a window brings rows of several instants together, and only what holds
over all of time survives it. Rows count with their copies: where there is a key there are no duplicates. Values are
compared as DISTINCT does: NULL is equal to NULL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import pyarrow as pa
from attrs import frozen

from headwater.model.schema import Field, Schema
from headwater.model.types import sql_type

_MOST_KEYS = 8
"""Keys beyond these are forgotten: joins multiply them."""

Key = frozenset[str]
AT_MOST_ONE: Key = frozenset()
"""The key of a snapshot that has at most one row."""


@frozen(eq=False)
class Rows:
    """What is known of the rows at every instant."""

    schema: Schema
    """The columns; those that are not nullable are never NULL."""
    keys: tuple[Key, ...] = ()
    """Sets of columns in which no two rows of a snapshot agree; none contains another. Empty set: at most one row."""
    uniform: frozenset[str] = frozenset()
    """Columns in which all rows of a snapshot agree."""
    constants: Mapping[str, str] = {}
    """Columns that have the same value at all times, with its SQL text; a part of ``uniform``."""

    @property
    def whole(self) -> Key:
        """All columns together."""
        return frozenset(self.schema.names)

    def only_constants(self, schema: Schema | None = None, keys: Collection[Key] = ()) -> Rows:
        """Rows of several instants meet: no key holds, and only what is the same at all times stays the same."""
        return simplest(self.schema if schema is None else schema, keys, constants=self.constants)

    def constants_among(self, names: Collection[str]) -> dict[str, str]:
        return {name: value for name, value in self.constants.items() if name in names}


def simplest(
    schema: Schema,
    keys: Collection[Key] = (),
    uniform: Iterable[str] = (),
    constants: Mapping[str, str] | None = None,
    equal: Sequence[tuple[str, str]] = (),
) -> Rows:
    """The properties in their simplest form: a column that never differs helps no key, nor does a second equal one."""
    always = constants or {}
    same = frozenset((*uniform, *always))
    for a, b in equal:
        if a in same or b in same:
            same |= {a, b}
    if not keys:
        return Rows(schema, (), same, always)
    reduced = _minimal({key - same for key in _with_equals(set(keys), equal)})
    if AT_MOST_ONE in reduced:
        same = frozenset(schema.names)
    return Rows(schema, reduced, same, always)


def _with_equals(keys: set[Key], equal: Sequence[tuple[str, str]]) -> set[Key]:
    """Of two equal columns each can stand for the other, and no key needs both."""
    for a, b in equal:
        keys = {key - {b} if a in key else key for key in keys}
        keys |= {key - {a} | {b} for key in keys if a in key} | {key - {b} | {a} for key in keys if b in key}
    return keys


def _minimal(keys: Iterable[Key]) -> tuple[Key, ...]:
    kept: list[Key] = []
    for key in sorted(keys, key=lambda k: (len(k), sorted(k))):
        if len(kept) < _MOST_KEYS and not any(smaller <= key for smaller in kept):
            kept.append(key)
    return tuple(kept)


def united(inputs: Sequence[Rows]) -> Rows:
    """Rows of all inputs: what is the same constant in all of them stays one (8.3, 8.13)."""
    fields, fixed = [], {}
    for columns in zip(*(i.schema for i in inputs), strict=True):
        first = columns[0]
        fields.append(Field(first.name, first.type, any(c.nullable for c in columns)))
        value, *others = (i.constants.get(c.name) for i, c in zip(inputs, columns, strict=True))
        if value is not None and all(value == other for other in others):
            fixed[first.name] = value
    return Rows(Schema(tuple(fields)), (), frozenset(fixed), fixed)


# -- columns --------------------------------------------------------------------------------------------------------


def nullable_fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(Field(f.name, f.type) for f in fields)


def known_not_null(schema: Schema, names: Iterable[str]) -> Schema:
    """The columns, some of them known not to be NULL."""
    known = frozenset(names)
    if not any(f.nullable and f.name in known for f in schema):
        return schema
    return Schema(tuple(Field(f.name, f.type, f.nullable and f.name not in known) for f in schema))


def types_of(schema: Schema) -> dict[str, pa.DataType]:
    return {f.name: f.type for f in schema}


_EXACT = frozenset(map(sql_type, ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "STRING", "DATE", "TIMESTAMP")))


def is_exact(type_: pa.DataType) -> bool:
    """Are equal values of the type the same in every respect? 0.0 equals -0.0, but not after 1 / x."""
    return type_ in _EXACT
