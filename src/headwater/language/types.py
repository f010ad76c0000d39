"""Types: how SQL, DuckDB and Arrow spell them, what an expression's is, and which go together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headwater.model.schema import sql_name
from headwater.operators.expression import connection, quote

_DECLARED: dict[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.CHAR: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.VARBINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: pa.timestamp("us"),
}
TYPE_NAMES = (
    "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, BINARY, DATE, TIMESTAMP, "
    "ARRAY<type>, STRUCT<name: type>"
)

_DUCKDB_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
    pa.null(): '"NULL"',
}
_FROM_DUCKDB: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "varchar": pa.string(),
    "blob": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "NULL": pa.null(),
    # The model has no unsigned and no 128-bit integers: the next wider one holds the values that occur.
    "utinyint": pa.int16(),
    "usmallint": pa.int32(),
    "uinteger": pa.int64(),
    "ubigint": pa.int64(),
    "hugeint": pa.int64(),
    "uhugeint": pa.int64(),
}
_INEXACT = frozenset({"utinyint", "usmallint", "uinteger", "ubigint", "hugeint", "uhugeint"})
INTERVAL = pa.month_day_nano_interval()
"""A length of time: exists inside expressions only, never in a column."""


def declared_type(node: exp.DataType) -> pa.DataType | None:
    """The Arrow type that a type written in SQL stands for; None if there is no such type."""
    kind = node.this
    if kind in _DECLARED:
        return _DECLARED[kind]
    if kind == exp.DType.DECIMAL:
        numbers = [int(p.name) for p in node.expressions] or [10]
        precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
        return pa.decimal128(precision, scale) if 1 <= precision <= 38 and 0 <= scale <= precision else None
    if kind in (exp.DType.ARRAY, exp.DType.LIST) and node.expressions:
        item = declared_type(node.expressions[0])
        return None if item is None else pa.list_(item)
    if kind == exp.DType.STRUCT and node.expressions:
        fields = [(f.name, declared_type(f.args["kind"])) for f in node.expressions if isinstance(f, exp.ColumnDef)]
        if len(fields) == len(node.expressions) and all(t is not None for _, t in fields):
            return pa.struct(fields)
    return None


_WRITTEN = {
    exp.DType.TIME: "TIME",
    exp.DType.TIMETZ: "TIME WITH TIME ZONE",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE",
    exp.DType.INT128: "HUGEINT",
    exp.DType.UUID: "UUID",
}
"""Types that Spark would call by another name."""


def written_type(node: exp.Expr) -> str:
    """A type that there is not, as it was written."""
    return _WRITTEN.get(node.this) or node.sql(dialect="spark")


def duckdb_name(type_: pa.DataType) -> str:
    """How DuckDB spells an Arrow type."""
    if type_ == INTERVAL:
        return "INTERVAL"
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return f"{duckdb_name(type_.value_type)}[]"
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return f"STRUCT({', '.join(f'{quote(f.name)} {duckdb_name(f.type)}' for f in fields)})"
    return _DUCKDB_NAMES[type_]


def shown(type_: pa.DataType) -> str:
    """The type as it appears in a message."""
    if type_ == INTERVAL:
        return "INTERVAL"
    return "NULL" if pa.types.is_null(type_) else sql_name(type_)


@lru_cache(maxsize=4096)
def infer(sql: str, columns: tuple[tuple[str, pa.DataType], ...]) -> tuple[pa.DataType, bool]:
    """The type of an expression over columns, and whether DuckDB's own is another one (then a cast is needed).

    Raises ``duckdb.Error`` when the expression has no type, and ``KeyError`` when the model does not have it.
    """
    empty = ", ".join(f"CAST(NULL AS {duckdb_name(t)}) AS {quote(name)}" for name, t in columns) or "1 AS one"
    (found,) = connection().sql(f"SELECT {sql} FROM (SELECT {empty})").types
    return _from_duckdb(found)


def _from_duckdb(found: Any) -> tuple[pa.DataType, bool]:
    kind = found.id
    if kind == "decimal":
        parameters = dict(found.children)
        return pa.decimal128(parameters["precision"], parameters["scale"]), False
    if kind in ("list", "array"):
        item, inexact = _from_duckdb(found.children[0][1])
        return pa.list_(item), inexact or kind == "array"
    if kind == "struct":
        fields = [(name, *_from_duckdb(child)) for name, child in found.children]
        return pa.struct([(name, t) for name, t, _ in fields]), any(inexact for *_, inexact in fields)
    if kind == "interval":
        return INTERVAL, False
    name = str(found).strip('"') if str(found).strip('"') == "NULL" else kind
    return _FROM_DUCKDB[name], name in _INEXACT


# -- which types go together ------------------------------------------------------------------------------------------


def is_numeric(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def is_temporal(type_: pa.DataType) -> bool:
    return pa.types.is_date32(type_) or pa.types.is_timestamp(type_)


def is_nested(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_struct(type_)


def comparable(left: pa.DataType, right: pa.DataType) -> bool:
    """True when values of the two types can be compared without an explicit cast."""
    return common_type(left, right) is not None


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both without loss of meaning; None if there is none."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if is_numeric(left) and is_numeric(right):
        return _wider(left, right)
    if is_temporal(left) and is_temporal(right):
        return pa.timestamp("us")
    if pa.types.is_list(left) and pa.types.is_list(right):
        item = common_type(left.value_type, right.value_type)
        return None if item is None else pa.list_(item)
    return None


def _wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()  # a FLOAT has 24 bits only, too few for the other side
    return infer("COALESCE(l, r)", (("l", left), ("r", right)))[0]
