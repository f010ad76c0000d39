"""Values of rows as JSON: what a recording may contain, and what a replay prints."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

Decode = Callable[[Any], Any]
Encode = Callable[[Any], Any]

_WIDE = Context(prec=80)
_EPOCH = datetime(1970, 1, 1)
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class WrongValueError(ValueError):
    """The value is none of the type; the text says what it would have to be."""


def decoder(type_: pa.DataType) -> Decode:
    """From JSON to the value of a row; raises ``WrongValueError``. NULL is up to the caller at the top level."""
    if pa.types.is_integer(type_):
        return _integers(type_)
    if pa.types.is_floating(type_):
        return _decode_float32 if pa.types.is_float32(type_) else _decode_float
    if pa.types.is_decimal(type_):
        return _decimals(type_)
    if pa.types.is_list(type_):
        return _lists(type_)
    if pa.types.is_struct(type_):
        return _structs(type_)
    return _PLAIN_DECODERS[type_]


def encoder(type_: pa.DataType) -> Encode | None:
    """From the value of a row to JSON; None where the value is JSON already. NULL is up to the caller."""
    if pa.types.is_floating(type_):
        return _encode_float
    if pa.types.is_decimal(type_):
        return str
    if pa.types.is_date32(type_) or pa.types.is_timestamp(type_):
        # Beyond the years of Python it is a text already.
        return lambda value: value.replace(" ", "T") if isinstance(value, str) else value.isoformat()
    if pa.types.is_binary(type_):
        return lambda value: base64.b64encode(value).decode("ascii")
    if pa.types.is_list(type_):
        item = encoder(type_.value_type) or _as_is
        return lambda value: [None if v is None else item(v) for v in value]
    if pa.types.is_struct(type_):
        fields = {type_.field(i).name: encoder(type_.field(i).type) or _as_is for i in range(type_.num_fields)}
        return lambda value: {name: None if v is None else fields[name](v) for name, v in value.items()}
    return None


def _as_is(value: Any) -> Any:
    return value


# -- decoding ---------------------------------------------------------------------------------------------------------


def _integers(type_: pa.DataType) -> Decode:
    bounds = np.iinfo(type_.to_pandas_dtype())

    def decode(value: Any) -> int:
        if isinstance(value, Decimal) and value == value.to_integral_value():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise WrongValueError("a whole number")
        if not bounds.min <= value <= bounds.max:
            raise WrongValueError(f"between {bounds.min} and {bounds.max}")
        return value

    return decode


def _decode_float(value: Any) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if not isinstance(value, (int, Decimal)) or isinstance(value, bool):
        raise WrongValueError('a number, "NaN", "Infinity" or "-Infinity"')
    try:
        return float(value)
    except OverflowError:
        raise WrongValueError("a number that fits in 64 bits") from None


def _decode_float32(value: Any) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(_decode_float(value)))


def _decimals(type_: pa.DataType) -> Decode:
    step, bound = Decimal(1).scaleb(-type_.scale), Decimal(10) ** (type_.precision - type_.scale)
    digits = f"at most {type_.precision - type_.scale} digits before and {type_.scale} after the point"

    def decode(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, (int, str, Decimal)):
            raise WrongValueError("a number, or a number in a string")
        try:
            number = Decimal(value)
            exact = number.quantize(step, context=_WIDE)
        except InvalidOperation:
            raise WrongValueError(f"a number with {digits}") from None
        if not exact.is_finite() or exact.copy_abs() >= bound or exact != number:
            raise WrongValueError(f"a number with {digits}")
        return exact

    return decode


def _lists(type_: pa.DataType) -> Decode:
    item = decoder(type_.value_type)

    def decode(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise WrongValueError("an array")
        return [None if v is None else item(v) for v in value]

    return decode


def _structs(type_: pa.DataType) -> Decode:
    fields = {type_.field(i).name: decoder(type_.field(i).type) for i in range(type_.num_fields)}

    def decode(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or value.keys() - fields.keys():
            raise WrongValueError(f"an object with the fields {', '.join(fields)}")
        return {n: None if value.get(n) is None else decode_field(value[n]) for n, decode_field in fields.items()}

    return decode


def _decode_string(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValueError("a string")
    return value


def _decode_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongValueError("true or false")
    return value


def _decode_binary(value: Any) -> bytes:
    try:
        return base64.b64decode(_decode_string(value), validate=True)
    except (WrongValueError, binascii.Error):
        raise WrongValueError("a string in base64") from None


def _decode_date(value: Any) -> date:
    try:
        return date.fromisoformat(value) if len(value) == len("2026-01-01") else _fail()
    except (TypeError, ValueError):
        raise WrongValueError('a date such as "2026-01-31"') from None


def _decode_timestamp(value: Any) -> datetime:
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return _EPOCH + timedelta(microseconds=value)
        moment = datetime.fromisoformat(_decode_string(value))
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (TypeError, ValueError, OverflowError):
        expected = 'a time such as "2026-01-31T12:00:00", or microseconds since 1970'
        raise WrongValueError(expected) from None


def _fail() -> Any:
    raise ValueError


_PLAIN_DECODERS: dict[pa.DataType, Decode] = {
    pa.string(): _decode_string,
    pa.bool_(): _decode_boolean,
    pa.binary(): _decode_binary,
    pa.date32(): _decode_date,
    pa.timestamp("us"): _decode_timestamp,
}


def _encode_float(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
