"""Rows pushed from Python: for notebooks, tests and programs that make their own data."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.errors import InputError
from headwater.language.changes import element_columns
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.sources.base import Malformed, Piece, Polled, Reader, Source, Split
from headwater.sources.conform import UnfitError, find_column
from headwater.sources.file_names import open_file
from headwater.sources.left_out import can_leave_out

_PROMISE, _PARTITION = b"headwater.promise", b"headwater.partition"
ELEMENTS = element_columns(timestamps=False)
"""What makes elements of rows."""
Rows = Any
"""An Arrow table or batch, a pandas or polars DataFrame, a Delta, or a list of dicts or tuples."""
_HINT = "Push an Arrow table, a DataFrame, or a list of dicts or tuples."


@frozen
class MemoryReader(Reader):
    """Reads what was pushed at once."""

    schema: Schema

    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        with pa.ipc.open_file(open_file(split["path"])) as file:
            there = file.schema
        left_out = can_leave_out(there, self.schema, columns)
        read = [place for place, name in enumerate(there.names) if name not in left_out.values()]
        options = pa.ipc.IpcReadOptions(included_fields=read)
        with pa.ipc.open_file(open_file(split["path"]), options=options) as file:
            kept = file.schema.metadata or {}
            promise = int(kept[_PROMISE]) if _PROMISE in kept else None
            partition = kept.get(_PARTITION, b"").decode()
            where = f"push {int(Path(split['path']).stem)}"
            plain = pa.schema([there.field(place) for place in read])
            about = {"partition": partition, "where": where, "promise": promise, "left_out": frozenset(left_out)}
            if file.num_record_batches == 0:
                yield Piece(pa.RecordBatch.from_pylist([], schema=plain), **about)
            for i in range(file.num_record_batches):
                yield Piece(file.get_batch(i).replace_schema_metadata(None), **about)


class MemorySource(Source):
    """What ``push`` is given, in that order.

    Pushed rows go through a folder of Arrow files, so that tasks on Spark can read them: a temporary one that goes with
    the source, or one of yours, which all machines must see and which then survives a crash.

    Examples
    --------
    >>> from headwater.model.schema import Schema
    >>> source = MemorySource(Schema.of(x="BIGINT", ts="BIGINT"))
    >>> source.push([{"x": 1, "ts": 10}, {"x": 2, "ts": 11}])
    >>> source.push([(3, 15)], frontier=15)
    >>> [source.split_rows(split) for split in source.poll(None, 100).splits]
    [2, 1]
    """

    def __init__(
        self,
        schema: Schema,
        *,
        folder: str | Path | None = None,
        malformed: Malformed = "fail",
        optional: Schema = ELEMENTS,
    ) -> None:
        self.schema, self.malformed, self.optional = schema, malformed, optional
        self.reader = MemoryReader(schema)
        self.durable = folder is not None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="headwater-memory-", ignore_cleanup_errors=True)
            folder = self._temporary.name
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._pushed = sum(1 for _ in self.folder.glob("[0-9]*.arrow"))
        self._ended = False

    def push(self, rows: Rows = (), *, frontier: int | None = None, partition: str = "") -> None:
        """Add rows, which a later tick takes; ``frontier``: nothing before this instant comes any more.

        A stream without a time column takes a ``Delta``, or rows with the columns ``_start``, ``_end`` and ``_weight``.
        """
        if self._ended:
            raise InputError("SOURCE_ENDED", "this source has ended and takes no more rows")
        table = as_table(rows, self.schema, self.optional)
        kept = {_PARTITION: partition.encode()}
        if frontier is not None:
            kept[_PROMISE] = str(frontier).encode()
        path = self._path(self._pushed)
        hidden = path.with_name(f".{path.name}")
        with pa.ipc.new_file(hidden, table.schema.with_metadata(kept)) as file:
            file.write_table(table)
        hidden.rename(path)  # whole at once
        self._pushed += 1

    def end(self) -> None:
        """Nothing more comes: everything that was pushed becomes final."""
        self.push(frontier=INFINITY)
        self._ended = True

    def poll(self, offset: Any, rows: int) -> Polled:
        next_ = offset["next"] if offset is not None else 0
        taken, held = [], 0
        while next_ < self._pushed:
            split = {"path": str(self._path(next_))}
            count = self.split_rows(split)
            if taken and held + count > rows:
                break
            taken.append(split)
            held, next_ = held + count, next_ + 1
        return Polled(taken, {"next": next_}, finished=self._ended and next_ == self._pushed)

    def split_rows(self, split: Split) -> int:
        with pa.ipc.open_file(open_file(split["path"])) as file:
            return file.count_rows()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:012d}.arrow"

    def __repr__(self) -> str:
        return "memory()"


class PushedSource(Source):
    """A stream whose rows are pushed through the engine; nobody asks it for any."""

    durable = False

    def __init__(self, schema: Schema, *, malformed: Malformed = "fail", optional: Schema = ELEMENTS) -> None:
        self.schema, self.malformed, self.optional = schema, malformed, optional

    def __repr__(self) -> str:
        return "push()"


def as_table(rows: Rows, schema: Schema, optional: Schema = ELEMENTS) -> pa.Table:
    """Rows as Arrow; what does not fit the declared types stays as it is, and the intake judges it.

    ``optional``: the columns that they may have besides those of the schema.
    """
    if isinstance(rows, Delta):
        return pa.Table.from_batches([rows.to_batch()])
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        return rows.combine_chunks()
    try:
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows).combine_chunks()
        if hasattr(rows, "to_numpy") and hasattr(rows, "columns"):
            return pa.Table.from_pandas(rows, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        reason = str(problem).partition("\n")[0]
        raise InputError("BAD_ROWS", f"cannot take rows from this {type(rows).__name__}", detail=reason) from None
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Sequence):
        one = isinstance(rows, Mapping)
        raise InputError(
            "BAD_ROWS",
            f"cannot take rows from {'one dict' if one else type(rows).__name__}",
            hint="Push a list of rows: [{…}]." if one else _HINT,
        )
    return _from_python(list(rows), schema, optional)


def _from_python(rows: list[Any], schema: Schema, optional: Schema) -> pa.Table:
    dicts = [r for r in rows if isinstance(r, Mapping)]
    for number, row in enumerate(rows, 1):
        if isinstance(row, (str, bytes)) or not isinstance(row, (Mapping if dicts else Sequence)):
            wanted = "a dict like the others" if dicts else "a dict or a tuple"
            raise InputError("BAD_ROWS", f"row {number} is no row: {_shown(row)} is not {wanted}", hint=_HINT)
    if not dicts:
        return _from_tuples(rows, schema)
    shapes: dict[tuple[Any, ...], dict[str, Any]] = {}
    for number, row in enumerate(rows, 1):
        if (shape := tuple(row)) not in shapes:
            shapes[shape] = _keys(number, shape, schema, optional)
    spelled = [shapes[tuple(row)] for row in rows]
    names = [
        *schema.names,
        *(n for n in optional.names if n not in schema.names and any(n in s for s in shapes.values())),
    ]
    types = {field.name: field.type for field in (*optional, *schema)}
    pairs = list(zip(rows, spelled, strict=True))
    columns = {name: [row[keys[name]] if name in keys else None for row, keys in pairs] for name in names}
    return pa.table([_column(values, types[name]) for name, values in columns.items()], names)


def _from_tuples(rows: list[Any], schema: Schema) -> pa.Table:
    for number, row in enumerate(rows, 1):
        if len(row) != len(schema):
            raise InputError("BAD_ROWS", f"row {number} has {len(row)} values, not {len(schema)}", detail=_shown(row))
    columns = [[row[i] for row in rows] for i in range(len(schema))]
    pairs = zip(columns, schema, strict=True)
    return pa.table([_column(values, field.type) for values, field in pairs], list(schema.names))


def _keys(number: int, shape: tuple[Any, ...], schema: Schema, optional: Schema) -> dict[str, Any]:
    """How rows with these keys spell the columns that they have."""
    texts = [key for key in shape if isinstance(key, str)]
    try:
        found = {name: find_column(name, texts) for name in (*schema.names, *optional.names)}
    except UnfitError as problem:
        raise InputError("AMBIGUOUS_COLUMN", f"row {number}: {problem}") from None
    keys = {name: texts[place] for name, place in found.items() if place >= 0}
    unknown = [key for key in shape if key not in keys.values()]
    if unknown:
        hint = f"The columns are {', '.join(schema.names or optional.names)}."
        raise InputError("UNKNOWN_COLUMN", f"row {number}: the stream has no column {_quoted(unknown[0])}", hint=hint)
    return keys


def _column(values: list[Any], type_: pa.DataType) -> pa.Array:
    # Arrow would cut a fraction off; the intake says that it is none of the type.
    cut = pa.types.is_integer(type_) and any(isinstance(v, float) for v in values)
    counted = _counts_time(values, type_)
    for wanted in () if counted and not pa.types.is_nested(type_) else (None if cut or counted else type_, None):
        try:
            return pa.array(values, wanted)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
    # Values of different types: as text, so that those that are none of the type are told, or kept apart, row by row.
    return pa.array([None if v is None else _as_text(v) for v in values], pa.string())


def _counts_time(values: Iterable[Any], type_: pa.DataType) -> bool:
    """Are there numbers where times are declared? Arrow would take them, in a unit that nobody has said."""
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return any(isinstance(v, (int, float, np.number)) for v in values)
    if pa.types.is_list(type_):
        return any(_counts_time(v, type_.value_type) for v in values if isinstance(v, (list, tuple)))
    if pa.types.is_struct(type_):
        dicts = [v for v in values if isinstance(v, Mapping)]
        fields = (type_.field(i) for i in range(type_.num_fields))
        return any(_counts_time([v.get(f.name) for v in dicts], f.type) for f in fields)
    return False


def _as_text(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _quoted(key: Any) -> str:
    return f'"{key}"' if isinstance(key, str) else _shown(key)
