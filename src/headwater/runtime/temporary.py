"""Folders that do not outlive the process, whatever still writes into them when they are removed."""

from __future__ import annotations

import atexit
import shutil
import tempfile

_made: set[str] = set()


def make_folder(prefix: str = "headwater-") -> str:
    """A new folder; ``remove_folder`` it, or it goes when the process ends."""
    path = tempfile.mkdtemp(prefix=prefix)
    _made.add(path)
    return path


def remove_folder(path: str) -> None:
    """Now, and once more at the end: a Spark task that was told to stop may still bring it back."""
    shutil.rmtree(path, ignore_errors=True)


@atexit.register
def remove_all() -> None:
    for path in _made:
        shutil.rmtree(path, ignore_errors=True)
