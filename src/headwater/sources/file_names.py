"""Files by their names as users and Spark write them: plain paths, globs, and the addresses of other file systems."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from headwater.errors import InputError

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
_GLOB = re.compile(r"[*?\[{]")


class FoundFile(NamedTuple):
    """A file that is there."""

    path: str
    length: int
    modified: int
    """Microseconds since the epoch."""


def is_address(path: str) -> bool:
    """Does it name its file system (``s3://…``), so that a base folder says nothing?"""
    return _SCHEME.match(path) is not None


def absolute(path: str, base: Path) -> str:
    """The path as everybody understands it, from whatever folder."""
    if is_address(path) and not path.startswith("file:"):
        return path
    return os.path.normpath(base / local_path(path))


def local_path(path: str) -> str:
    """Without ``file:`` and its slashes. Spark writes such paths as they are, without percent signs."""
    if path.startswith("file:"):
        rest = path.removeprefix("file:")
        return "/" + rest.lstrip("/")
    return path


def file_system(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path, and the path in it."""
    if is_address(path) and not path.startswith("file:"):
        return fs.FileSystem.from_uri(path)
    return fs.LocalFileSystem(), local_path(path)


def open_file(path: str) -> pa.NativeFile:
    """The file for reading at any place; mapped into memory where that is possible."""
    system, inside = file_system(path)
    try:
        if isinstance(system, fs.LocalFileSystem):
            return pa.memory_map(inside) if os.path.getsize(inside) else pa.OSFile(inside)
        return system.open_input_file(inside)
    except OSError as problem:
        reason = problem.strerror or str(problem).partition("\n")[0]
        hint = "A file of a source must stay as it is until all that was read from it has been committed."
        raise InputError("UNREADABLE", f'could not read "{inside}": {reason}', hint=hint) from problem


def read_range(path: str, start: int, length: int) -> pa.Buffer:
    """Some bytes of a file, fewer at its end."""
    with open_file(path) as file:
        file.seek(start)
        return file.read_buffer(max(min(length, file.size() - start), 0))


def has_glob(path: str) -> bool:
    return _GLOB.search(path) is not None


def folder_of(path: str) -> str:
    """The part of a glob that is no pattern; any other path itself."""
    if not has_glob(path):
        return path
    parts = path.split("/")
    plain = next(i for i, part in enumerate(parts) if has_glob(part))
    return "/".join(parts[:plain]) or "/"


def list_files(path: str) -> list[FoundFile]:
    """The files that a path stands for, oldest first: a file, the files of a folder, or what a glob matches.

    Names that begin with a dot or an underscore are no data: they are being written, or are notes of other programs.
    """
    system, inside = file_system(folder_of(path))
    pattern = local_path(path) if isinstance(system, fs.LocalFileSystem) else _inside(path)
    selector = fs.FileSelector(inside, recursive=_depth(pattern) > _depth(inside) + 1, allow_not_found=True)
    root = system.get_file_info(inside)
    infos = [root] if root.type == fs.FileType.File else system.get_file_info(selector)
    prefix = "" if isinstance(system, fs.LocalFileSystem) else path[: path.index("://") + 3]
    found = [
        FoundFile(prefix + i.path, i.size, (i.mtime_ns or 0) // 1000)
        for i in infos
        if i.type == fs.FileType.File and is_data(i.path) and (not has_glob(path) or _matches(i.path, pattern))
    ]
    return sorted(found, key=lambda f: (f.modified, f.path))


def name_matcher(path: str) -> Callable[[str], bool] | None:
    """Which names of its folder a path stands for; None: it goes deeper than one folder."""
    pattern = local_path(path)
    if not has_glob(path):
        return lambda name: True
    if _depth(pattern) > _depth(local_path(folder_of(path))) + 1:
        return None
    wanted = list(_braces(pattern.rsplit("/", 1)[-1]))
    return lambda name: any(fnmatch(name, want) for want in wanted)


def exists(path: str) -> bool:
    """Is there something to read from, now or later?"""
    system, inside = file_system(folder_of(path))
    return system.get_file_info(inside).type != fs.FileType.NotFound


def is_file(path: str) -> bool:
    system, inside = file_system(folder_of(path))
    return not has_glob(path) and system.get_file_info(inside).type == fs.FileType.File


def is_data(path: str) -> bool:
    return not path.rpartition("/")[2].startswith((".", "_"))


def _matches(path: str, pattern: str) -> bool:
    """A star stays within one folder."""
    parts, wanted = path.strip("/").split("/"), pattern.strip("/").split("/")
    if len(parts) != len(wanted):
        return False
    return all(any(fnmatch(p, w) for w in _braces(want)) for p, want in zip(parts, wanted, strict=True))


def _braces(pattern: str) -> Iterator[str]:
    """``{a,b}`` is a or b."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if found is None:
        yield pattern
        return
    for choice in found[1].split(","):
        yield from _braces(pattern[: found.start()] + choice + pattern[found.end() :])


def _inside(path: str) -> str:
    return unquote(path[path.index("://") + 3 :])


def _depth(path: str) -> int:
    return len(path.strip("/").split("/"))
