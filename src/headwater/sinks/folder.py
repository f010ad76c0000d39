"""A folder on any file system that pyarrow knows: a local path, or a URI such as ``s3://bucket/answers``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyarrow import fs

from headwater.errors import InputError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Folder:
    """Picklable: a task opens the file system anew. A relative path means the folder of the process that names it first."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        text = os.fspath(place)
        self.place = text.rstrip("/") if _SCHEME.match(text) else os.path.abspath(os.path.expanduser(text))

    def __getstate__(self) -> str:
        return self.place

    def __setstate__(self, state: str) -> None:
        self.place = state

    def __str__(self) -> str:
        return self.place

    def __truediv__(self, name: str) -> Folder:
        return Folder(f"{self.place}/{name}")

    @cached_property
    def _opened(self) -> tuple[fs.FileSystem, str]:
        if not _SCHEME.match(self.place):
            return fs.LocalFileSystem(), self.place
        try:
            return fs.FileSystem.from_uri(self.place)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as problem:
            raise InputError(
                "UNKNOWN_PLACE",
                f'"{self.place}" cannot be opened as a folder',
                detail=str(problem),
                hint="Write a path, or a URI that pyarrow knows: file://, s3://, gs://, hdfs://, abfs://.",
            ) from problem

    @property
    def is_local(self) -> bool:
        return isinstance(self._opened[0], fs.LocalFileSystem)

    def make(self) -> None:
        with _told(self, "written"):
            files, path = self._opened
            files.create_dir(path, recursive=True)

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """A stream into a new file; what is written in part, when it fails, is left behind under its name."""
        files, path = self._opened
        with _told(self, "written"), files.open_output_stream(f"{path}/{name}") as stream:
            yield stream

    def write_atomically(self, name: str, data: bytes) -> None:
        """All or nothing: readers see the old file or the new one."""
        unfinished = f"_{name}.new"
        with self.writing(unfinished) as stream:
            stream.write(data)
        self.move(unfinished, name)

    def read(self, name: str) -> bytes | None:
        """None where there is no such file."""
        files, path = self._opened
        try:
            with files.open_input_stream(f"{path}/{name}") as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def opened(self, name: str) -> Any:
        """A file to read at any place; mapped where it can be."""
        files, path = self._opened
        return pa.memory_map(f"{path}/{name}") if self.is_local else files.open_input_file(f"{path}/{name}")

    def move(self, old: str, new: str) -> None:
        files, path = self._opened
        with _told(self, "written"):
            files.move(f"{path}/{old}", f"{path}/{new}")

    def exists(self, name: str) -> bool:
        files, path = self._opened
        return files.get_file_info(f"{path}/{name}").type != fs.FileType.NotFound

    def names(self) -> list[str]:
        """The names of the files and folders inside; none if the folder does not exist."""
        files, path = self._opened
        found = files.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(info.base_name for info in found)

    def delete(self, name: str) -> None:
        """Delete a file, if it is still there."""
        files, path = self._opened
        try:
            files.delete_file(f"{path}/{name}")
        except FileNotFoundError:
            return


@contextmanager
def _told(folder: Folder, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InputError(
            "UNWRITABLE",
            f'"{folder}" could not be {what}',
            detail=str(problem),
            hint="Does the place exist, is there room, and may you write there?",
        ) from problem


def split_place(path: str) -> tuple[Folder, str]:
    """A file's folder and its name in it."""
    place, _, name = path.rpartition("/")
    return Folder(place), name
