"""Types as they are written in SQL, and as messages show them."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from headwater.model.types import TYPE_NAMES, sql_name

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
}

_TIMESTAMPS = (
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPTZ,
    exp.DType.TIMESTAMPLTZ,
    exp.DType.TIMESTAMPNTZ,
)
"""All are instants in UTC, with or without a zone in their names; which one is written says nothing more."""
_FINEST = 6
"""Digits of a second that an instant has."""


def declared_type(node: exp.DataType) -> pa.DataType | None:
    """The Arrow type that a type written in SQL stands for; None if there is no such type."""
    kind = node.this
    if kind in _DECLARED:
        return _DECLARED[kind]
    if kind in _TIMESTAMPS:
        digits = [int(p.name) for p in node.expressions] or [_FINEST]
        return pa.timestamp("us") if digits[0] <= _FINEST else None
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
    exp.DType.INT128: "HUGEINT",
    exp.DType.UUID: "UUID",
}
"""Types that Spark would call by another name."""


def written_type(node: exp.Expr) -> str:
    """A type that there is not, as it was written."""
    if node.this in _TIMESTAMPS:
        return f"TIMESTAMP({node.expressions[0].name})"
    return _WRITTEN.get(node.this) or node.sql(dialect="spark")


def types_hint(node: exp.Expr) -> str:
    """What to write instead of a type that there is not."""
    if node.this in _TIMESTAMPS:
        return f"Times have microseconds, so at most {_FINEST} digits: TIMESTAMP({_FINEST}), or just TIMESTAMP."
    if any(t.this == exp.DType.MAP for t in node.find_all(exp.DataType)):
        return (
            "There are no maps: write ARRAY<STRUCT<key: STRING, value: INT>>, a STRUCT if the keys are known, or STRING "
            "with JSON, of which json_value(m, '$.key') takes a part."
        )
    return f"There are {TYPE_NAMES}."


def shown(type_: pa.DataType) -> str:
    """The type as it appears in a message."""
    return sql_name(type_)
