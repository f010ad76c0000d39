"""Where segments live: in memory, or as memory-mapped Arrow IPC files.

A segment file is an Arrow IPC file of one row whose columns are large lists, so columns of different length (a radix
directory beside the rows) share a file, everything is mapped without a copy, and opening costs the same at any size.

A file gets a name of its own and is never changed, so a manifest that names it can be committed as soon as it is written.
The manifest has its checksum as well: a process that did not write the file compares it when it opens the file first.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.errors import StateError
from headwater.kernels.checksum import checksum
from headwater.model.arrays import view
from headwater.state.columns import Column, Columns, is_constant
from headwater.state.filesystem import Folder

FORMAT_VERSION = 1
_ENDING = ".arrow"
_START_AGAIN = "Put the file back from a copy of the checkpoint, or start with an empty checkpoint folder."


class Segment:
    """Immutable columns under a name of their own; ``least``/``most`` bound the times inside, for opening lazily."""

    __slots__ = ("_columns", "_folder", "_keep", "bytes", "checksum", "least", "most", "name", "rows")

    def __init__(
        self,
        name: str,
        rows: int,
        size: int,
        least: int,
        most: int,
        *,
        columns: Columns | None = None,
        folder: Folder | None = None,
        checksum: int | None = None,
        keep: Callable[[str, Columns, int], int] | None = None,
    ) -> None:
        self.name, self.rows, self.bytes, self.least, self.most = name, rows, size, least, most
        self.checksum = checksum
        self._columns, self._folder, self._keep = columns, folder, keep

    @property
    def columns(self) -> Columns:
        if self._columns is not None:
            return self._columns
        assert self._folder is not None
        return _files.open(self._folder, self.name + _ENDING, self.checksum)

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def array(self, name: str) -> np.ndarray:
        return self.columns.array(name)

    def to_manifest(self) -> dict[str, Any]:
        """Its name and ranges. Once a manifest names it, it is kept: many are merged away before that."""
        if self._keep is not None and self._columns is not None:
            self.checksum = self._keep(self.name, self._columns, self.rows)
            self._columns = self._keep = None
        manifest = {"name": self.name, "rows": self.rows, "bytes": self.bytes, "least": self.least, "most": self.most}
        return manifest | ({} if self.checksum is None else {"checksum": self.checksum})


class Store(Protocol):
    """Makes segments; never changes one."""

    def write(self, columns: Mapping[str, Column], *, rows: int, least: int = 0, most: int = 0) -> Segment: ...

    def open(self, manifest: dict[str, Any]) -> Segment:
        """The segment that ``Segment.to_manifest`` described; its columns are read when they are asked for."""
        ...


class MemoryStore:
    """Segments as plain arrays."""

    def write(self, columns: Mapping[str, Column], *, rows: int, least: int = 0, most: int = 0) -> Segment:
        # A name is given when the segment is made: two segments may share array objects.
        columns = Columns(columns)
        return Segment(uuid.uuid4().hex, rows, columns.nbytes, least, most, columns=columns)

    def open(self, manifest: dict[str, Any]) -> Segment:
        raise StateError("STATE_NOT_DURABLE", "state kept in memory cannot be read back")


class FileStore:
    """Segments as files of a folder, mapped when read where the folder is local. A file is written when a manifest first
    names its segment: most of what a tick makes is merged again before it ends.

    ``sync``: every segment is on the disk for good before it is named, so it survives a loss of power too.
    ``check``: compare checksums when another process' segments are opened first.
    """

    def __init__(self, folder: str | os.PathLike[str] | Folder, *, sync: bool = False, check: bool = True) -> None:
        self.folder = folder if isinstance(folder, Folder) else Folder(folder)
        self._sync, self._check = sync, check
        self.folder.make()

    def write(self, columns: Mapping[str, Column], *, rows: int, least: int = 0, most: int = 0) -> Segment:
        columns, name = Columns(columns), uuid.uuid4().hex
        return Segment(name, rows, columns.nbytes, least, most, columns=columns, folder=self.folder, keep=self._keep)

    def _keep(self, name: str, columns: Columns, rows: int) -> int:
        """Put a segment on disk; returns its checksum."""
        data = _encode(columns, rows)
        self.folder.write(name + _ENDING, data, sync=self._sync)
        _files.trust(self.folder, name + _ENDING)
        return checksum(data)

    def open(self, manifest: dict[str, Any]) -> Segment:
        numbers = (manifest[n] for n in ("rows", "bytes", "least", "most"))
        if not self._check:
            _files.trust(self.folder, manifest["name"] + _ENDING)
        return Segment(manifest["name"], *numbers, folder=self.folder, checksum=manifest.get("checksum"))

    def sweep(self, live: set[str]) -> int:
        """Delete the files of segments that nobody names any more; returns how many."""
        segments = [name for name in self.folder.names() if name.endswith(_ENDING)]
        dead = [name for name in segments if name.removesuffix(_ENDING) not in live]
        for name in dead:
            _files.forget(self.folder, name)
            self.folder.delete(name)
        return len(dead)


# -- files ----------------------------------------------------------------------------------------------------------


class _Files:
    """The segment files that this process has open, those used last: they never change, so what is open stays valid."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[Columns, int]] = OrderedDict()
        self._trusted: OrderedDict[str, None] = OrderedDict()  # written here, or compared with their checksums
        self._in_memory = 0
        self._opened = 0
        self._lock = Lock()

    def open(self, folder: Folder, name: str, expected: int | None) -> Columns:
        path = f"{folder}/{name}"
        with self._lock:
            known = self._open.get(path)
            if known is not None:
                self._open.move_to_end(path)
                return known[0]
        columns, size = self._read(folder, name, expected, path)
        with self._lock:
            self._drop(path)
            self._open[path] = columns, size
            self._in_memory += size
            self._opened += 1
            if self._opened % _LOOK_EVERY == 0:  # a file that is deleted and still mapped takes room on the disk
                for gone in [p for p, (_, kept) in self._open.items() if not kept and not os.path.exists(p)]:
                    self._drop(gone)
            while len(self._open) > _MOST_OPEN or (self._in_memory > _MOST_IN_MEMORY and len(self._open) > 1):
                self._drop(next(iter(self._open)))
        return columns

    def _read(self, folder: Folder, name: str, expected: int | None, path: str) -> tuple[Columns, int]:
        try:
            data = folder.read(name)
            if expected is not None and path not in self._trusted:
                if checksum(data) != expected:
                    raise _damaged(path, "its content is not what was written: the checksum differs")
                self.trust(folder, name)
            return _decode(data, path), 0 if folder.is_local else data.size
        except FileNotFoundError:
            raise StateError("STATE_MISSING", f'state segment "{path}" does not exist', hint=_START_AGAIN) from None
        except (pa.ArrowInvalid, OSError) as problem:
            raise _damaged(path, str(problem)) from problem

    def trust(self, folder: Folder, name: str) -> None:
        """Its content need not be compared any more."""
        with self._lock:
            self._trusted[f"{folder}/{name}"] = None
            if len(self._trusted) > _MOST_TRUSTED:
                self._trusted.popitem(last=False)

    def forget(self, folder: Folder, name: str) -> None:
        with self._lock:
            self._drop(f"{folder}/{name}")

    def _drop(self, path: str) -> None:
        self._in_memory -= self._open.pop(path, (None, 0))[1]


_MOST_OPEN = 512
_LOOK_EVERY = 128
_MOST_IN_MEMORY = 1 << 30  # bytes of files that could not be mapped
_MOST_TRUSTED = 1 << 16
_files = _Files()


def _damaged(path: str, reason: str) -> StateError:
    return StateError("STATE_DAMAGED", f'state segment "{path}" cannot be read', detail=reason, hint=_START_AGAIN)


def _encode(columns: Columns, rows: int) -> pa.Buffer:
    arrays = {n: _as_arrow(c) for n, c in columns.items()}
    lists = [pa.LargeListArray.from_arrays(pa.array([0, len(a)], pa.int64()), a) for a in arrays.values()]
    kinds = {n: _kind(c) for n, c in columns.items()}
    fields = [pa.field(n, a.type, metadata={"kind": kinds[n]}) for n, a in zip(arrays, lists, strict=True)]
    schema = pa.schema(fields, metadata={"headwater": json.dumps({"format": FORMAT_VERSION, "rows": rows})})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(lists, schema=schema))
    return sink.getvalue()


def _decode(data: pa.Buffer, path: str) -> Columns:
    batch = pa.ipc.open_file(data).get_batch(0)
    described = json.loads((batch.schema.metadata or {}).get(b"headwater", b'{"format": 0}'))
    if described["format"] != FORMAT_VERSION:
        raise StateError(
            "STATE_VERSION",
            f'state segment "{path}" has format {described["format"]}, this version reads {FORMAT_VERSION}',
            hint="Go on with the version of Headwater that wrote it, or start with an empty checkpoint folder.",
        )
    columns: dict[str, Column] = {}
    for i, field in enumerate(batch.schema):
        values = batch.column(i).values
        kind, _, width = (field.metadata or {}).get(b"kind", b"").decode().partition(":")
        if kind == "constant":
            columns[field.name] = np.broadcast_to(_as_numpy(values), described["rows"])
        elif kind == "records":
            columns[field.name] = _as_numpy(values).reshape(-1, int(width))
        else:
            columns[field.name] = _as_numpy(values) if kind == "numpy" else values
    return Columns(columns)


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
