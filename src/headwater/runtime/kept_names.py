"""The names of files in a manifest: whoever could write one must not make the engine read or delete files elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import normpath

from headwater.errors import StateError
from headwater.sinks.base import Staged

_SEGMENT = re.compile(r"[0-9a-f]{32}")
_OF_A_SINK = re.compile(r".*/_staged/tick-[0-9A-Za-z.-]+")
"""Of an answer that a sink has staged in its own folder: the sink looks for the last part of it in that folder alone."""


def check_segments(names: Iterable[str], manifest: str) -> None:
    """Segments lie in the checkpoint's folder of segments, under the names that the store gave them."""
    for name in names:
        if not isinstance(name, str) or not _SEGMENT.fullmatch(name):
            raise _strange(name, manifest)


def check_staged(parts: Iterable[Staged], staging: str, manifest: str) -> None:
    """Parts of answers lie in the checkpoint's folder for them, or where their sink has put them."""
    for part in parts:
        path = part.path
        if path is None:
            continue
        inside = isinstance(path, str) and path.startswith(f"{staging}/") and ".." not in path.split("/")
        if not inside and not (isinstance(path, str) and _OF_A_SINK.fullmatch(path) and _is_plain(path)):
            raise _strange(path, manifest)


def _is_plain(path: str) -> bool:
    """Does it lead nowhere but where it says?"""
    return normpath(path.partition("://")[2] or path) == (path.partition("://")[2] or path)


def _strange(name: object, manifest: str) -> StateError:
    return StateError(
        "STATE_DAMAGED",
        f'manifest "{manifest}" cannot be read',
        detail=f"It names a file that no tick of this checkpoint has written: {str(name)[:200]!r}.",
        hint="Bring the checkpoint back as it was, or begin with an empty folder.",
    )
