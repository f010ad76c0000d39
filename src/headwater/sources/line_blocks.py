"""Text files in blocks of whole lines, and cut by bytes: a part has the lines that begin in it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.sources.base import Split
from headwater.sources.file_formats import WHOLE_BYTES
from headwater.sources.file_names import file_system, open_file, read_range
from headwater.sources.text_lines import count_lines

BLOCK_BYTES = 8 << 20
_STEP = 1 << 16
_SAMPLE = 1 << 18
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class DamagedFileError(Exception):
    """What is compressed cannot be unpacked, from some place on."""


class Block(NamedTuple):
    """Whole lines of a file."""

    start: int
    """The place of the first byte in the file; in compressed ones, among what it unpacks to."""
    text: pa.Buffer


def compression(path: str) -> str | None:
    return next((name for ending, name in _COMPRESSED.items() if path.endswith(ending)), None)


def cut_lines(split: Split, rows: int, row_bytes: float) -> list[Split]:
    """Parts of about so many rows. Compressed files stay whole."""
    start, end = split.get("start", 0), split.get("end", split["length"])
    if compression(split["path"]):
        return [{**split, "rows": int(split["length"] * 4 / row_bytes)}]
    size = max(int(rows * row_bytes), _STEP)
    if end - start <= min(size * 1.25, max(WHOLE_BYTES, size)):
        size = max(end - start, 1)
    cuts = [*range(start, end, size), end] if end > start else [start, end]
    return [{**split, "start": a, "end": b, "rows": int((b - a) / row_bytes)} for a, b in pairwise(cuts)]


def sampled_row_bytes(path: str, header: bool) -> float | None:
    """The mean length of the first lines."""
    sample = read_range(path, 0, _SAMPLE)
    lines = count_lines(sample) - header
    if lines < 1:
        return None
    return sample.size / lines / (4 if compression(path) else 1)


def read_blocks(split: Split, *, whole: bool = False) -> Iterator[Block]:
    """The lines of a split, block after block; ``whole``: as one."""
    path = split["path"]
    if compression(path):
        yield from _unpacked(path, whole)
        return
    with open_file(path) as file:
        size = file.size()
        end = min(split.get("end", size), size)
        start = _line_start(file, split.get("start", 0), size)
        while start < end:
            stop = end if whole else min(start + BLOCK_BYTES, end)
            stop = _line_start(file, stop, size)
            file.seek(start)
            yield Block(start, file.read_buffer(stop - start))
            start = stop


def first_line(path: str) -> pa.Buffer:
    """With its newline, if it has one."""
    if compression(path):
        block = next(_unpacked(path, whole=False), Block(0, pa.py_buffer(b"")))
        data = np.frombuffer(block.text, np.uint8)
        newline = np.flatnonzero(data == 10)[:1]
        return block.text.slice(0, int(newline[0]) + 1 if len(newline) else len(data))
    with open_file(path) as file:
        stop = _line_start(file, 1, file.size())
        file.seek(0)
        return file.read_buffer(stop)


def lines_before(path: str, place: int) -> int:
    """How many lines end before a place of the file."""
    if compression(path):
        blocks = (b for b in _unpacked(path, whole=False) if b.start < place)
        return sum(bytes(b.text.slice(0, min(b.text.size, place - b.start))).count(b"\n") for b in blocks)
    found = 0
    with open_file(path) as file:
        while file.tell() < place:
            data = np.frombuffer(file.read_buffer(min(BLOCK_BYTES, place - file.tell())), np.uint8)
            found += int(np.count_nonzero(data == 10))
    return found


def _line_start(file: pa.NativeFile, place: int, size: int) -> int:
    """Where the first line begins that does not begin before the place; the size if there is none."""
    if place <= 0:
        return 0
    at = min(place - 1, size)
    while at < size:
        file.seek(at)
        data = np.frombuffer(file.read_buffer(min(_STEP, size - at)), np.uint8)
        newlines = np.flatnonzero(data == 10)
        if len(newlines):
            return at + int(newlines[0]) + 1
        at += len(data)
    return size


def _unpacked(path: str, whole: bool) -> Iterator[Block]:
    system, inside = file_system(path)
    start, rest = 0, b""
    with system.open_input_stream(inside, compression=compression(path)) as stream:
        while chunk := _read_on(stream, None if whole else BLOCK_BYTES):
            text = rest + chunk
            cut = text.rfind(b"\n") + 1
            if cut and not whole:
                yield Block(start, pa.py_buffer(text[:cut]))
                start, rest = start + cut, text[cut:]
            else:
                rest = text
    if rest:
        yield Block(start, pa.py_buffer(rest))


def _read_on(stream: pa.NativeFile, size: int | None) -> bytes:
    try:
        return stream.read(size)
    except OSError as problem:
        reason = str(problem).partition("\n")[0]
        raise DamagedFileError(f"the file is damaged, or not compressed as its name says: {reason}") from None
