"""What the footers of parquet files say of a stream before a row of it is read: a first guess for the cost model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import Factory, define

from headwater.model.schema import Schema
from headwater.model.time import MICROSECONDS
from headwater.sources.file_names import FoundFile
from headwater.sources.parquet_files import read_metadata

_FILES = 8
_GROUPS = 8
"""So many files, and of each so many row groups, are looked at: the first and the last of them, and some between."""
_MICROSECONDS = {"ms": 1_000.0, "us": 1.0, "ns": 0.001}


@define
class _Column:
    """What the footers say of one column."""

    rows: int = 0
    """In row groups of which they say it."""
    nulls: int = 0
    distinct: int = 0
    lows: list[Any] = Factory(list)
    highs: list[Any] = Factory(list)


def footer_figures(files: Sequence[FoundFile], schema: Schema, time: str | None) -> dict[str, float]:
    """Rate (rows per instant), NULLs and different values, by the names that STATISTICS has for them."""
    columns = {f.name.casefold(): _Column() for f in schema}
    rows = length = 0
    for file in _some(files, _FILES):
        metadata = read_metadata(file.path)
        if metadata is not None:
            rows, length = rows + metadata.num_rows, length + file.length
            _look(metadata, schema, columns)
    if not rows:
        return {}
    rows = round(rows * sum(file.length for file in files) / max(length, 1))
    found: dict[str, float] = {}
    for field in schema:
        column = columns[field.name.casefold()]
        if column.rows:
            found[f"nulls({field.name})"] = column.nulls / column.rows
        values = column.distinct or _whole_numbers(column)
        if values and field.name != time:
            found[f"distinct({field.name})"] = min(values, rows)
        if field.name == time and column.lows and (span := max(column.highs) - min(column.lows)) > 0:
            found["rate"] = rows / span
    return found


def _look(metadata: pq.FileMetaData, schema: Schema, columns: dict[str, _Column]) -> None:
    types = metadata.schema.to_arrow_schema()
    places = {metadata.schema.column(i).path.casefold(): i for i in range(metadata.num_columns)}
    units = {f.name.casefold(): _unit(types.field(i).type) for i, f in enumerate(types)}
    for group in (metadata.row_group(i) for i in _some(range(metadata.num_row_groups), _GROUPS)):
        for name, column in columns.items():
            said = group.column(places[name]).statistics if name in places else None
            if said is None:
                continue
            if said.has_null_count:
                column.rows, column.nulls = column.rows + group.num_rows, column.nulls + said.null_count
            if said.has_distinct_count:
                column.distinct = max(column.distinct, said.distinct_count)
            if said.has_min_max and (unit := units[name]):
                column.lows.append(said.min_raw * unit)
                column.highs.append(said.max_raw * unit)


def _unit(type_: pa.DataType) -> float | None:
    """How many instants one of its numbers is; None: it has none."""
    if pa.types.is_timestamp(type_):
        return _MICROSECONDS.get(type_.unit)
    if pa.types.is_date32(type_):
        return float(MICROSECONDS["DAY"])
    return 1 if pa.types.is_signed_integer(type_) else None


def _whole_numbers(column: _Column) -> int:
    """No more values than there are numbers between the smallest and the largest."""
    whole = column.lows and all(isinstance(v, int) for v in (*column.lows, *column.highs))
    return max(column.highs) - min(column.lows) + 1 if whole else 0


def _some(whole: Sequence[Any], most: int) -> Iterator[Any]:
    last = len(whole) - 1
    chosen = range(last + 1) if last < most else dict.fromkeys(round(i * last / (most - 1)) for i in range(most))
    return (whole[i] for i in chosen)
