"""The lines of a block of text, as arrays: where they are, which are broken, what is left without some of them."""

from __future__ import annotations

import codecs

import numpy as np
import pyarrow as pa

from headwater.model.arrays import BoolArray, Int64Array

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


class TextLines:
    """Rows of text: each is a line that is not empty or, if quotes may hold newlines, several."""

    def __init__(self, block: pa.Buffer, *, multiline: bool = False) -> None:
        self.data = np.frombuffer(block, np.uint8)
        newlines = np.flatnonzero(self.data == _NEWLINE)
        if multiline:
            ends, lines = self._outside_quotes(newlines)
        else:
            ends, lines = newlines, np.arange(len(newlines) + 1)
        starts = np.concatenate(([0], ends + 1))
        ends = np.concatenate((ends, [len(self.data)]))
        before = self.data[np.maximum(ends - 1, 0)] if len(self.data) else np.zeros(len(ends), np.uint8)
        ends = ends - ((before == _RETURN) & (ends > starts))
        filled = ends > starts
        self.start: Int64Array = starts[filled]
        self.end: Int64Array = ends[filled]
        self.line: Int64Array = lines[filled]
        """Counted from 0."""

    def __len__(self) -> int:
        return len(self.start)

    def _outside_quotes(self, newlines: Int64Array) -> tuple[Int64Array, Int64Array]:
        """A newline after an odd number of quotes is inside of them; a doubled quote changes nothing."""
        inside = np.cumsum(self.data == _QUOTE, dtype=np.int64)[newlines] % 2 == 1
        return newlines[~inside], np.concatenate(([0], np.flatnonzero(~inside) + 1))

    def texts(self, chosen: BoolArray) -> pa.Array:
        """Some rows as they are; what is no UTF-8 is shown as �."""
        start, length = self.start[chosen], (self.end - self.start)[chosen]
        offsets = np.concatenate(([0], np.cumsum(length)))
        places = np.repeat(start - offsets[:-1], length) + np.arange(offsets[-1])
        found = pa.Array.from_buffers(
            pa.large_binary(), len(start), [None, pa.py_buffer(offsets), pa.py_buffer(self.data[places])]
        )
        try:
            return found.cast(pa.large_string()).cast(pa.string())
        except pa.ArrowInvalid:
            return pa.array([value.decode("utf-8", "replace") for value in found.to_pylist()], pa.string())

    def without(self, dropped: BoolArray) -> pa.Buffer:
        """The block without some rows."""
        if not dropped.any():
            return pa.py_buffer(self.data)
        kept = ~dropped
        change = np.zeros(len(self.data) + 3, np.int8)
        # A row goes with the newline after it. Rows do not overlap, so at each place at most one begins and one ends.
        change[self.start[kept]] += 1
        change[self._with_newline(self.end[kept])] -= 1
        chosen = np.cumsum(change[: len(self.data)], dtype=np.int8).astype(np.bool_)
        return pa.py_buffer(self.data[chosen])

    def _with_newline(self, end: Int64Array) -> Int64Array:
        padded = np.concatenate((self.data, [_NEWLINE]))
        after_return = end + (padded[end] == _RETURN)
        return after_return + 1

    def not_utf8(self) -> BoolArray:
        """Rows with bytes that are no UTF-8."""
        broken = np.zeros(len(self), np.bool_)
        places = invalid_utf8(self.data)
        if len(places):
            row = np.searchsorted(self.start, places, side="right") - 1
            inside = (row >= 0) & (places < self.end[row])
            broken[row[inside]] = True
        return broken

    def unclosed_quotes(self, delimiter: str) -> BoolArray:
        """Rows at whose end a quoted value is still open, as CSV has quotes: only at the beginning of a value."""
        at = np.flatnonzero(self.data == _QUOTE)
        row = np.searchsorted(self.start, at, side="right") - 1
        inside = (row >= 0) & (at < self.end[np.maximum(row, 0)]) if len(self) else np.zeros(len(at), np.bool_)
        at, row = at[inside], row[inside]
        counts = np.bincount(row, minlength=len(self))
        odd = np.flatnonzero(counts % 2 == 1)
        first = np.concatenate(([0], np.cumsum(counts)))
        broken = np.zeros(len(self), np.bool_)
        broken[odd] = self._open_at_end(odd, at, first, counts, ord(delimiter))
        return broken

    def _open_at_end(
        self, rows: Int64Array, at: Int64Array, first: Int64Array, counts: Int64Array, delimiter: int
    ) -> BoolArray:
        """Follow the quotes of these rows one after another, all rows at once."""
        opened, skipped = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
        for k in range(int(counts[rows].max()) if len(rows) else 0):
            has = k < counts[rows]
            place = at[np.minimum(first[rows] + k, len(at) - 1)]
            before = self.data[np.maximum(place - 1, 0)]
            begins = (place == self.start[rows]) | (before == delimiter)
            follows = k + 1 < counts[rows]
            doubled = follows & (at[np.minimum(first[rows] + k + 1, len(at) - 1)] == place + 1)
            opens = has & ~skipped & ~opened & begins
            escapes = has & ~skipped & opened & doubled
            closes = has & ~skipped & opened & ~doubled
            opened = (opened | opens) & ~closes
            skipped = escapes
        return opened


def invalid_utf8(data: np.ndarray) -> Int64Array:
    """The places of bytes that are no UTF-8. Python decodes the whole and calls back at each of them."""
    places: list[int] = []

    def note(problem: UnicodeError) -> tuple[str, int]:
        assert isinstance(problem, UnicodeDecodeError)
        places.append(problem.start)
        return "?", problem.end

    codecs.register_error("headwater.note", note)
    codecs.decode(data.tobytes(), "utf-8", "headwater.note")
    return np.array(places, np.int64)


def is_utf8(block: pa.Buffer) -> bool:
    try:
        pa.Array.from_buffers(
            pa.large_binary(), 1, [None, pa.py_buffer(np.array([0, block.size], np.int64)), block]
        ).cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def count_lines(block: pa.Buffer) -> int:
    """Newlines, and a last line without one."""
    data = np.frombuffer(block, np.uint8)
    if len(data) == 0:
        return 0
    return int(np.count_nonzero(data == _NEWLINE)) + (data[-1] != _NEWLINE)
