"""A checkpoint serves one process at a time."""

from __future__ import annotations

import fcntl
import os
import uuid
from typing import IO

from headwater.errors import StateError
from headwater.state.filesystem import Folder

_LOCK = "lock"
_OWNER = "owner"


class Owner:
    """Holds a checkpoint's folder: by a lock where the folder is local, which ends with the process.

    Elsewhere nobody can lock. Whoever comes last writes his name, and one who finds another's name there stops before he
    commits anything: after a restart elsewhere, a process that was thought dead does no harm.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._name = uuid.uuid4().hex.encode()
        self._lock: IO[str] | None = None
        if not folder.is_local:
            folder.replace(_OWNER, self._name)
            return
        self._lock = open(os.path.join(folder.place, _LOCK), "w")  # noqa: SIM115 - held until released
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise self._taken() from None

    def check(self) -> None:
        """Is it still ours?"""
        if self._lock is None and self._folder.read(_OWNER).to_pybytes() != self._name:
            raise self._taken()

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _taken(self) -> StateError:
        return StateError(
            "CHECKPOINT_IN_USE",
            f'the checkpoint "{self._folder}" is used by another process',
            hint="Stop that one first, or choose another folder.",
        )
