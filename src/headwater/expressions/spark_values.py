"""Types and constants as Spark SQL spells them.

A TIMESTAMP of the model has no time zone. In Spark it is the TIMESTAMP that counts microseconds since 1970 in UTC, for
a session whose time zone is UTC: the instants of elements are then its microseconds, and no row is converted.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

from headwater.model.types import quote

_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
}
_SUFFIXES = {pa.int8(): "Y", pa.int16(): "S", pa.int32(): "", pa.int64(): "L"}
_PLAIN_TEXT = re.compile(r"[^'\\\x00-\x1f\x7f]*")
_EPOCH_DAY, _EPOCH = date(1970, 1, 1), datetime(1970, 1, 1)


class NotNativeError(Exception):
    """This cannot be said in Spark SQL with exactly the same meaning."""


def quoted(name: str) -> str:
    """The name as a column in the text of a Spark expression."""
    return quote(name, "`")


def spark_type(type_: pa.DataType) -> str:
    """How Spark SQL spells an Arrow type.

    >>> spark_type(pa.list_(pa.decimal128(10, 2)))
    'ARRAY<DECIMAL(10,2)>'
    """
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return f"ARRAY<{spark_type(type_.value_type)}>"
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return f"STRUCT<{', '.join(f'{quoted(f.name)}: {spark_type(f.type)}' for f in fields)}>"
    if type_ not in _NAMES:
        raise NotNativeError(f"Spark has no type {type_}")
    return _NAMES[type_]


def literal(value: object, type_: pa.DataType) -> str:
    """A constant of the type; it does not depend on settings of the session.

    >>> literal(-5, pa.int64()), literal("it's", pa.string())
    ('(-5L)', "CAST(X'69742773' AS STRING)")
    """
    if value is None:
        return f"CAST(NULL AS {spark_type(type_)})"
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if type_ in _SUFFIXES:
            return _whole(value, type_)
        case float() if pa.types.is_floating(type_):
            return _real(value) if pa.types.is_float64(type_) else f"CAST({_real(value)} AS FLOAT)"
        case Decimal():
            return f"CAST('{value:f}' AS {spark_type(type_)})"
        case str():
            if _PLAIN_TEXT.fullmatch(value):
                return f"'{value}'"
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"timestamp_micros({_whole(_microseconds(value), pa.int64())})"
        case date():
            return f"date_from_unix_date({_whole((value - _EPOCH_DAY).days, pa.int32())})"
    raise NotNativeError(f"no constant of type {type_}")


def _whole(value: int, type_: pa.DataType) -> str:
    if value == -(2 ** (type_.bit_width - 1)):
        return f"CAST('{value}' AS {spark_type(type_)})"
    return f"{value}{_SUFFIXES[type_]}" if value >= 0 else f"({value}{_SUFFIXES[type_]})"


def _real(value: float) -> str:
    if math.isnan(value):
        return "double('NaN')"
    if math.isinf(value):
        return "double('Infinity')" if value > 0 else "double('-Infinity')"
    return f"{value!r}D" if math.copysign(1, value) > 0 else f"({value!r}D)"


def _microseconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
