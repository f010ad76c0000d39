"""A folder for state: a local path, whose files are mapped, or a place on any file system that pyarrow knows.

Folder("checkpoint")   Folder("s3://bucket/checkpoint")   Folder("hdfs://host/checkpoint")
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyarrow import fs

from headwater.errors import StateError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
UNFINISHED = ".unfinished"
"""How the name of a file ends that is not whole yet."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_OBJECT_STORES = ("s3", "gcs", "abfs")  # an object appears as a whole when it is closed, and cannot be moved at once


class Folder:
    """Files by name. Picklable: a task opens the file system anew; a relative path becomes absolute when it is named.

    ``files``: a file system that no URI names; the place is a path in it, and nothing is mapped.
    """

    def __init__(self, place: str | os.PathLike[str], files: fs.FileSystem | None = None) -> None:
        text = os.fspath(place)
        self.files = files
        if files is None and urlparse(text).scheme == "file":
            text = unquote(urlparse(text).path)
        is_path = files is None and not _SCHEME.match(text)
        self.place = os.path.abspath(os.path.expanduser(text)) if is_path else text.rstrip("/")
        self.is_local = is_path

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_opened"}

    def __str__(self) -> str:
        return self.place

    def __truediv__(self, name: str) -> Self:
        return type(self)(f"{self.place}/{name}", self.files)

    @cached_property
    def _opened(self) -> tuple[fs.FileSystem, str]:
        if self.files is not None:
            return self.files, self.place
        if self.is_local:
            return fs.LocalFileSystem(), self.place
        try:
            return fs.FileSystem.from_uri(re.sub("^s3[an]:", "s3:", self.place))  # as Spark calls it
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as problem:
            raise StateError(
                "STATE_PLACE",
                f'"{self.place}" cannot be opened as a folder',
                detail=str(problem),
                hint="Write a path, or a URI that pyarrow knows: file://, s3://, gs://, hdfs://, abfs://.",
            ) from problem

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, name: str) -> pa.Buffer:
        """A file's bytes: mapped where it is local, else in memory. FileNotFoundError if there is none."""
        files, path = self._opened
        if self.is_local:
            with pa.memory_map(f"{path}/{name}") as source:
                return source.read_buffer()
        with files.open_input_file(f"{path}/{name}") as source:
            return source.read_buffer()

    def names(self) -> list[str]:
        """The names of the files and folders inside, sorted; none if the folder does not exist."""
        files, path = self._opened
        found = files.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(info.base_name for info in found)

    def exists(self, name: str = "") -> bool:
        """Is there such a file or folder inside, or this folder itself?"""
        files, path = self._opened
        return files.get_file_info(f"{path}/{name}".rstrip("/")).type != fs.FileType.NotFound

    # -- writing ----------------------------------------------------------------------------------------------------

    def make(self) -> None:
        """Be there."""
        files, path = self._opened
        with self._state_errors():
            Path(path).mkdir(parents=True, exist_ok=True) if self.is_local else files.create_dir(path, recursive=True)

    def write(self, name: str, data: pa.Buffer | bytes, *, sync: bool = False) -> None:
        """A new file. If that fails, nothing is left of it. ``sync``: come back when it is on the disk for good."""
        with self._state_errors():
            try:
                self._write(name, data, sync=sync)
            except BaseException as problem:
                if not isinstance(problem, FileExistsError):
                    with suppress(OSError):
                        self.delete(name)
                raise

    def replace(
        self,
        name: str,
        data: pa.Buffer | bytes,
        *,
        sync: bool = False,
        ready: Callable[[], object] = lambda: None,
    ) -> None:
        """A file that may be there already. Whoever reads it sees the old one or the new one, always whole.

        ``ready`` is called when all of it is written and nobody sees it yet.
        """
        files, path = self._opened
        if files.type_name in _OBJECT_STORES:
            ready()
            self.write(name, data)
            return
        unfinished = f"{name}{UNFINISHED}"
        self.delete(unfinished)
        self.write(unfinished, data, sync=sync)
        ready()
        with self._state_errors():
            if self.is_local:
                os.replace(f"{path}/{unfinished}", f"{path}/{name}")
                self._sync_names(sync=sync)
            else:
                files.move(f"{path}/{unfinished}", f"{path}/{name}")

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        files, path = self._opened
        with suppress(FileNotFoundError):
            os.unlink(f"{path}/{name}") if self.is_local else files.delete_file(f"{path}/{name}")

    def delete_all(self) -> None:
        """The folder, with whatever is in it."""
        files, path = self._opened
        with suppress(FileNotFoundError):
            files.delete_dir(path)

    def _write(self, name: str, data: pa.Buffer | bytes, *, sync: bool) -> None:
        files, path = self._opened
        if not self.is_local:
            with files.open_output_stream(f"{path}/{name}") as stream:
                stream.write(data)
            return
        with open(f"{path}/{name}", "xb", buffering=0) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
            if sync:
                os.fsync(file.fileno())
        self._sync_names(sync=sync)

    def _sync_names(self, *, sync: bool) -> None:
        """A file is only there for good when its folder is on the disk too."""
        if sync:
            folder = os.open(self.place, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    @contextmanager
    def _state_errors(self) -> Iterator[None]:
        """What goes wrong in writing, as an error that says what to do."""
        try:
            yield
        except OSError as problem:
            if problem.errno in _FULL:
                raise StateError(
                    "STATE_DISK_FULL",
                    f'state could not be written to "{self}": the disk is full',
                    detail=str(problem),
                    hint="Make room and start again: it goes on from the last tick that was committed.",
                ) from problem
            raise StateError(
                "STATE_UNWRITABLE",
                f'state could not be written to "{self}"',
                detail=str(problem),
                hint="Does the folder exist, and may you write there? Then start again: nothing is lost.",
            ) from problem
