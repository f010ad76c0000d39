"""Columns and their SQL types, over Arrow."""

from __future__ import annotations

import re
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
        fields = (f"{_plain(type_.field(i).name)}: {sql_name(type_.field(i).type)}" for i in range(type_.num_fields))
        return f"STRUCT<{', '.join(fields)}>"
    return _SQL_NAMES.get(type_, str(type_).upper())


_NAME = re.compile(r"\s*(?:([^\W\d]\w*)|`((?:[^`]|``)*)`)")
_DECIMAL = re.compile(r"\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def _plain(name: str) -> str:
    """The name of a field, in backquotes unless it is one word."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else "`" + name.replace("`", "``") + "`"


def parse_sql_type(text: str) -> pa.DataType:
    """The Arrow type that ``sql_name`` spells so.

    >>> parse_sql_type("ARRAY<STRUCT<a: INT, b: DECIMAL(10,2)>>")
    ListType(list<item: struct<a: int32, b: decimal128(10, 2)>>)
    """
    type_, end = read_sql_type(text)
    if text[end:].strip():
        raise _no_type(text)
    return type_


def read_sql_type(text: str, at: int = 0) -> tuple[pa.DataType, int]:
    """The type whose name begins there, and where the name ends."""
    found = _NAME.match(text, at)
    word = (found.group(1) or "").upper() if found else ""
    if not found or word not in (*_SQL_TYPES, "NULL", "DECIMAL", "ARRAY", "STRUCT"):
        raise _no_type(text[at:])
    end = found.end()
    if word == "DECIMAL":
        numbers = _DECIMAL.match(text, end)
        if not numbers or not 1 <= int(numbers[1]) <= 38 or int(numbers[2]) > int(numbers[1]):
            raise _no_type(text[at:])
        return pa.decimal128(int(numbers[1]), int(numbers[2])), numbers.end()
    if word == "ARRAY":
        item, end = read_sql_type(text, _after(text, end, "<"))
        return pa.list_(item), _after(text, end, ">")
    if word == "STRUCT":
        return _read_struct(text, end)
    return pa.null() if word == "NULL" else _SQL_TYPES[word], end


def _read_struct(text: str, at: int) -> tuple[pa.DataType, int]:
    fields: list[tuple[str, pa.DataType]] = []
    end = _after(text, at, "<")
    while not (closed := re.compile(r"\s*>").match(text, end)):
        end = _after(text, end, ",") if fields else end
        name = _NAME.match(text, end)
        if not name:
            raise _no_type(text[end:])
        type_, end = read_sql_type(text, _after(text, name.end(), ":"))
        fields.append((name[1] or name[2].replace("``", "`"), type_))
    return pa.struct(fields), closed.end()


def _after(text: str, at: int, sign: str) -> int:
    rest = text[at:].lstrip()
    if not rest.startswith(sign):
        raise _no_type(text)
    return len(text) - len(rest) + 1


def _no_type(text: str) -> HeadwaterError:
    return HeadwaterError("UNKNOWN_TYPE", f"there is no type {text.strip()}")


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
