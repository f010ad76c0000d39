"""CAST and TRY_CAST: Spark's meaning (in its ANSI mode), DuckDB's text, for every pair of types that Spark converts.

Text is where the engines differ most. DuckDB reads more than Spark (``1e3`` and ``7.5`` as an INT, ``1_000``, ``epoch``),
and less (``2024-02`` as a DATE). What Spark would not read goes to DuckDB in double quotes, so that its refusal shows it.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from headwater.expressions.connection import connection
from headwater.expressions.types import is_nested, is_numeric, is_temporal
from headwater.model.types import duckdb_name

_BLANKS = r"\s*"
_WHOLE = r"""REGEXP_REPLACE({0}, '^(?s:.*[^0-9\s+-].*)$', '"\0"')"""
"""What has other signs than a whole number is put in quotes."""
_DAY = r"[0-9]{{4,6}}(?:-[0-9]{{1,2}}){{0,2}}"
_MOMENT = rf"{_BLANKS}{_DAY}(?:[ T](?s:.*))?{_BLANKS}"
_CLOCK = rf"{_BLANKS}{_DAY}[ T](?:[01]?[0-9]|2[0-3])(?::(?s:.*))?{_BLANKS}"
_FIRST_DAY = rf"REGEXP_EXTRACT(REGEXP_EXTRACT({{0}}, '{_DAY}') || '-1-1', '^[0-9]+-[0-9]+-[0-9]+')"
"""``2024`` and ``2024-02`` are the first day of the year and of the month."""
_SECONDS = "(EPOCH_US(DATE_TRUNC('second', {0})) // 1000000)"
_REAL_SECONDS = "(CAST(EPOCH_US({0}) AS DOUBLE) / 1000000)"
_EXACT_SECONDS = "CAST(EPOCH_US({0}) AS DECIMAL(19,0)) * CAST(0.000001 AS DECIMAL(7,6))"
_LARGEST_FLOAT = "3.4028235677973366e38"
"""From here on (2^128 - 2^103) a DOUBLE is nearer to infinity than to any FLOAT."""

_DIGITS = (
    "RTRIM(LTRIM(REGEXP_REPLACE(SPLIT_PART(CAST({0} AS VARCHAR), 'e', 1), '[-.]', '', 'g'), '0'), '0')"  # without zeros
)
_REAL_AS_TEXT = (
    "CASE WHEN ISNAN({0}) THEN 'NaN' WHEN ISINF({0}) THEN CASE WHEN {0} > 0 THEN 'Infinity' ELSE '-Infinity' END "
    "WHEN {0} = 0 OR (ABS({0}) >= 0.001 AND ABS({0}) < 10000000) THEN CAST({0} AS VARCHAR) "
    "ELSE CASE WHEN {0} < 0 THEN '-' ELSE '' END || "
    f"LEFT({_DIGITS}, 1) || '.' || CASE WHEN LENGTH({_DIGITS}) > 1 THEN SUBSTRING({_DIGITS}, 2) ELSE '0' END || 'E' || "
    "CASE WHEN CONTAINS(CAST({0} AS VARCHAR), 'e') "
    "THEN CAST(CAST(SPLIT_PART(CAST({0} AS VARCHAR), 'e', 2) AS INTEGER) AS VARCHAR) "
    "WHEN ABS({0}) < 1 THEN '-4' "
    "ELSE CAST(LENGTH(SPLIT_PART(LTRIM(CAST({0} AS VARCHAR), '-'), '.', 1)) - 1 AS VARCHAR) END END"
)
"""As Java writes it: 1.0E7 from ten millions on, 1.0E-4 below a thousandth; only there does it differ from DuckDB."""


def cast_text(old: pa.DataType, new: pa.DataType, *, attempt: bool = False) -> str | None:
    """The text of the conversion of ``{0}``; with ``attempt`` NULL where it fails. None if Spark does not have it.

    >>> cast_text(pa.string(), pa.binary())
    'ENCODE({0})'
    """
    if pa.types.is_list(old) and pa.types.is_floating(old.value_type) and new == pa.list_(pa.string()):
        return f"LIST_TRANSFORM({{0}}, lambda item: {_REAL_AS_TEXT.format('item')})"
    if pa.types.is_null(old) or old == new or (is_nested(old) and is_nested(new)):
        return _plain("{0}", new, attempt)
    if pa.types.is_string(old):
        return _read(new, attempt)
    if pa.types.is_string(new):
        return _written(old, attempt)
    if is_numeric(old) or pa.types.is_boolean(old):
        return _from_number(old, new, attempt)
    if is_temporal(old) and is_temporal(new):
        return _plain("{0}", new, attempt)
    if pa.types.is_timestamp(old) and is_numeric(new):
        return _seconds_as(new, attempt)
    return None


def can_be(text: str, type_: pa.DataType) -> bool:
    """Can the constant text be read as a value of the type?"""
    return pa.types.is_string(type_) or pa.types.is_binary(type_) or read_constant(text, type_) is not None


def can_fail(old: pa.DataType, new: pa.DataType) -> bool:
    """Does the conversion read text, or cut something off, so that a value may stop it?"""
    if pa.types.is_string(old):
        return not pa.types.is_string(new) and not pa.types.is_binary(new)
    if pa.types.is_binary(old):
        return pa.types.is_string(new)
    if pa.types.is_integer(new):
        return pa.types.is_floating(old) or pa.types.is_decimal(old)
    return (pa.types.is_floating(old) and pa.types.is_decimal(new)) or (old, new) == (pa.float64(), pa.float32())


@lru_cache(maxsize=4096)
def read_constant(text: str, type_: pa.DataType) -> str | None:
    """The value that the text is read as, as DuckDB writes it; None if there is none."""
    read = cast_text(pa.string(), type_, attempt=True)
    if read is None or pa.types.is_binary(type_):
        return None
    question = f"SELECT CAST({read.format('CAST($1 AS VARCHAR)')} AS VARCHAR)"
    ((value,),) = connection().execute(question, [text]).fetchall()
    return value


def _plain(argument: str, new: pa.DataType, attempt: bool) -> str:
    return f"{'TRY_CAST' if attempt else 'CAST'}({argument} AS {duckdb_name(new)})"


def _from_number(old: pa.DataType, new: pa.DataType, attempt: bool) -> str | None:
    real = pa.types.is_floating(old)
    if pa.types.is_timestamp(new) and not pa.types.is_boolean(old):
        fraction = "TRUNC({0} * 1000000)" if pa.types.is_decimal(old) else "CAST({0} AS BIGINT) * 1000000"
        if real:
            fraction = "TRUNC(CAST({0} AS DOUBLE) * 1000000)"
        made = f"MAKE_TIMESTAMP(CAST({fraction} AS BIGINT))"
        return f"TRY({made})" if attempt else made
    if not is_numeric(new) and not pa.types.is_boolean(new):
        return None
    if pa.types.is_integer(new) and (real or pa.types.is_decimal(old)):
        return _plain("TRUNC({0})", new, attempt)  # Spark cuts the fraction off, DuckDB's own cast would round
    if real and pa.types.is_decimal(new):
        # The decimal digits that it is shown with, not the binary ones.
        return _plain("CASE WHEN ISFINITE({0}) THEN CAST(CAST({0} AS DOUBLE) AS VARCHAR) END", new, attempt)
    if pa.types.is_float64(old) and pa.types.is_float32(new):
        infinite = f"CASE WHEN ABS({{0}}) >= {_LARGEST_FLOAT} THEN {{0}} * CAST('Infinity' AS DOUBLE) ELSE {{0}} END"
        return _plain(infinite, new, attempt)
    return _plain("{0}", new, attempt)


def _seconds_as(new: pa.DataType, attempt: bool) -> str:
    """Seconds since 1970: whole ones as an integer, rounded down; else with their fraction."""
    if pa.types.is_integer(new):
        return _SECONDS if pa.types.is_int64(new) else _plain(_SECONDS, new, attempt)
    if pa.types.is_float64(new):
        return _REAL_SECONDS
    return _plain(_EXACT_SECONDS if pa.types.is_decimal(new) else _REAL_SECONDS, new, attempt)


def _written(old: pa.DataType, attempt: bool) -> str:
    if pa.types.is_binary(old):
        return "TRY(DECODE({0}))" if attempt else "DECODE({0})"
    return _REAL_AS_TEXT if pa.types.is_floating(old) else "CAST({0} AS VARCHAR)"


def _read(new: pa.DataType, attempt: bool) -> str | None:
    """Text that Spark can read, as DuckDB reads it."""
    quoted = "'\"' || {0} || '\"'"
    if pa.types.is_binary(new):
        return "ENCODE({0})"
    if pa.types.is_boolean(new):
        return _plain("TRIM({0})", new, attempt)
    if pa.types.is_integer(new):
        return _plain(_WHOLE, new, attempt)
    if is_numeric(new):
        return _plain("""REPLACE({0}, '_', '"_"')""", new, attempt)
    if not is_temporal(new):
        return None
    if pa.types.is_date32(new):
        read = (
            f"CASE WHEN {{0}} LIKE '____-__-__' THEN {{0}} WHEN REGEXP_FULL_MATCH({{0}}, '{_MOMENT}') THEN {_FIRST_DAY} "
            f"ELSE {quoted} END"
        )
        return _plain(read, new, attempt)
    read = (
        "CASE WHEN {0} LIKE '____-__-__ __:__:__%' AND {0} NOT LIKE '____-__-__ 24%' THEN {0} "  # as it nearly always is
        f"WHEN REGEXP_FULL_MATCH({{0}}, '{_BLANKS}{_DAY}{_BLANKS}') THEN {_FIRST_DAY} "
        f"WHEN REGEXP_FULL_MATCH({{0}}, '{_BLANKS}{_DAY}[ T][0-9]{{{{1,2}}}}{_BLANKS}') THEN {{0}} || ':00' "
        f"WHEN REGEXP_FULL_MATCH({{0}}, '{_CLOCK}') THEN {{0}} ELSE {quoted} END"
    )
    # With a time zone, which may be written; in a session in UTC.
    return f"CAST({'TRY_CAST' if attempt else 'CAST'}({read} AS TIMESTAMPTZ) AS TIMESTAMP)"
