"""Columns and their SQL types, over Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from attrs import frozen

from headwater.errors import HeadwaterError
from headwater.model.types import sql_name, sql_type

START, END, WEIGHT = "_start", "_end", "_weight"
RESERVED = (START, END, WEIGHT)


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
