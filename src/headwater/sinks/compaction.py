"""Small files of answers become one: Parquet files in a folder of this machine.

    _staged/compact-….parquet    1  the rows of all of them, in the order in which they came
    _compacting.json             2  what is about to happen
    tick-00000075-0000.parquet   3  the new file takes the place of the last one
    tick-00000012-0000.parquet   4  … and the others are deleted
    _compacting.json             5  it is done

A crash before step 2 leaves garbage; after it, the next engine, or ``headwater compact``, does the rest. Between steps 3 and
4 rows are there twice for whoever lists the folder just then. The name of the last file stays, with its time, so whoever
follows the folder and has read all of them finds nothing new. The new file says which files it is made of (``MADE_OF``), so
an engine that has read only some of them reads only the rest (``sources/files.py``).
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

import pyarrow.parquet as pq

from headwater.errors import InputError, StateError
from headwater.sinks.file_formats import ParquetFormat
from headwater.sinks.folder import Folder
from headwater.sinks.joining import SMALL
from headwater.state.sealed import ANSWERS, MADE_OF, seal, unseal

log = logging.getLogger("headwater")

INTENT, LOCK, STAGED = "_compacting.json", "_compacting.lock", "_staged"
_STAGED = "compact-"
GRACE = 10.0
"""Seconds for which a file stays as it is: whoever has just listed the folder reads it."""
_MOST_FILES = 20_000
"""A file that is made of more stays as it is: their names are in its footer."""


class _Small(NamedTuple):
    """A file that may become part of a larger one."""

    name: str
    size: int
    modified: int
    """Nanoseconds."""


def compact_folder(folder: Folder, *, most: int | None = None, grace: float = 0.0) -> tuple[int, int]:
    """Make one file of the newest small ones, if there are more than so many; how many there were and are.

    ``most`` None: all of them become as few as they can. ``grace``: seconds for which files stay as they came.

    Raises ``InputError`` for a folder that is none of Parquet answers on this machine.
    """
    check_compactable(folder)
    with _locked(folder) as is_mine:
        if not is_mine:
            return 0, 0
        finish(folder)
        small = _small_files(folder, grace)
        groups = _groups(folder, small) if most is None else [_newest(folder, small)] if len(small) > most else []
        joined = [files for files in groups if len(files) > 1]
        for files in joined:
            _compact(folder, files)
        return len(small), len(small) - sum(len(files) - 1 for files in joined)


def repair(folder: Folder) -> None:
    """Do the rest of what a crash has cut off, unless somebody is at it."""
    if folder.is_local and (
        folder.exists(INTENT) or any(name.startswith(_STAGED) for name in (folder / STAGED).names())
    ):
        with _locked(folder) as is_mine:
            if is_mine:
                finish(folder)


def finish(folder: Folder) -> None:
    """Steps 3 to 5 of what was begun, if anything was; what was only staged is garbage."""
    if folder.exists(INTENT):
        try:
            intent = unseal(folder.read(INTENT).to_pybytes())
            staged, into, gone = intent["staged"], intent["into"], intent["gone"]
        except (ValueError, KeyError, TypeError) as problem:
            raise StateError(
                "SINK_DAMAGED",
                f'"{folder}/{INTENT}" cannot be read',
                detail=str(problem),
                hint="Put it back from a copy of the folder.",
            ) from problem
        if any("/" in name for name in (staged, into, *gone)):
            raise StateError("SINK_DAMAGED", f'"{folder}/{INTENT}" names files elsewhere')
        if folder.exists(f"{STAGED}/{staged}"):
            folder.move(f"{STAGED}/{staged}", into)
        for name in gone:
            folder.delete(name)
        folder.delete(INTENT)
    for name in (folder / STAGED).names():
        if name.startswith(_STAGED):
            (folder / STAGED).delete(name)


def _compact(folder: Folder, files: list[_Small]) -> None:
    staged, last = f"{_STAGED}{uuid.uuid4().hex}.parquet", files[-1]
    made_of = [entry for file in files for entry in _made_of(folder, file.name)]
    with folder.opened(last.name) as opened:
        group = pq.ParquetFile(opened).metadata.row_group(0)
    compression = group.column(0).compression.lower().removesuffix("_raw")
    format_ = ParquetFormat({"uncompressed": "none"}.get(compression, compression), {MADE_OF: json.dumps(made_of)})
    (folder / STAGED).make()
    with (folder / STAGED).writing(staged) as stream:
        format_.join([partial(folder.opened, file.name) for file in files], stream)
    os.utime(f"{folder}/{STAGED}/{staged}", ns=(last.modified, last.modified))
    intent = {"staged": staged, "into": last.name, "gone": [file.name for file in files[:-1]]}
    folder.replace(INTENT, seal(intent))
    finish(folder)


def _made_of(folder: Folder, name: str) -> list[tuple[str, int]]:
    """The files that it was made of, with their rows; itself, if it was made of none."""
    with folder.opened(name) as opened:
        metadata = pq.read_metadata(opened)
    told = (metadata.metadata or {}).get(MADE_OF.encode())
    return [(name, metadata.num_rows)] if told is None else [tuple(entry) for entry in json.loads(told)]


def _small_files(folder: Folder, grace: float) -> list[_Small]:
    """As whoever follows the folder reads them: by their times, then by their names."""
    found = []
    newest = time.time_ns() - int(grace * 1e9)
    with os.scandir(str(folder)) as entries:
        for entry in entries:
            if entry.name.startswith("tick-") and entry.name.endswith(".parquet"):
                with suppress(FileNotFoundError):
                    about = entry.stat()
                    found.append(_Small(entry.name, about.st_size, about.st_mtime_ns))
    found = [file for file in found if file.modified <= newest]
    return sorted((file for file in found if file.size < SMALL), key=lambda file: (file.modified // 1000, file.name))


def _newest(folder: Folder, small: list[_Small]) -> list[_Small]:
    """The newest ones, while those before are not much larger than all after them: so a row is written again a few times,
    however many files come."""
    taken: list[_Small] = []
    size = files = 0
    for file in reversed(small):
        size, files = size + file.size, files + _weight(folder, file)
        if (taken and 3 * file.size > 2 * size) or size > SMALL or files > _MOST_FILES:
            break
        taken.append(file)
    return taken[::-1]


def _groups(folder: Folder, small: list[_Small]) -> list[list[_Small]]:
    """All of them, from the oldest on."""
    groups: list[list[_Small]] = []
    size = files = SMALL + _MOST_FILES
    for file in small:
        size, files = size + file.size, files + _weight(folder, file)
        if size > SMALL or files > _MOST_FILES:
            groups.append([])
            size, files = file.size, _weight(folder, file)
        groups[-1].append(file)
    return groups


def _weight(folder: Folder, file: _Small) -> int:
    """Of how many files it is made; more than any may be, if it must stay as it is."""
    return len(_made_of(folder, file.name)) if _is_one_group(folder, file.name) else _MOST_FILES


def _is_one_group(folder: Folder, name: str) -> bool:
    """Somebody may have read some row groups of a file that has several, and counts them."""
    with folder.opened(name) as opened:
        return pq.read_metadata(opened).num_row_groups == 1


def check_compactable(folder: Folder) -> None:
    """Raises ``InputError`` for a folder that is none of Parquet answers on this machine."""
    if not folder.is_local:
        raise InputError(
            "COMPACT_PLACE",
            f'files in "{folder}" cannot become fewer: only a file system of this machine keeps their times',
            hint="Deliver less often (EVERY 1 MINUTE), or write a Delta table.",
        )
    try:
        format_ = unseal(folder.read(ANSWERS).to_pybytes())["format"]
    except (FileNotFoundError, ValueError, KeyError):
        raise InputError(
            "NO_ANSWERS", f'"{folder}" is no folder of answers', hint="Name the folder that a sink writes into."
        ) from None
    if format_ != "parquet":
        raise InputError(
            "COMPACT_FORMAT",
            f'"{folder}" holds {format_} files, which cannot become fewer',
            detail="Whoever follows them could not tell which rows it has read.",
            hint="Deliver less often (EVERY 1 MINUTE), or write parquet.",
        )


@contextmanager
def _locked(folder: Folder) -> Iterator[bool]:
    """One at a time: the engine that writes here, or a command beside it."""
    with open(f"{folder}/{LOCK}", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
