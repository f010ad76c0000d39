"""Columns as they come to the columns that a stream declares: without loss, or not at all.

Numbers may change their type as long as no value changes; timestamps of any unit and zone become microseconds in UTC;
text is read as what is declared. A value that cannot be converted exactly makes its row a bad one; it never becomes NULL.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.expressions.connection import connection
from headwater.expressions.types import is_numeric
from headwater.language.text import closest
from headwater.model.arrays import BoolArray
from headwater.model.schema import Field, Schema
from headwater.model.time import MICROSECONDS
from headwater.model.types import duckdb_name, sql_name
from headwater.sources.columns import coalesce, joined, list_lengths, nulls, shortened, valid, where
from headwater.sources.text_values import Parsed, parse_texts

_DAY = MICROSECONDS["DAY"]
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MOST = 2**63 - 1
_NUMBER = r"^\s*-?[0-9]+(\.[0-9]*)?\s*$"


class UnfitError(Exception):
    """No value of the one type is one of the other, or a column is not there; the text says which."""


class Conformed(NamedTuple):
    """Columns of the declared types, and what is wrong with rows: NULL where nothing is. None: nothing anywhere."""

    rows: pa.RecordBatch
    reasons: pa.Array | None


def find_column(name: str, names: Sequence[str]) -> int:
    """Where a declared column is among the names, the same for every format: exactly so, else without regard to case.

    -1: nowhere. Raises ``UnfitError`` if several could be meant.
    """
    found = [i for i, other in enumerate(names) if other == name]
    found = found or [i for i, other in enumerate(names) if other.casefold() == name.casefold()]
    if len(found) > 1:
        raise UnfitError(f'column "{name}" may be any of {", ".join(names[i] for i in found)}')
    return found[0] if found else -1


def find_columns(names: Sequence[str], schema: Schema, *, required: Collection[str] | None = None) -> list[int]:
    """Where the declared columns are among the names. Raises ``UnfitError`` if one is missing.

    ``required``: these must be there, and those that are NOT NULL; others, as long as any is there, may be missing (-1), and
    are NULL then, as in Spark. None: all must be.
    """
    places = [find_column(f.name, names) for f in schema]
    missing = [f for f, place in zip(schema, places, strict=True) if place < 0]
    if required is not None and len(missing) < len(places):
        missing = [f for f in missing if not f.nullable or f.name in required]
    if missing:
        columns = ", ".join(f'"{m.name}"' for m in missing)
        found = f"the columns are {', '.join(names)}" if names else "there are no columns"
        raise UnfitError(f"{'column' if len(missing) == 1 else 'columns'} {columns} missing; {found}")
    return places


def missing_columns(names: Sequence[str], schema: Schema) -> dict[str, str]:
    """Columns that are not among the names, each with the one that may have been meant, "" if there is none."""
    there = {name.casefold() for name in names}
    missing = [f.name for f in schema if f.name.casefold() not in there]
    if not missing:
        return {}
    declared = {f.name.casefold() for f in schema}
    others = [name for name in names if name.casefold() not in declared]
    return {name: closest(name, others) or "" for name in missing}


def conform(
    batch: pa.RecordBatch,
    schema: Schema,
    *,
    formats: Sequence[str] = (),
    base64: bool = False,
    required: Collection[str] | None = None,
) -> Conformed:
    """The declared columns of a batch, in order. Raises ``UnfitError`` if one is of a foreign type, or missing though
    ``required`` (see ``find_columns``)."""
    places = find_columns(batch.schema.names, schema, required=required)
    columns, reasons = [], None
    for field, place in zip(schema, places, strict=True):
        if place < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(place)
        values, failed = convert(column, field, formats=formats, base64=base64)
        columns.append(values)
        if failed is not None and failed.any():
            reasons = first_reasons(reasons, failed, _no_value_of(field, column))
        if not field.nullable and column.null_count:
            missing = nulls(column)
            reasons = first_reasons(reasons, missing, f'column "{field.name}" is NOT NULL')
    arrow = pa.schema([pa.field(f.name, f.type) for f in schema])  # NOT NULL holds once the bad rows are gone
    return Conformed(pa.RecordBatch.from_arrays(columns, schema=arrow), reasons)


def convert(
    column: pa.Array, field: Field, *, formats: Sequence[str] = (), base64: bool = False
) -> tuple[pa.Array, BoolArray | None]:
    """The column with the declared type, NULL where a value is none of it, and which those are."""
    if column.type == field.type:
        return column, None
    try:
        return _Conversion(tuple(formats), base64).column(column, field.type)
    except UnfitError as problem:
        note = epoch_note(field) if is_numeric(column.type) else ""
        raise UnfitError(f'column "{field.name}" is declared {sql_name(field.type)}, but {problem}{note}') from None


def first_reasons(reasons: pa.Array | None, failed: BoolArray, reason: pa.Array | str) -> pa.Array:
    """Rows that failed get the reason, unless they have one already."""
    new = where(failed, reason, pa.scalar(None, pa.string()))
    return new if reasons is None else coalesce(reasons, new)


def epoch_note(field: Field) -> str:
    """What to do about a number where a time is declared; nothing if none is."""
    if not pa.types.is_timestamp(field.type):
        return ""
    declared = f"{field.name} BIGINT, t AS timestamp_millis({field.name})"
    return (
        f" (milliseconds since 1970 are declared so: {declared}; there are timestamp_seconds and timestamp_micros, too)"
    )


def number_notes(field: Field, texts: pa.Array) -> pa.Array:
    """The note, where the text is a number."""
    numbers = pc.fill_null(pc.call_function("match_substring_regex", [texts], pc.MatchSubstringOptions(_NUMBER)), False)
    return where(numbers.to_numpy(zero_copy_only=False), epoch_note(field), "")


def _no_value_of(field: Field, column: pa.Array) -> pa.Array | str:
    declared = f'column "{field.name}" is {sql_name(field.type)}, which '
    try:
        shown = column.cast(pa.string())
    except pa.ArrowException:
        return f"{declared}the value is not"
    quotes = '"' if _is_text(column.type) else ""
    return joined(declared + quotes, shortened(shown), f"{quotes} is not", number_notes(field, shown))


class _Conversion:
    """From one Arrow type to another; nested ones by their parts."""

    def __init__(self, formats: tuple[str, ...], base64: bool) -> None:
        self._formats, self._base64 = formats, base64

    def column(self, column: pa.Array, type_: pa.DataType) -> tuple[pa.Array, BoolArray | None]:
        source = column.type
        if source == type_:
            return column, None
        if pa.types.is_null(source):
            return pa.nulls(len(column), type_), None
        if pa.types.is_dictionary(source):
            return self.column(column.dictionary_decode(), type_)
        if _is_text(source):
            plain = column if pa.types.is_string(source) else column.cast(pa.string())
            return _as_found(parse_texts(plain, type_, formats=self._formats, base64=self._base64))
        if pa.types.is_list(type_) and _is_list(source):
            return self._list(column, type_)
        if pa.types.is_struct(type_) and pa.types.is_struct(source):
            return self._struct(column, type_)
        if is_numeric(source) and is_numeric(type_):
            return _number(column, type_)
        if _is_temporal(source) and _is_temporal(type_):
            return _temporal(column, type_)
        if _is_plain(source) and pa.types.is_string(type_):
            return column.cast(type_), None
        if _is_binary(source) and pa.types.is_binary(type_):
            return column.cast(type_), None
        raise UnfitError(f"the data has {sql_name(source)}")

    def _list(self, column: pa.Array, type_: pa.DataType) -> tuple[pa.Array, BoolArray | None]:
        if not pa.types.is_list(column.type):
            column = column.cast(pa.list_(column.type.value_type))
        # flatten() leaves out what lies under NULL lists, the parents' places are those of the rest
        values, failed = self.column(column.flatten(), type_.value_type)
        lengths = list_lengths(column).to_numpy(zero_copy_only=False)
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        mask = column.is_null() if column.null_count else None
        rebuilt = pa.ListArray.from_arrays(pa.array(offsets), values, type=type_, mask=mask)
        if failed is None:
            return rebuilt, None
        parents = np.zeros(len(column), np.bool_)
        parents[np.repeat(np.arange(len(column)), lengths)[failed]] = True
        return rebuilt, parents

    def _struct(self, column: pa.Array, type_: pa.DataType) -> tuple[pa.Array, BoolArray | None]:
        fields = [type_.field(i) for i in range(type_.num_fields)]
        names = [column.type.field(i).name for i in range(column.type.num_fields)]
        places = find_columns(names, Schema(tuple(Field(f.name, f.type) for f in fields)))
        parts = column.flatten()
        found = [self.column(parts[place], f.type) for f, place in zip(fields, places, strict=True)]
        mask = column.is_null() if column.null_count else None
        rebuilt = pa.StructArray.from_arrays([values for values, _ in found], fields=fields, mask=mask)
        masks = [failed for _, failed in found if failed is not None]
        return rebuilt, np.logical_or.reduce(masks) if masks else None


def _as_found(parsed: Parsed) -> tuple[pa.Array, BoolArray | None]:
    return parsed.values, parsed.failed if parsed.failed.any() else None


def _number(column: pa.Array, type_: pa.DataType) -> tuple[pa.Array, BoolArray | None]:
    source = column.type
    if (pa.types.is_integer(source) and not pa.types.is_decimal(type_)) or pa.types.is_integer(type_):
        try:
            return column.cast(type_), None  # checked: nothing is cut off
        except pa.ArrowInvalid:
            pass
    there = f"TRY_CAST(x AS {duckdb_name(type_)})"
    back = f"TRY_CAST({there} AS {_duckdb_number(source)})"
    feed = pa.table({"x": column.cast(pa.float32()) if pa.types.is_float16(source) else column})
    relation = connection().from_arrow(feed).project(f"CASE WHEN {back} = x THEN {there} END AS v")
    values = relation.to_arrow_table().column("v").combine_chunks()
    values = values if values.type == type_ else values.cast(type_)
    failed = nulls(values) & valid(column)
    return values, failed if failed.any() else None


def _duckdb_number(type_: pa.DataType) -> str:
    if pa.types.is_unsigned_integer(type_):
        return {8: "UTINYINT", 16: "USMALLINT", 32: "UINTEGER", 64: "UBIGINT"}[type_.bit_width]
    return "FLOAT" if pa.types.is_float16(type_) else duckdb_name(type_)


def _temporal(column: pa.Array, type_: pa.DataType) -> tuple[pa.Array, BoolArray | None]:
    """Units and zones; instants are kept, so a zone is only left out."""
    source = column.type
    if pa.types.is_timestamp(source) and source.tz is not None:
        return _temporal(column.cast(pa.timestamp(source.unit)), type_)
    if pa.types.is_date64(source):
        return _temporal(column.cast(pa.timestamp("ms")), type_)
    if not (pa.types.is_timestamp(source) and pa.types.is_date32(type_)):
        try:
            return column.cast(type_), None  # checked: neither cut off nor out of range
        except pa.ArrowInvalid:
            pass
    given = valid(column)
    ticks = pc.fill_null(column.cast(pa.int32() if pa.types.is_date32(source) else pa.int64()), 0)
    ticks = ticks.to_numpy(zero_copy_only=False).astype(np.int64)
    # one tick of the source is up/down ticks of the result
    up, down = _ratio(source, type_)
    failed = ticks % down != 0 if down > 1 else (ticks > _MOST // up) | (ticks < -(_MOST // up))
    exact = np.where(failed, 0, ticks) // down * up
    if pa.types.is_date32(type_):
        failed |= np.abs(exact) >= 2**31
        exact = np.where(failed, 0, exact).astype(np.int32)
    failed &= given
    values = pa.array(exact, mask=failed | ~given).cast(type_)
    return values, failed if failed.any() else None


def _ratio(source: pa.DataType, type_: pa.DataType) -> tuple[int, int]:
    if pa.types.is_date32(source):
        return _DAY, 1
    if pa.types.is_date32(type_):
        return 1, 86_400 * _PER_SECOND[source.unit]
    here, there = _PER_SECOND[source.unit], _PER_SECOND[type_.unit]
    return (there // here, 1) if there >= here else (1, here // there)


def _is_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)


def _is_binary(type_: pa.DataType) -> bool:
    return pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_)


def _is_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)


def _is_temporal(type_: pa.DataType) -> bool:
    return pa.types.is_timestamp(type_) or pa.types.is_date(type_)


def _is_plain(type_: pa.DataType) -> bool:
    return is_numeric(type_) or _is_temporal(type_) or pa.types.is_boolean(type_)
