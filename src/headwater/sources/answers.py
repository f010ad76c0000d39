"""Answers of another engine, as a stream: how far they are complete stands in the record of their folder.

The record is written when all files of a tick are in place (``sinks/file_sink.py``). So whoever reads the record first, and
then takes every file that is there, has everything up to the frontier that the record tells: nothing comes before it.
No file is written for a tick without rows, and no row among the answers says anything of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa

from headwater.errors import InputError
from headwater.model.time import BEGINNING, INFINITY
from headwater.sources.base import Piece, Reader, Split
from headwater.sources.file_names import file_system, folder_of, is_file
from headwater.state.sealed import ANSWERS, unseal

STABLE = "stable"
"""In a split without a file: nothing before this instant comes any more."""


class StableReader(Reader):
    """Reads files, and splits that say how far they are complete."""

    def __init__(self, files: Reader) -> None:
        self._files = files

    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        if STABLE in split:
            yield Piece(pa.RecordBatch.from_pylist([], schema=pa.schema([])), promise=split[STABLE])
        else:
            yield from self._files.read(split, columns)


def stable_point(path: str, *, timestamps: bool) -> int | None:
    """Before which instant everything is in the files that are there now; None: nobody says.

    Before, not after the files are listed: what comes between the two is not counted.
    """
    folder = path.rpartition("/")[0] if is_file(path) else folder_of(path)
    system, inside = file_system(f"{folder.rstrip('/')}/{ANSWERS}")
    try:
        with system.open_input_stream(inside) as file:
            record = unseal(file.read())
        frontier, theirs = record["frontier"], record["timestamps"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as problem:
        raise InputError(
            "ANSWERS_DAMAGED",
            f'"{inside}" cannot be read, which tells how far the answers beside it are complete',
            detail=str(problem),
            hint="Put it back from a copy; or take it away: then nothing is final before the stream ends.",
        ) from problem
    said = isinstance(frontier, int) and theirs == timestamps and frontier > BEGINNING
    return min(frontier, INFINITY) if said else None
