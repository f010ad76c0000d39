"""The types of columns: one table of how SQL, DuckDB and Spark spell them, and back from SQL's spelling."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from headwater.errors import HeadwaterError

INTERVAL = pa.month_day_nano_interval()
"""A length of time: exists inside expressions only, never in a column."""


class Spelling(NamedTuple):
    """The names of one type."""

    sql: str
    """Also Spark's."""
    duckdb: str


SPELLINGS: dict[pa.DataType, Spelling] = {
    pa.bool_(): Spelling("BOOLEAN", "BOOLEAN"),
    pa.int8(): Spelling("TINYINT", "TINYINT"),
    pa.int16(): Spelling("SMALLINT", "SMALLINT"),
    pa.int32(): Spelling("INT", "INTEGER"),
    pa.int64(): Spelling("BIGINT", "BIGINT"),
    pa.float32(): Spelling("FLOAT", "FLOAT"),
    pa.float64(): Spelling("DOUBLE", "DOUBLE"),
    pa.string(): Spelling("STRING", "VARCHAR"),
    pa.binary(): Spelling("BINARY", "BLOB"),
    pa.date32(): Spelling("DATE", "DATE"),
    pa.timestamp("us"): Spelling("TIMESTAMP", "TIMESTAMP"),
    pa.null(): Spelling("NULL", '"NULL"'),
    INTERVAL: Spelling("INTERVAL", "INTERVAL"),
}
"""The plain types; DECIMAL, ARRAY and STRUCT are made of them."""

TYPE_NAMES = (
    "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, BINARY, DATE, TIMESTAMP, "
    "ARRAY<type>, STRUCT<name: type>"
)
"""For messages: the types that a column can have."""

_BY_SQL_NAME = {spelling.sql: type_ for type_, spelling in SPELLINGS.items() if type_ != INTERVAL}


def sql_type(name: str) -> pa.DataType:
    """The Arrow type of a plain SQL type name (``"BIGINT"``)."""
    return _BY_SQL_NAME[name.upper()]


def sql_name(type_: pa.DataType) -> str:
    """How SQL and Spark spell an Arrow type: ``BIGINT``, ``DECIMAL(10,2)``, ``ARRAY<INT>``, ``STRUCT<a: INT>``."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"ARRAY<{sql_name(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"STRUCT<{_fields(type_, lambda name: f'{_plain(name)}:', sql_name)}>"
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return SPELLINGS[type_].sql if type_ in SPELLINGS else str(type_).upper()


def duckdb_name(type_: pa.DataType) -> str:
    """How DuckDB spells an Arrow type; raises ``KeyError`` for one that the model does not have."""
    if pa.types.is_list(type_):
        return f"{duckdb_name(type_.value_type)}[]"
    if pa.types.is_struct(type_):
        return f"STRUCT({_fields(type_, lambda name: quote(name, chr(34)), duckdb_name)})"
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return SPELLINGS[type_].duckdb


def _fields(type_: pa.DataType, name: Callable[[str], str], speller: Callable[[pa.DataType], str]) -> str:
    return ", ".join(f"{name(type_.field(i).name)} {speller(type_.field(i).type)}" for i in range(type_.num_fields))


def quote(text: str, sign: str) -> str:
    """The text between two signs, those inside of it doubled."""
    return f"{sign}{text.replace(sign, sign * 2)}{sign}"


def string_literal(text: str) -> str:
    """The text as SQL has it, in single quotes."""
    return quote(text, "'")


def _plain(name: str) -> str:
    """The name of a field, in backquotes unless it is one word."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else quote(name, "`")


# -- back ---------------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"\s*(?:([^\W\d]\w*)|`((?:[^`]|``)*)`)")
_DECIMAL = re.compile(r"\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)")


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
    if not found or word not in (*_BY_SQL_NAME, "DECIMAL", "ARRAY", "STRUCT"):
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
    return _BY_SQL_NAME[word], end


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
