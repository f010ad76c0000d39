"""Where segments live: in memory, or as memory-mapped Arrow IPC files.

A segment file is an Arrow IPC file of one row whose columns are large lists, so columns of different length (a radix
directory beside the rows) share a file, everything is mapped without a copy, and opening costs the same at any size.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from headwater.errors import StateError
from headwater.model.arrays import view
from headwater.state.columns import Column, Columns, bytes_of, is_constant

FORMAT_VERSION = 1


class Segment:
    """Immutable columns under a name of their own; ``least``/``most`` bound the times inside, for opening lazily."""

    __slots__ = ("_columns", "_path", "bytes", "least", "most", "name", "rows")

    def __init__(
        self, name: str, rows: int, size: int, least: int, most: int, columns: Columns | None, path: Path | None = None
    ) -> None:
        self.name, self.rows, self.bytes, self.least, self.most = name, rows, size, least, most
        self._columns, self._path = columns, path

    @property
    def columns(self) -> Columns:
        if self._columns is not None:
            return self._columns
        assert self._path is not None
        return _open_mapped(self._path)

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def array(self, name: str) -> np.ndarray:
        column = self.columns[name]
        assert isinstance(column, np.ndarray)
        return column

    def to_manifest(self) -> dict[str, object]:
        return {"name": self.name, "rows": self.rows, "bytes": self.bytes, "least": self.least, "most": self.most}


class Store(Protocol):
    """Makes segments; never changes one."""

    def write(self, columns: Columns, *, rows: int, least: int = 0, most: int = 0) -> Segment: ...

    def open(self, manifest: dict[str, object]) -> Segment:
        """The segment that ``Segment.to_manifest`` described."""
        ...


class MemoryStore:
    """Segments as plain arrays."""

    def write(self, columns: Columns, *, rows: int, least: int = 0, most: int = 0) -> Segment:
        # A name is given when the segment is made: two segments may share array objects.
        return Segment(uuid.uuid4().hex, rows, bytes_of(columns.values()), least, most, columns)

    def open(self, manifest: dict[str, object]) -> Segment:
        raise StateError("STATE_NOT_DURABLE", "state kept in memory cannot be read back")


class FileStore:
    """Segments as files of a folder, mapped when read."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(self, columns: Columns, *, rows: int, least: int = 0, most: int = 0) -> Segment:
        name = uuid.uuid4().hex
        path = self.folder / f"{name}.arrow"
        size = bytes_of(columns.values())
        arrays = {n: _as_arrow(c) for n, c in columns.items()}
        lists = [pa.LargeListArray.from_arrays(pa.array([0, len(a)], pa.int64()), a) for a in arrays.values()]
        kinds = {n: _kind(c) for n, c in columns.items()}
        fields = [pa.field(n, a.type, metadata={"kind": kinds[n]}) for n, a in zip(arrays, lists, strict=True)]
        schema = pa.schema(fields, metadata={"headwater": json.dumps({"format": FORMAT_VERSION, "rows": rows})})
        batch = pa.RecordBatch.from_arrays(lists, schema=schema)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(batch)
        return Segment(name, rows, size, least, most, None, path)

    def open(self, manifest: dict[str, object]) -> Segment:
        name = str(manifest["name"])
        rows, size, least, most = (int(str(manifest[k])) for k in ("rows", "bytes", "least", "most"))
        return Segment(name, rows, size, least, most, None, self.folder / f"{name}.arrow")

    def sweep(self, live: set[str]) -> int:
        """Delete the files of segments that nobody names any more; returns how many."""
        dead = [p for p in self.folder.glob("*.arrow") if p.stem not in live]
        for path in dead:
            _mappings.pop(path, None)
            path.unlink()
        return len(dead)


_mappings: OrderedDict[Path, Columns] = OrderedDict()  # segments are immutable, so a cached mapping is always valid
_MOST_MAPPINGS = 512


def _open_mapped(path: Path) -> Columns:
    columns = _mappings.get(path)
    if columns is not None:
        _mappings.move_to_end(path)
        return columns
    try:
        with pa.memory_map(str(path)) as source:
            batch = pa.ipc.open_file(source).get_batch(0)
    except FileNotFoundError:
        raise StateError("STATE_MISSING", f'state segment "{path.name}" does not exist') from None
    except (pa.ArrowInvalid, OSError) as error:
        raise StateError("STATE_DAMAGED", f'state segment "{path.name}" cannot be read', detail=str(error)) from None
    described = json.loads((batch.schema.metadata or {}).get(b"headwater", b'{"format": 0}'))
    if described["format"] != FORMAT_VERSION:
        raise StateError(
            "STATE_VERSION",
            f'state segment "{path.name}" has format {described["format"]}, this version reads {FORMAT_VERSION}',
        )
    columns = {}
    for i, field in enumerate(batch.schema):
        values = batch.column(i).values
        kind, _, width = (field.metadata or {}).get(b"kind", b"").decode().partition(":")
        if kind == "constant":
            columns[field.name] = np.broadcast_to(_as_numpy(values), described["rows"])
        elif kind == "records":
            columns[field.name] = _as_numpy(values).reshape(-1, int(width))
        else:
            columns[field.name] = _as_numpy(values) if kind == "numpy" else values
    _mappings[path] = columns
    if len(_mappings) > _MOST_MAPPINGS:
        _mappings.popitem(last=False)
    return columns


def _kind(column: Column) -> str:
    if is_constant(column):
        return "constant"
    if isinstance(column, np.ndarray):
        return "numpy" if column.ndim == 1 else f"records:{column.shape[1]}"
    return "arrow"


def _as_arrow(column: Column) -> pa.Array:
    if not isinstance(column, np.ndarray):
        return column
    return pa.array(column[:1] if is_constant(column) else column.reshape(-1))


def _as_numpy(values: pa.Array) -> np.ndarray:
    dtype = values.type.to_pandas_dtype()
    return view(values.buffers()[1], dtype)[values.offset : values.offset + len(values)]
