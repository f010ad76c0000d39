"""A folder that answers go to: a local path, or a URI such as ``s3://bucket/answers``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import fs

from headwater.errors import InputError
from headwater.state import filesystem


class Folder(filesystem.Folder):
    """Files that are written piece by piece and appear under their name when they are whole."""

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """A stream into a new file; what is written in part, when it fails, is left behind under its name."""
        files, path = self._opened
        with self._input_errors(), files.open_output_stream(f"{path}/{name}") as stream:
            yield stream

    def move(self, old: str, new: str) -> None:
        files, path = self._opened
        with self._input_errors():
            files.move(f"{path}/{old}", f"{path}/{new}")

    def opened(self, name: str) -> Any:
        """A file to read at any place; mapped where it can be."""
        files, path = self._opened
        return pa.memory_map(f"{path}/{name}") if self.is_local else files.open_input_file(f"{path}/{name}")

    def sizes(self, names: Sequence[str]) -> list[int]:
        """The bytes of each file; -1 for one that is not there."""
        files, path = self._opened
        found = files.get_file_info([f"{path}/{name}" for name in names])
        return [-1 if info.type != fs.FileType.File else info.size or 0 for info in found]

    @contextmanager
    def _input_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise InputError(
                "UNWRITABLE",
                f'"{self}" could not be written',
                detail=str(problem),
                hint="Is there room, and may you write there? On a cluster it must be a place that all machines share.",
            ) from problem


def split_place(path: str) -> tuple[Folder, str]:
    """A file's folder and its name in it."""
    place, _, name = path.rpartition("/")
    return Folder(place), name
