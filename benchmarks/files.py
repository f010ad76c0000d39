"""`headwater bench files`: a folder with ever more files: what one more costs, and an idle look."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.table import Table

from headwater.model.schema import Schema
from headwater.sources.csv_files import CsvFormat
from headwater.sources.files import FileSource
from headwater.state.store import FileStore

SIZES = (1_000, 10_000, 100_000)
_PAST = 10
"""Seconds before now at which all files were made: their folder has settled."""


def measure(folder: Path, files: int) -> tuple[float, ...]:
    """Milliseconds to find so many empty files, an idle look, and one more file; bytes of the offset."""
    place = folder / "in"
    place.mkdir()
    for i in range(files):
        (place / f"{i}.csv").touch()
    _age(place)
    source = FileSource(str(place), Schema.of(x="BIGINT"), CsvFormat())
    source.remember_in(FileStore(folder / "segments"))
    first, offset = _timed(lambda: source.poll(None, files).offset)
    idle, _ = _timed(lambda: [source.poll(offset, files) for _ in range(100)])
    (place / "one more.csv").write_text("x\n1\n")
    source.look_again()
    more, polled = _timed(lambda: source.poll(offset, files))
    assert [Path(split["path"]).name for split in polled.splits] == ["one more.csv"]
    return first, idle / 100, more, len(json.dumps(polled.offset))


def _age(place: Path) -> None:
    then = time.time() - _PAST
    os.utime(place, (then, then))


def _timed(what: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = what()
    return (time.perf_counter() - began) * 1e3, found


def run(sizes: tuple[int, ...] = SIZES) -> Table:
    table = Table(title="a folder of files, in milliseconds")
    for name in ("files", "all of them", "an idle look", "one more file", "bytes of the offset"):
        table.add_column(name, justify="right")
    for files in sizes:
        with tempfile.TemporaryDirectory() as folder:
            first, idle, more, size = measure(Path(folder), files)
        table.add_row(f"{files:,}", f"{first:,.0f}", f"{idle:.3f}", f"{more:.1f}", f"{size:,.0f}")
    return table
