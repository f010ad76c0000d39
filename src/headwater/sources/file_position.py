"""How far the files of a folder have been read, as a few JSON values.

Files come in the order of their modification times. One that turns up later with an older time (copied with its time kept,
or from a machine with another clock) is still found if it is at most ``max_age`` older than the newest one read: for that
long the names of files are remembered, as hashes of 11 characters.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from typing import Any

from attrs import evolve, frozen

from headwater.sources.file_system import FoundFile

HOUR = 3_600_000_000


@frozen
class FilePosition:
    """What has been read: whole files, and perhaps part of one more."""

    newest: int = 0
    """The newest modification time of a file read, in microseconds."""
    seen: tuple[tuple[int, str], ...] = ()
    """Modification time and hash of the files read that are not older than ``max_age``."""
    open: str | None = None
    """The file that is read in part,"""
    at: int = 0
    """and where its rest begins."""

    @classmethod
    def from_offset(cls, offset: Any) -> FilePosition:
        if offset is None:
            return cls()
        return cls(offset["newest"], tuple((t, h) for t, h in offset["seen"]), offset.get("open"), offset.get("at", 0))

    def to_offset(self) -> dict[str, Any]:
        rest = {} if self.open is None else {"open": self.open, "at": self.at}
        return {"newest": self.newest, "seen": [list(entry) for entry in self.seen], **rest}

    def unread(self, files: list[FoundFile], max_age: int) -> list[FoundFile]:
        """The files that are still to be read: the one that is open, then oldest first."""
        known = {name for _, name in self.seen}
        new = [f for f in files if f.modified >= self.newest - max_age and _hash(f.path) not in known]
        return sorted(new, key=lambda f: (f.path != self.open, f.modified, f.path))

    def after_part(self, path: str, at: int) -> FilePosition:
        return evolve(self, open=path, at=at)

    def after_file(self, file: FoundFile, max_age: int) -> FilePosition:
        newest = max(self.newest, file.modified)
        kept = [entry for entry in self.seen if entry[0] >= newest - max_age]
        return FilePosition(newest, (*kept, (file.modified, _hash(file.path))))


def _hash(path: str) -> str:
    return urlsafe_b64encode(hashlib.blake2b(path.encode(), digest_size=8).digest()).decode().rstrip("=")
