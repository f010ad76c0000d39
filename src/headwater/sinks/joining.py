"""Several small files of answers as one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from headwater.sinks.file_formats import FileFormat
from headwater.sinks.folder import Folder

SMALL = 32 << 20
"""Bytes from which on a file is worth its name: larger ones stay as they are."""


def join_files(folder: Folder, names: Sequence[str], joined: str, format_: FileFormat) -> None:
    """Write their rows, in this order, as a new file in the same folder; they stay."""
    with folder.writing(joined) as stream:
        format_.join([partial(folder.opened, name) for name in names], stream)
