"""Values of one type as values of another, where Spark and DuckDB convert alike.

Both refuse what does not fit its new type. Left out, because the engines differ: text that is read, DOUBLE as text or
DECIMAL or FLOAT, a DECIMAL of more than 15 digits as DOUBLE (it is rounded twice in one of them), dates as text (years
before 1 and after 9999).
"""

from __future__ import annotations

from functools import lru_cache

import duckdb
import pyarrow as pa
from attrs import field, frozen

from headwater.backends.spark.spark_values import NotNativeError, literal, spark_type
from headwater.language.types import duckdb_name, infer
from headwater.operators.expression import connection

HUGE = pa.uint64()
"""Stands for DuckDB's integers beyond BIGINT, of which there are constants only."""

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_EXACT_DIGITS = 15
"""So many decimal digits are a whole number that a DOUBLE holds, and the quotient by its scale is rounded once."""
_WORDS = {False: "CAST", True: "TRY_CAST"}


@frozen
class Typed:
    """A part of an expression: its text for Spark, and its type in DuckDB (and so in the model)."""

    text: str
    type: pa.DataType
    literal: str | None = field(default=None)
    """DuckDB's text of a constant as it was written: it takes the type that fits best where it stands."""
    never_zero: bool = False


def constant(sql: str, type_: pa.DataType | None = None) -> Typed:
    """An expression without columns, computed by DuckDB."""
    value, found = _computed(sql, type_)
    return Typed(literal(value, found), found, never_zero=value is None or bool(value != 0))


@lru_cache(maxsize=4096)
def _computed(sql: str, type_: pa.DataType | None) -> tuple[object, pa.DataType]:
    wanted = sql if type_ is None else f"CAST({sql} AS {duckdb_name(type_)})"
    try:
        found, inexact = infer(wanted, ())
        if inexact or pa.types.is_null(found):
            raise NotNativeError(sql)
        value = connection().sql(f"SELECT {wanted} AS value").to_arrow_table().column(0)[0].as_py()
    except (duckdb.Error, KeyError, OverflowError, ValueError, pa.ArrowInvalid) as problem:
        raise NotNativeError(sql) from problem
    return value, found


def inferred(template: str, *operands: Typed) -> pa.DataType:
    """DuckDB's type of an operation on such operands: ``{0}``, ``{1}``, … (``{args}``: all of them)."""
    shapes = [o.literal or f'"operand {i}"' for i, o in enumerate(operands)]
    columns = tuple((f"operand {i}", o.type) for i, o in enumerate(operands) if o.literal is None)
    try:
        found, inexact = infer(template.format(*shapes, args=", ".join(shapes)), columns)
    except (duckdb.Error, KeyError) as problem:
        raise NotNativeError(template) from problem
    if inexact:
        raise NotNativeError(template)
    return found


# -- without loss -----------------------------------------------------------------------------------------------------


def widened(value: Typed, type_: pa.DataType) -> str:
    """The text of the value as one of the other type, which DuckDB converts it to without being asked."""
    if value.literal is not None:
        return constant(value.literal, type_).text
    if value.type == type_:
        return value.text
    if not _widens(value.type, type_):
        raise NotNativeError(f"{value.type} as {type_}")
    return f"CAST({value.text} AS {spark_type(type_)})"


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    if old in _DIGITS:
        if new in _DIGITS:
            return _DIGITS[old] <= _DIGITS[new]
        if pa.types.is_decimal(new):
            return _DIGITS[old] <= new.precision - new.scale
        return new in (pa.float32(), pa.float64())
    if pa.types.is_decimal(old):
        if pa.types.is_decimal(new):
            return old.scale <= new.scale and old.precision - old.scale <= new.precision - new.scale
        return pa.types.is_float64(new) and old.precision <= _EXACT_DIGITS
    return (old, new) in ((pa.float32(), pa.float64()), (pa.date32(), pa.timestamp("us")))


def as_decimal(type_: pa.DataType) -> tuple[int, int]:
    """Precision and scale of a DECIMAL, or of the one that holds all integers of the type."""
    if pa.types.is_decimal(type_):
        return type_.precision, type_.scale
    if type_ not in _DIGITS:
        raise NotNativeError(f"{type_} as DECIMAL")
    return _DIGITS[type_], 0


def comparable(left: Typed, right: Typed) -> pa.DataType:
    """The type in which the two are compared."""
    ours, theirs = left.type, right.type
    if pa.types.is_null(ours) or pa.types.is_null(theirs):
        return theirs if pa.types.is_null(ours) else ours
    if ours == theirs:
        return ours
    if {ours, theirs} == {pa.date32(), pa.timestamp("us")}:
        return pa.timestamp("us")
    if pa.types.is_float64(ours) or pa.types.is_float64(theirs):
        return pa.float64()
    if pa.types.is_float32(ours) or pa.types.is_float32(theirs):
        return pa.float32()
    if ours in _DIGITS and theirs in _DIGITS:
        return max(ours, theirs, key=_DIGITS.__getitem__)
    (precision, scale), (other_precision, other_scale) = as_decimal(ours), as_decimal(theirs)
    fraction = max(scale, other_scale)
    digits = max(precision - scale, other_precision - other_scale) + fraction
    if digits > 38:
        raise NotNativeError(f"{ours} compared with {theirs}")
    return pa.decimal128(digits, fraction)


# -- asked for --------------------------------------------------------------------------------------------------------


def cast(value: Typed, type_: pa.DataType, *, attempt: bool) -> str:
    """CAST, or TRY_CAST: NULL where it cannot be done."""
    old, new = value.type, type_
    if old == new:
        return value.text
    whole = old in _DIGITS and (new in _DIGITS or pa.types.is_decimal(new) or new in (pa.string(), pa.bool_()))
    logical = pa.types.is_boolean(old) and (new in _DIGITS or pa.types.is_string(new))
    decimal = pa.types.is_decimal(old) and (pa.types.is_decimal(new) or pa.types.is_string(new))
    day = (old, new) == (pa.timestamp("us"), pa.date32())
    if not (whole or logical or decimal or day or pa.types.is_null(old) or _widens(old, new)):
        raise NotNativeError(f"CAST from {old} to {new}")
    return f"{_WORDS[attempt]}({value.text} AS {spark_type(new)})"


_FURTHEST = "9.223372036854775807E18D"


def truncated(value: Typed, type_: pa.DataType, *, attempt: bool) -> str:
    """CAST(TRUNC(value) AS an integer): what Spark's own CAST does, but for 2^63, which it lets pass as 2^63 - 1."""
    word, name = _WORDS[attempt], spark_type(type_)
    if type_ not in _DIGITS:
        raise NotNativeError(f"TRUNC as {type_}")
    if value.type in _DIGITS or pa.types.is_decimal(value.type):
        return f"{word}({value.text} AS {name})"
    if value.type not in (pa.float32(), pa.float64()):
        raise NotNativeError(f"TRUNC of {value.type}")
    real = f"CAST({value.text} AS DOUBLE)" if pa.types.is_float32(value.type) else value.text
    if type_ != pa.int64():
        return f"{word}({real} AS {name})"
    return f"CASE WHEN {real} < {_FURTHEST} THEN {word}({real} AS BIGINT) ELSE {word}({real} * 2 AS BIGINT) END"


def whole(function: str, value: Typed, type_: pa.DataType) -> str:
    """CAST(CEIL(value) AS BIGINT), or of FLOOR. Spark's own stop at the ends of BIGINT, DuckDB's CAST refuses them."""
    if type_ != pa.int64():
        raise NotNativeError(f"{function} as {type_}")
    kind = inferred(f"{function}({{0}})", value)
    if value.type in _DIGITS and kind in _DIGITS:
        return f"CAST({value.text} AS BIGINT)"
    if pa.types.is_decimal(value.type) and pa.types.is_decimal(kind):
        return f"CAST({function}({value.text}) AS BIGINT)"
    if not pa.types.is_floating(kind):
        raise NotNativeError(f"{function} of {value.type}")
    real = widened(value, pa.float64())
    inside = f"{real} >= -9.223372036854775808E18D AND {real} < {_FURTHEST}"
    return f"CASE WHEN {inside} THEN {function}({real}) ELSE CAST({real} * 2 AS BIGINT) END"


def interval(sql: str) -> tuple[int, int, int]:
    """Months, days and nanoseconds of a constant length of time."""
    try:
        value = connection().sql(f"SELECT {sql} AS value").to_arrow_table().column(0)[0].as_py()
    except (duckdb.Error, pa.ArrowInvalid) as problem:
        raise NotNativeError(sql) from problem
    if value is None:
        raise NotNativeError(sql)
    return value.months, value.days, value.nanoseconds
