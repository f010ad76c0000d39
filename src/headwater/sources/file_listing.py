"""What has come into a folder since it was looked at last, at a cost that hardly grows with what is in it.

Only names that were not there before are asked for their size and time. A folder of this machine tells by its own time
whether anything has come at all. Where listing takes long, as in an object store, it is done the less often.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from pyarrow import fs

from headwater.sources.file_names import FoundFile, file_system, folder_of, is_data, list_files, name_matcher

_SETTLED = 2_000_000_000
"""Nanoseconds after which a folder that changes again has another time: file systems count in steps of up to so many."""
_TRUSTED = 10.0
"""Seconds for which the time of a folder is believed: that of a network's may lag behind."""
_REST = 10
"""After it was listed, it rests for so many times as long as that took,"""
_QUICK = 0.02
"""unless that took no longer than this."""
_HERE = 0.3
"""A folder of this machine rests so much less: only if something has changed is it listed again at all."""


class Listing:
    """The files of a path, looked at again and again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: dict[str, FoundFile] = {}
        """By name in a folder of this machine, else by path: all that were there when last looked at."""
        self._changed = self._listed = 0
        self._ended = self._took = 0.0
        self._urgent = True

    def look_again(self) -> None:
        """The next look is not to be put off."""
        self._urgent = True

    @property
    def files(self) -> list[FoundFile]:
        """All that were there when last looked at."""
        return list(self._found.values())

    def has(self, file: FoundFile) -> bool:
        """Was it still there?"""
        return file.path in self._found or self._found.get(os.path.basename(file.path)) is not None

    @property
    def rest(self) -> float:
        """Seconds for which it is not listed again, if somebody must list all of it."""
        return self._took * _REST if self._took > _QUICK else 0.0

    def look(self) -> list[FoundFile] | None:
        """Those that have come since; None: it was too early to look."""
        now, folder = time.monotonic(), self._folder()
        rest = self.rest if folder is None else self.rest * _HERE
        if not self._urgent and now < self._ended + rest:
            return None
        if folder is not None and not self._urgent and self._is_unchanged(folder, now):
            return []
        self._urgent = False
        new = self._names(folder) if folder is not None else self._paths()
        self._ended = time.monotonic()
        return new

    def _folder(self) -> str | None:
        """The one folder of this machine whose names matter, if it is one."""
        system, inside = file_system(folder_of(self._path))
        if isinstance(system, fs.LocalFileSystem) and name_matcher(self._path) is not None and os.path.isdir(inside):
            return inside
        return None

    def _is_unchanged(self, folder: str, now: float) -> bool:
        settled = self._listed - self._changed > _SETTLED and now < self._ended + _TRUSTED
        return settled and os.stat(folder).st_mtime_ns == self._changed

    def _names(self, folder: str) -> list[FoundFile]:
        matches = name_matcher(self._path)
        assert matches is not None
        self._listed, self._changed = time.time_ns(), os.stat(folder).st_mtime_ns
        began = time.monotonic()
        with os.scandir(folder) as entries:
            there = {e.name: e for e in entries if is_data(e.name) and matches(e.name)}
        self._took = time.monotonic() - began  # what is new is asked about only once
        new: list[FoundFile] = []
        for name in there.keys() - self._found.keys():
            with suppress(FileNotFoundError):  # gone again
                if there[name].is_file():
                    about = there[name].stat()
                    new.append(FoundFile(os.path.join(folder, name), about.st_size, about.st_mtime_ns // 1000))
        for name in self._found.keys() - there.keys():
            del self._found[name]
        self._found |= {os.path.basename(file.path): file for file in new}
        return new

    def _paths(self) -> list[FoundFile]:
        began = time.monotonic()
        there = {file.path: file for file in list_files(self._path)}
        self._took = time.monotonic() - began
        new = [file for path, file in there.items() if path not in self._found]
        self._found = there
        return new
