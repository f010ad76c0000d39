"""Rows that are not what a stream declares: how they are kept, and how they become an error."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.errors import StreamError
from headwater.expressions.connection import connection
from headwater.expressions.printing import quoted
from headwater.language.put_aside import BAD_SCHEMA
from headwater.model.types import sql_type
from headwater.sources.base import BadRows
from headwater.sources.columns import valid, where

PUSHED = "push"
"""What names the place of rows that were pushed by hand: they have no lines, and are counted."""

_EARLIEST = -9_223_372_022_400_000_000
"""The first TIMESTAMP that DuckDB can show."""
_TYPES = [sql_type(name) for name in ("STRING", "BIGINT", "STRING", "STRING")]


def no_bad_rows() -> BadRows:
    return BadRows(*(pa.array([], t) for t in _TYPES))


def bad_rows(
    where: str, line: pa.Array | Sequence[int] | None, reason: pa.Array | Sequence[str], raw: pa.Array | Sequence[str]
) -> BadRows:
    """Bad rows of one place; ``line`` is None where there are no lines."""
    rows = len(reason)
    places = pa.repeat(pa.scalar(where, pa.string()), rows)
    lines = pa.nulls(rows, pa.int64()) if line is None else pa.array(line, pa.int64())
    return BadRows(places, lines, _strings(reason), _strings(raw))


def unreadable(where: str, reason: str, raw: str = "", *, line: int | None = None) -> BadRows:
    """One bad row for a whole file, or what is left of it."""
    return bad_rows(where, None if line is None else [line], [reason], [raw])


def all_bad_rows(parts: Sequence[BadRows | None]) -> BadRows:
    """One after another."""
    found = [p for p in parts if p is not None and len(p.reason)]
    if len(found) < 2:
        return found[0] if found else no_bad_rows()
    return BadRows(*(pa.concat_arrays(columns) for columns in zip(*found, strict=True)))


def bad_batch(bad: BadRows) -> pa.RecordBatch:
    """Rows of ``BAD_SCHEMA``."""
    return pa.RecordBatch.from_arrays(list(bad), schema=BAD_SCHEMA.to_arrow())


def bad_row_error(stream: str, bad: BadRows) -> StreamError:
    """What FAIL says: the first of them."""
    where, line, reason, raw = (column[0].as_py() for column in bad)
    counted = "row" if where == PUSHED else "line"
    place = ", ".join([*([where] if where else []), *([f"{counted} {line}"] if line is not None else [])])
    shown = f"{place}: {_shortened(raw)}" if place and raw else place or _shortened(raw)
    return StreamError(
        "BAD_ROW",
        f'stream "{stream}" cannot take a row: {reason}',
        detail=shown,
        hint=f"Mend it; or keep such rows apart, in \"{stream}_bad\": malformed => 'divert'.",
    )


def rows_as_text(rows: pa.RecordBatch) -> pa.Array:
    """Each row as a JSON object, whatever its types."""
    if rows.num_rows == 0 or rows.num_columns == 0:
        return pa.array(["{}"] * rows.num_rows, pa.string())
    plain = {f"c{i}": _readable(column) for i, column in enumerate(rows.columns)}
    values = {name: name for name in plain}
    for name, column in list(plain.items()):
        early = _too_early(column)
        if early is not None:
            plain |= {name: where(valid(early), pa.scalar(None, column.type), column), f"{name}_text": early}
            values[name] = f"coalesce({name}_text, CAST({name} AS VARCHAR))"
    fields = ", ".join(
        f"{quoted(name)} := {text}" for name, text in zip(rows.schema.names, values.values(), strict=True)
    )
    found = connection().from_arrow(pa.table(plain)).project(f"CAST(to_json(struct_pack({fields})) AS VARCHAR) AS t")
    return found.to_arrow_table().column("t").combine_chunks().cast(pa.string())


def _too_early(column: pa.Array) -> pa.Array | None:
    """As numbers the times before those that DuckDB can show: it gives up when it meets one. None: there are none."""
    if column.type != pa.timestamp("us"):
        return None
    instants = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    early = instants < _EARLIEST
    return pa.array([str(i) if e else None for i, e in zip(instants, early, strict=True)]) if early.any() else None


def _readable(column: pa.Array) -> pa.Array:
    """What DuckDB cannot read is shown as text."""
    type_ = column.type
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return column.cast(pa.timestamp(type_.unit))
    if pa.types.is_dictionary(type_):
        return column.dictionary_decode()
    return column


def _strings(values: pa.Array | Sequence[str]) -> pa.Array:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return whole if whole.type == pa.string() else whole.cast(pa.string())
    return pa.array(values, pa.string())


def _shortened(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= 500 else f"{text[:500]}…"
