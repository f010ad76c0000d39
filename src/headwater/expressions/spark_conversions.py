"""Values of one type as values of another, where Spark and DuckDB convert alike.

Both refuse what does not fit its new type. Left out, because the engines differ: text that is read, DOUBLE as text or
DECIMAL or FLOAT, a DECIMAL of more than 15 digits as DOUBLE (it is rounded twice in one of them), dates as text (years
before 1 and after 9999).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import duckdb
import pyarrow as pa
from attrs import frozen

from headwater.expressions.connection import connection, infer
from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.nodes import Column, Expression, Literal, UserCall
from headwater.expressions.spark_values import NotNativeError, literal, spark_type
from headwater.model.types import INTERVAL, duckdb_name

Speak = Callable[[Expression], str]
"""Spark's text of an expression."""

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_EXACT_DIGITS = 15
"""So many decimal digits are a whole number that a DOUBLE holds, and the quotient by its scale is rounded once."""
_WORDS = {False: "CAST", True: "TRY_CAST"}


@frozen
class Constant:
    """Spark's text of a value that has been computed."""

    text: str
    never_zero: bool


def is_folded(expression: Expression) -> bool:
    """Is it computed at once? It has no columns, and is more than a constant as written."""
    if isinstance(expression, (Literal, Column)) or expression.type == INTERVAL:
        return False
    return not expression.columns and not any(isinstance(e, UserCall) for e in expression.walk())


@lru_cache(maxsize=4096)
def constant(expression: Expression, type_: pa.DataType | None = None) -> Constant:
    """An expression without columns, computed by DuckDB, as one of the type."""
    text = to_duckdb(expression)
    wanted = text if type_ is None else f"CAST({text} AS {duckdb_name(type_)})"
    try:
        found, inexact = infer(wanted, ())
        if inexact or pa.types.is_null(found):
            raise NotNativeError(text)
        value = connection().sql(f"SELECT {wanted} AS value").to_arrow_table().column(0)[0].as_py()
    except (duckdb.Error, KeyError, OverflowError, ValueError, pa.ArrowInvalid) as problem:
        raise NotNativeError(text) from problem
    return Constant(literal(value, found), value is None or bool(value != 0))


# -- without loss -----------------------------------------------------------------------------------------------------


def widened(value: Expression, type_: pa.DataType, speak: Speak) -> str:
    """The text of the value as one of the other type, which DuckDB converts it to without being asked."""
    if isinstance(value, Literal):
        return constant(value, type_).text
    if value.type == type_:
        return speak(value)
    if not _widens(value.type, type_):
        raise NotNativeError(f"{value.type} as {type_}")
    return f"CAST({speak(value)} AS {spark_type(type_)})"


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    if pa.types.is_list(old) and pa.types.is_list(new):
        return old.value_type in _DIGITS and new.value_type in _DIGITS and _widens(old.value_type, new.value_type)
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


def comparable(left: Expression, right: Expression) -> pa.DataType:
    """The type in which the two are compared."""
    one, other = left.type, right.type
    if pa.types.is_null(one) or pa.types.is_null(other):
        return other if pa.types.is_null(one) else one
    if one == other:
        return one
    if {one, other} == {pa.date32(), pa.timestamp("us")}:
        return pa.timestamp("us")
    if pa.types.is_float64(one) or pa.types.is_float64(other):
        return pa.float64()
    if pa.types.is_float32(one) or pa.types.is_float32(other):
        return pa.float32()
    if one in _DIGITS and other in _DIGITS:
        return max(one, other, key=_DIGITS.__getitem__)
    (precision, scale), (other_precision, other_scale) = as_decimal(one), as_decimal(other)
    fraction = max(scale, other_scale)
    digits = max(precision - scale, other_precision - other_scale) + fraction
    if digits > 38:
        raise NotNativeError(f"{one} compared with {other}")
    return pa.decimal128(digits, fraction)


# -- asked for --------------------------------------------------------------------------------------------------------


def cast(value: Expression, type_: pa.DataType, speak: Speak, *, attempt: bool) -> str:
    """CAST, or TRY_CAST: NULL where it cannot be done."""
    old, new = value.type, type_
    if old == new:  # what DuckDB has another type for
        raise NotNativeError(f"{old} as it is")
    if new in _DIGITS and (pa.types.is_floating(old) or pa.types.is_decimal(old)):
        return _truncated(speak(value), old, new, attempt=attempt)
    whole = old in _DIGITS and (new in _DIGITS or pa.types.is_decimal(new) or new in (pa.string(), pa.bool_()))
    logical = pa.types.is_boolean(old) and (new in _DIGITS or pa.types.is_string(new))
    decimal = pa.types.is_decimal(old) and (pa.types.is_decimal(new) or pa.types.is_string(new))
    day = (old, new) == (pa.timestamp("us"), pa.date32())
    if (old, new) == (pa.string(), pa.binary()):
        return f"CAST({speak(value)} AS BINARY)"
    if not (whole or logical or decimal or day or pa.types.is_null(old) or _widens(old, new)):
        raise NotNativeError(f"CAST from {old} to {new}")
    return f"{_WORDS[attempt]}({speak(value)} AS {spark_type(new)})"


_FURTHEST = "9.223372036854775807E18D"


def _truncated(text: str, old: pa.DataType, new: pa.DataType, *, attempt: bool) -> str:
    """What Spark's own CAST does, but for 2^63, which it lets pass as 2^63 - 1."""
    word, name = _WORDS[attempt], spark_type(new)
    if pa.types.is_decimal(old):
        return f"{word}({text} AS {name})"
    real = f"CAST({text} AS DOUBLE)" if pa.types.is_float32(old) else text
    if new != pa.int64():
        return f"{word}({real} AS {name})"
    return f"CASE WHEN {real} < {_FURTHEST} THEN {word}({real} AS BIGINT) ELSE {word}({real} * 2 AS BIGINT) END"


def interval(length: Literal) -> tuple[int, int, int]:
    """Months, days and nanoseconds of a constant length of time."""
    try:
        value = connection().sql(f"SELECT {length.text} AS value").to_arrow_table().column(0)[0].as_py()
    except (duckdb.Error, pa.ArrowInvalid) as problem:
        raise NotNativeError(str(length.text)) from problem
    if value is None:
        raise NotNativeError(str(length.text))
    return value.months, value.days, value.nanoseconds
