"""Columns and their SQL types, over Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from attrs import frozen

from headwater.errors import HeadwaterError

START, END, WEIGHT = "_start", "_end", "_weight"
RESERVED = (START, END, WEIGHT)

_SQL_TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
}
_SQL_NAMES = {arrow: name for name, arrow in _SQL_TYPES.items()}


def sql_type(name: str) -> pa.DataType:
    """The Arrow type of a plain SQL type name (``"BIGINT"``)."""
    return _SQL_TYPES[name.upper()]


def sql_name(type_: pa.DataType) -> str:
    """How SQL spells an Arrow type: ``BIGINT``, ``DECIMAL(10,2)``, ``ARRAY<INT>``, ``STRUCT<a: INT>``."""
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"ARRAY<{sql_name(type_.value_type)}>"
    if pa.types.is_struct(type_):
        fields = (f"{type_.field(i).name}: {sql_name(type_.field(i).type)}" for i in range(type_.num_fields))
        return f"STRUCT<{', '.join(fields)}>"
    return _SQL_NAMES.get(type_, str(type_).upper())


@frozen
class Field:
    """One column."""

    name: str
    type: pa.DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name} {sql_name(self.type)}{'' if self.nullable else ' NOT NULL'}"


@frozen
class Schema:
    """The payload columns of a stream, in order."""

    fields: tuple[Field, ...]

    @classmethod
    def of(cls, **columns: pa.DataType | str) -> Schema:
        """``Schema.of(x="BIGINT", y="STRING")``: the short form for tests and examples."""
        return cls(tuple(Field(n, sql_type(t) if isinstance(t, str) else t) for n, t in columns.items()))

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        return cls(tuple(Field(f.name, f.type, f.nullable) for f in schema if f.name not in RESERVED))

    def to_arrow(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.type, f.nullable) for f in self.fields])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return tuple(f.type for f in self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.fields)) + ")"

    def index(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise HeadwaterError(
                "UNKNOWN_COLUMN", f'column "{name}" does not exist', hint=f"The columns are {', '.join(self.names)}."
            ) from None

    def field(self, name: str) -> Field:
        return self.fields[self.index(name)]

    def select(self, names: Iterable[str]) -> Schema:
        return Schema(tuple(self.field(n) for n in names))
