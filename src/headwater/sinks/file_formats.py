"""How a table becomes a file: Parquet, CSV, or a JSON object per line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import InputError
from headwater.expressions.printing import quoted
from headwater.model.arrays import view
from headwater.model.types import sql_name, string_literal

_BATCH = 100_000
_GROUP_ROWS, _GROUP_BYTES = 1_000_000, 64 << 20
_PIECE, _LINE = 1 << 20, 4096


class FileFormat(ABC):
    """Writes tables. Picklable."""

    name: str
    extension: str

    @abstractmethod
    def write(self, table: pa.Table, stream: Any) -> None: ...

    @abstractmethod
    def join(self, files: Sequence[Callable[[], Any]], stream: Any) -> None:
        """Write the rows of several files of this format as one; each is opened to be read when its turn comes."""

    def check(self, schema: pa.Schema) -> None:  # noqa: B027 - most can hold everything
        """Is there a column that such a file cannot hold?"""


class ParquetFormat(FileFormat):
    """Whole numbers and times as differences, texts through a dictionary: smaller and faster than Arrow's default."""

    name, extension = "parquet", ".parquet"

    def __init__(self, compression: str = "snappy", notes: Mapping[str, str] | None = None) -> None:
        """``notes`` go into the footers of files that are made of others."""
        if compression not in ("snappy", "zstd", "lz4", "none"):
            raise InputError(
                "UNKNOWN_COMPRESSION",
                f'there is no compression "{compression}" of Parquet files',
                hint="Write snappy, zstd, lz4 or none.",
            )
        self.compression, self.notes = compression, dict(notes or {})

    def write(self, table: pa.Table, stream: Any) -> None:
        import pyarrow.parquet as pq

        pq.write_table(table, stream, **self._settings(table.schema))

    def join(self, files: Sequence[Callable[[], Any]], stream: Any) -> None:
        """In row groups of a moderate size; where columns have become wider meanwhile, with the widest types."""
        import pyarrow.parquet as pq

        schemas = [_schema(opened) for opened in files]
        schema = schemas[0]
        if any(other != schema for other in schemas):
            schema = pa.unify_schemas(schemas, promote_options="permissive")
        schema = schema.with_metadata(self.notes or None)
        with pq.ParquetWriter(stream, schema, **self._settings(schema)) as writer:
            for table in _gathered(_tables(files, schema)):
                writer.write_table(table)

    def _settings(self, schema: pa.Schema) -> dict[str, Any]:
        texts = [f.name for f in schema if pa.types.is_string(f.type)]
        differences = {f.name: "DELTA_BINARY_PACKED" for f in schema if _is_whole(f.type)}
        return {
            "compression": self.compression,
            "use_dictionary": texts or False,
            "column_encoding": differences or None,
        }


def _schema(opened: Callable[[], Any]) -> pa.Schema:
    import pyarrow.parquet as pq

    with opened() as file:
        return pq.read_schema(file)


def _tables(files: Sequence[Callable[[], Any]], schema: pa.Schema) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    for opened in files:
        with opened() as source:
            file = pq.ParquetFile(source)
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                yield table if table.schema == schema else table.cast(schema)


def _gathered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Some of them together, until they are a row group that is worth it."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(t.num_rows for t in held) >= _GROUP_ROWS or sum(t.nbytes for t in held) >= _GROUP_BYTES:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _is_whole(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_timestamp(type_) or pa.types.is_date32(type_)


class CsvFormat(FileFormat):
    """With a line of names. Texts are in quotes, NULL is nothing at all, so that it differs from an empty text."""

    name, extension = "csv", ".csv"

    def check(self, schema: pa.Schema) -> None:
        for field in schema:
            if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
                raise InputError(
                    "CSV_TYPE",
                    f'column "{field.name}" is {sql_name(field.type)}, which a CSV file cannot hold',
                    hint="Write parquet or json, or turn the column into a STRING.",
                )

    def write(self, table: pa.Table, stream: Any) -> None:
        from pyarrow import csv

        csv.write_csv(table, stream)

    def join(self, files: Sequence[Callable[[], Any]], stream: Any) -> None:
        """The text of all with one line of names: the first one's, which all begin with."""
        names = b""
        for number, opened in enumerate(files):
            with opened() as file:
                names = names or _first_record(file)
                found = bytes(file.read(len(names)))
                if found != names:
                    raise InputError("CSV_NAMES", "files with other names in their first lines cannot become one file")
                if number == 0:
                    stream.write(names)
                _copy(file, stream)


class JsonFormat(FileFormat):
    """One object per line, values as ``headwater replay`` prints them: ISO times, base64, decimals and NaN as texts."""

    name, extension = "json", ".json"

    def write(self, table: pa.Table, stream: Any) -> None:
        from headwater.expressions.connection import connection

        pairs = ", ".join(f"{string_literal(f.name)}: {_json(table.column(f.name), f)}" for f in table.schema)
        database = connection()
        database.register("_table", table)
        try:
            lines = database.sql(f"SELECT to_json({{{pairs}}})::VARCHAR || chr(10) FROM _table")
            for batch in lines.to_arrow_reader(_BATCH):
                stream.write(_text(batch.column(0)))
        finally:
            database.unregister("_table")

    def join(self, files: Sequence[Callable[[], Any]], stream: Any) -> None:
        for opened in files:
            with opened() as file:
                _copy(file, stream)


def _copy(file: Any, stream: Any) -> None:
    while len(piece := file.read_buffer(_PIECE)):
        stream.write(piece)


def _first_record(file: Any) -> bytes:
    """The line of names, which may have line breaks in quotes. The file is at its beginning again."""
    text, end = b"", -1
    while end < 0 and (piece := bytes(file.read(_LINE))):
        text += piece
        quotes, breaks = (np.frombuffer(text, np.uint8) == ord(c) for c in '"\n')
        outside = np.flatnonzero(breaks & (np.cumsum(quotes) % 2 == 0))
        end = int(outside[0]) if len(outside) else -1
    file.seek(0)
    return text[: end + 1] if end >= 0 else text


def _text(lines: pa.Array) -> pa.Buffer:
    """The lines one after another: that is how Arrow keeps them."""
    wide = pa.types.is_large_string(lines.type)
    _, offsets, text = lines.buffers()
    places = view(offsets, np.int64 if wide else np.int32)
    first, last = int(places[lines.offset]), int(places[lines.offset + len(lines)])
    return text.slice(first, last - first)


def _json(column: pa.ChunkedArray, field: pa.Field) -> str:
    name = quoted(field.name)
    if pa.types.is_floating(field.type) and _all_finite(column):
        return name  # DuckDB writes NaN and Infinity bare, which is no JSON, so they need care; but they are rare
    return _json_value(name, field.type, 0)


def _all_finite(column: pa.ChunkedArray) -> bool:
    return all(np.isfinite(chunk.drop_null().to_numpy(zero_copy_only=False)).all() for chunk in column.chunks)


def _json_value(value: str, type_: pa.DataType, depth: int) -> str:
    """The SQL expression of what ``to_json`` shall print for a value."""
    if pa.types.is_floating(type_):
        return (
            f"CASE WHEN isfinite({value}) THEN to_json({value}) WHEN isnan({value}) THEN to_json('NaN')"
            f" WHEN {value} > 0 THEN to_json('Infinity') WHEN {value} < 0 THEN to_json('-Infinity') END"
        )
    if pa.types.is_decimal(type_):
        return f"{value}::VARCHAR"
    if pa.types.is_timestamp(type_):
        return f"replace({value}::VARCHAR, ' ', 'T')"
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return f"to_base64({value})"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        item = f"v{depth}"
        return f"list_transform({value}, lambda {item}: {_json_value(item, type_.value_type, depth + 1)})"
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        inside = (
            f"{string_literal(f.name)}: {_json_value(f'struct_extract({value}, {string_literal(f.name)})', f.type, depth)}"
            for f in fields
        )
        return f"CASE WHEN {value} IS NOT NULL THEN {{{', '.join(inside)}}} END"
    return value
