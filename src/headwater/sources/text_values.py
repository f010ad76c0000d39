"""Text to values, a column at once: strict, so that nothing is rounded, cut off or guessed.

Readers convert text themselves as fast as they can; this is for blocks in which something is wrong. It says of every value
whether it is one of the type. What a fast reader takes is taken here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.language.types import duckdb_name
from headwater.model.arrays import BoolArray
from headwater.operators.expression import connection

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


def parse_texts(
    texts: pa.Array, type_: pa.DataType, *, formats: Sequence[str] = (), base64: bool = False
) -> Parsed:
    """Read each text as a value of the type. NULL stays NULL and is no failure.

    ``formats`` are strptime patterns for TIMESTAMP and DATE beside ISO 8601. BINARY is the text's bytes, or base64.
    """
    if pa.types.is_string(type_):
        return Parsed(texts, np.zeros(len(texts), np.bool_))
    if pa.types.is_binary(type_) and not base64:
        return Parsed(texts.cast(pa.binary()), np.zeros(len(texts), np.bool_))
    sql = _parsing(type_, formats)
    relation = connection().from_arrow(pa.table({"x": texts})).project(f"{sql} AS v")
    values = relation.to_arrow_table().column("v").combine_chunks()
    if values.type != type_:
        values = values.cast(type_)
    failed = pc.and_(pc.is_null(values), pc.is_valid(texts))
    return Parsed(values, failed.to_numpy(zero_copy_only=False))


def _parsing(type_: pa.DataType, formats: Sequence[str]) -> str:
    """The DuckDB expression that gives the value of the text ``x``, or NULL."""
    name = duckdb_name(type_)
    if pa.types.is_boolean(type_):
        return f"CASE WHEN trim(x) IN {TRUE!r} THEN true WHEN trim(x) IN {FALSE!r} THEN false END"
    if pa.types.is_integer(type_):
        return _where(_WHOLE, f"TRY_CAST(trim(x) AS {name})")
    if pa.types.is_floating(type_):
        return _where(f"{_NUMBER}|(?i:{_NOT_FINITE})", f"TRY_CAST(trim(x) AS {name})")
    if pa.types.is_decimal(type_):
        return _decimal(type_)
    if pa.types.is_binary(type_):
        return f"CASE WHEN regexp_full_match(x, '{_BASE64}') THEN from_base64(x) END"
    own = [f"try_strptime(trim(x), {_literal(f)})" for f in formats]
    if pa.types.is_date32(type_):
        iso = _where(_DATE, "TRY_CAST(trim(x) AS DATE)")
        midnight = [f"CASE WHEN {f} = date_trunc('day', {f}) THEN CAST({f} AS DATE) END" for f in own]
        return f"COALESCE({', '.join([iso, *midnight, 'CAST(NULL AS DATE)'])})"
    iso = _where(f"{_DATE}([ T]{_CLOCK}{_ZONE}?)?", _iso_timestamp())
    return f"COALESCE({', '.join([iso, *own, 'CAST(NULL AS TIMESTAMP)'])})"


def _where(pattern: str, value: str) -> str:
    return f"CASE WHEN regexp_full_match(trim(x), '{pattern}') THEN {value} END"


def _iso_timestamp() -> str:
    """An offset is applied: TIMESTAMP is in UTC. Hours alone and clocks without colons are spelled out for DuckDB."""
    day, rest = "left(trim(x), 10)", "substr(trim(x), 12)"
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
    """No digit may be lost: not before the point, and only zeros after the scale. An exponent goes through the widest one."""
    whole, scale = type_.precision - type_.scale, type_.scale
    before = f"0*[0-9]{{1,{whole}}}" if whole else "0*"
    after = f"(\\.[0-9]{{0,{scale}}}0*)?"
    plain = f"[+-]?({before}{after}|\\.[0-9]{{1,{max(scale, 1)}}}0*)"
    name = duckdb_name(type_)
    exact = f"CASE WHEN TRY_CAST(trim(x) AS DOUBLE) = CAST(TRY_CAST(trim(x) AS {name}) AS DOUBLE) THEN TRY_CAST(trim(x) AS {name}) END"
    return (
        f"CASE WHEN regexp_full_match(trim(x), '{plain}') THEN TRY_CAST(trim(x) AS {name}) "
        f"WHEN regexp_full_match(trim(x), '{_NUMBER}') AND regexp_matches(x, '[eE]') THEN {exact} END"
    )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
