"""How far the files of a folder have been read, as a few JSON values.

Files come in the order of their modification times. One that turns up later with an older time (copied with its time kept,
or from a machine with another clock) is still found if it is at most ``max_age`` older than the newest one read: for that
long the names of files are remembered, as hashes. With a checkpoint these are segments of its own, so that a tick writes
down only the files that it has read.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.model.time import BEGINNING, INFINITY
from headwater.sources.file_names import FoundFile
from headwater.state.runs import TimeRuns
from headwater.state.store import FileStore, MemoryStore, Store

HOUR = 3_600_000_000


class FilePosition:
    """What has been read: whole files, and perhaps part of one more."""

    def __init__(self, max_age: int, offset: Any = None, store: Store | None = None) -> None:
        self._max_age = max_age
        self._runs = TimeRuns(store or MemoryStore())
        """Modification time and hash of the files read that are not older than ``max_age``."""
        self._read: list[tuple[int, int]] = []
        """The same, of files that are not in the runs yet."""
        self.newest, self.open, self.at = 0, None, 0
        """The newest modification time of a file read, in microseconds; the file read in part, and where its rest begins."""
        if offset is not None:
            self.newest, self.open, self.at = offset["newest"], offset.get("open"), offset.get("at", 0)
            self._restore(offset["seen"])
        self._known = {name for part in self._runs.between(BEGINNING, INFINITY) for name in part["low"].tolist()}

    def _restore(self, seen: Any) -> None:
        if "segments" in seen:
            self._runs.from_manifest(seen)
        else:
            times, names = (np.frombuffer(b64decode(seen[what]), np.int64) for what in ("times", "names"))
            self._runs.append({"time": times, "low": names})

    def to_offset(self) -> dict[str, Any]:
        kept = [entry for entry in self._read if entry[0] >= self._runs.frontier]
        if kept:
            times, names = np.array(kept, np.int64).T
            self._runs.append({"time": times, "low": names})
        self._known.difference_update(name for time, name in self._read if time < self._runs.frontier)
        self._read = []
        rest = {} if self.open is None else {"open": self.open, "at": self.at}
        return {"newest": self.newest, "seen": self._seen(), **rest}

    def _seen(self) -> dict[str, Any]:
        if isinstance(self._runs.store, FileStore):
            return self._runs.to_manifest()
        parts = self._runs.between(BEGINNING, INFINITY)
        columns = (np.concatenate([np.empty(0, np.int64), *(p[name] for p in parts)]) for name in ("time", "low"))
        return {name: b64encode(c.tobytes()).decode() for name, c in zip(("times", "names"), columns, strict=True)}

    def unread(self, files: list[FoundFile]) -> list[FoundFile]:
        """Those of the files that are still to be read: the one that is open, then oldest first."""
        least = self.newest - self._max_age
        new = [f for f in files if f.modified >= least and _hash(f.path) not in self._known]
        return sorted(new, key=lambda f: (f.path != self.open, f.modified, f.path))

    def read_of(self, paths: Sequence[str]) -> int:
        """Of files in the order in which they are read: how many have been, up to the last that is remembered."""
        return max((number for number, path in enumerate(paths, 1) if _hash(path) in self._known), default=0)

    def too_old(self, files: list[FoundFile]) -> list[FoundFile]:
        """Those that are further behind the newest file than names are remembered."""
        return [f for f in files if f.modified < self.newest - self._max_age]

    def read_part(self, path: str, at: int) -> None:
        """The file has been read up to there."""
        self.open, self.at = path, at

    def read_file(self, file: FoundFile) -> None:
        """All of it has been read."""
        self.open, self.at, name = None, 0, _hash(file.path)
        self._known.add(name)
        self._read.append((file.modified, name))
        if file.modified > self.newest:
            self.newest = file.modified
            for part in self._runs.advance(self.newest - self._max_age):
                self._known.difference_update(part["low"].tolist())


def _hash(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little", signed=True)
