"""Text to values, a column at once: strict, so that nothing is rounded, cut off or guessed.

Readers convert text themselves as fast as they can; this is for blocks in which something is wrong. It says of every value
whether it is one of the type. What a fast reader takes is taken here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from headwater.expressions.connection import connection
from headwater.language import arguments
from headwater.model.arrays import BoolArray
from headwater.model.types import duckdb_name, string_literal
from headwater.sources.columns import nulls, valid

_WHOLE = r"-?[0-9]+|\+[0-9]+"
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_NOT_FINITE = r"[+-]?(nan|inf|infinity)"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}(:?[0-9]{2}(:?[0-9]{2}(\.[0-9]{1,6}0*)?)?)?"
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_BASE64 = r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
TRUE, FALSE = ("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0")
"""How BOOLEAN is written."""


class Parsed(NamedTuple):
    """The values, NULL where the text is none of the type (or NULL itself), and which texts are not."""

    values: pa.Array
    failed: BoolArray


def parse_texts(texts: pa.Array, type_: pa.DataType, *, formats: Sequence[str] = (), base64: bool = False) -> Parsed:
    """Read each text as a value of the type. NULL stays NULL and is no failure.

    ``formats`` are strptime patterns for TIMESTAMP and DATE beside ISO 8601. BINARY is the text's bytes, or base64.
    """
    if pa.types.is_string(type_):
        return Parsed(texts, np.zeros(len(texts), np.bool_))
    if pa.types.is_binary(type_) and not base64:
        return Parsed(texts.cast(pa.binary()), np.zeros(len(texts), np.bool_))
    try:
        if not pa.types.is_binary(type_):
            return Parsed(texts.cast(type_), np.zeros(len(texts), np.bool_))  # strict as well, but all or nothing
    except pa.ArrowException:
        pass
    sql = _parsing(type_, formats)
    # Readers leave out blanks and tabs around values, and no other white space.
    trimmed = connection().from_arrow(pa.table({"x": texts})).project("trim(x, ' ' || chr(9)) AS x")
    relation = trimmed.project(f"{sql} AS v")
    values = relation.to_arrow_table().column("v").combine_chunks()
    if values.type != type_:
        values = values.cast(type_)
    return Parsed(values, nulls(values) & valid(texts))


def time_formats(value: Any) -> tuple[str, ...]:
    """The argument of a source: strptime patterns with bars between them."""
    formats = arguments.texts(value)
    for pattern in formats:
        try:
            known = (
                "%" in pattern and connection().sql(f"SELECT try_strptime('', {string_literal(pattern)})").fetchall()
            )
        except duckdb.Error:
            known = False
        if not known:
            raise arguments.WrongArgumentError("patterns such as '%d.%m.%Y %H:%M', with bars between them")
    return formats


def _parsing(type_: pa.DataType, formats: Sequence[str]) -> str:
    """The DuckDB expression that gives the value of the text ``x``, or NULL."""
    name = duckdb_name(type_)
    if pa.types.is_boolean(type_):
        # Arrow's reader does not look at the case either.
        return f"CASE WHEN lower(x) IN {TRUE!r} THEN true WHEN lower(x) IN {FALSE!r} THEN false END"
    if pa.types.is_integer(type_):
        return _whole(type_)
    if pa.types.is_floating(type_):
        return _where(f"{_NUMBER}|(?i:{_NOT_FINITE})", f"TRY_CAST(x AS {name})")
    if pa.types.is_decimal(type_):
        return _decimal(type_)
    if pa.types.is_binary(type_):
        return f"CASE WHEN regexp_full_match(x, '{_BASE64}') THEN from_base64(x) END"
    own = [f"try_strptime(x, {string_literal(f)})" for f in formats]
    if pa.types.is_date32(type_):
        iso = _where(_DATE, "TRY_CAST(x AS DATE)")
        midnight = [f"CASE WHEN {f} = date_trunc('day', {f}) THEN CAST({f} AS DATE) END" for f in own]
        return f"COALESCE({', '.join([iso, *midnight, 'CAST(NULL AS DATE)'])})"
    usual = f"regexp_full_match(x, '{_DATE}[ T]([01][0-9]|2[0-3]):[0-9]{{2}}:[0-9]{{2}}(\\.[0-9]{{1,6}})?')"
    other = _where(f"{_DATE}([ T]{_CLOCK}{_ZONE}?)?", _iso_timestamp())
    iso = f"CASE WHEN {usual} THEN TRY_CAST(x AS TIMESTAMP) ELSE {other} END"
    return f"COALESCE({', '.join([iso, *own, 'CAST(NULL AS TIMESTAMP)'])})"


def _whole(type_: pa.DataType) -> str:
    """Also in hexadecimal, two's complement, because Arrow's readers take it."""
    name, bits = duckdb_name(type_), type_.bit_width
    digits = "TRY_CAST(x AS HUGEINT)"
    signed = f"CASE WHEN {digits} >= {2 ** (bits - 1)} THEN {digits} - CAST({2**bits} AS HUGEINT) ELSE {digits} END"
    return (
        f"CASE WHEN regexp_full_match(x, '{_WHOLE}') THEN TRY_CAST(x AS {name}) "
        f"WHEN regexp_full_match(x, '0[xX][0-9a-fA-F]{{1,{bits // 4}}}') THEN CAST({signed} AS {name}) END"
    )


def _where(pattern: str, value: str) -> str:
    return f"CASE WHEN regexp_full_match(x, '{pattern}') THEN {value} END"


def _iso_timestamp() -> str:
    """An offset is applied: TIMESTAMP is in UTC. Hours alone and clocks without colons are spelled out for DuckDB."""
    day, rest = "left(x, 10)", "substr(x, 12)"
    zone = f"regexp_extract({rest}, '{_ZONE}$')"
    digits = f"replace(regexp_replace({rest}, '{_ZONE}$', ''), ':', '')"
    fraction = f"regexp_extract({digits}, '\\.[0-9]+')"
    padded = f"rpad(split_part({digits}, '.', 1), 6, '0')"
    clock = f"concat(left({padded}, 2), ':', substr({padded}, 3, 2), ':', substr({padded}, 5, 2), {fraction})"
    # DuckDB takes 24:00:00 for the next day; nobody else does.
    sane = f"left({padded}, 2) < '24'"
    moment = f"TRY_CAST(concat({day}, ' ', {clock}, CASE {zone} WHEN '' THEN 'Z' ELSE {zone} END) AS TIMESTAMPTZ)"
    return f"CASE WHEN {sane} THEN make_timestamp(epoch_us({moment})) END"


def _decimal(type_: pa.DataType) -> str:
    """No digit may be lost: not before the point, and after the scale only zeros."""
    whole, scale = type_.precision - type_.scale, type_.scale
    before = f"0*[0-9]{{1,{whole}}}" if whole else "0*"
    after = f"(\\.[0-9]{{0,{scale}}}0*)?"
    plain = f"[+-]?({before}{after}|\\.[0-9]{{1,{max(scale, 1)}}}0*)"
    name = duckdb_name(type_)
    value = f"TRY_CAST(x AS {name})"
    exact = f"CASE WHEN TRY_CAST(x AS DOUBLE) = CAST({value} AS DOUBLE) THEN {value} END"
    return (
        f"CASE WHEN regexp_full_match(x, '{plain}') THEN TRY_CAST(x AS {name}) "
        f"WHEN regexp_full_match(x, '{_NUMBER}') AND regexp_matches(x, '[eE][+-]?[0-9]{{1,2}}$') THEN {exact} END"
    )
