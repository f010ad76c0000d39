"""What is made in portions, put aside for whoever takes it at once: rows that look alike there are put together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headwater.kernels.cover import cover_intervals
from headwater.kernels.sort import sort_by_key_time
from headwater.model.delta import Delta
from headwater.model.schema import Schema

_LOOSE = 1 << 19
"""So many rows at least are put together at once."""
_SELDOM = 4
"""Where it has brought nothing it is tried again when there are so many times the rows."""


class Pile:
    """Rows that are made in a tick. Portions of them come down to what ``together`` makes of all; None: they stay rows."""

    def __init__(self, schema: Schema, together: Callable[[Delta], Delta] | None) -> None:
        self._schema, self._together = schema, together
        self._parts: list[Delta] = []
        self._loose = 0
        """Rows of portions that came since rows were put together."""
        self._due = 0
        self._small = False

    def add_portion(self, delta: Delta) -> None:
        """One of many, perhaps."""
        if len(delta):
            self._parts.append(delta)
        self._loose += len(delta)
        if self._together is not None and self._loose >= max(_LOOSE, self._due, 1):
            self._put_together(self._together)

    def _put_together(self, together: Callable[[Delta], Delta]) -> None:
        rows = Delta.concat(self._schema, self._parts)
        self._parts = [together(rows)]
        left = len(self._parts[0])
        self._due = left if 2 * left < len(rows) else _SELDOM * left
        self._loose, self._small = 0, True

    def whole(self) -> Delta:
        if self._small and self._loose and self._together is not None:
            self._put_together(self._together)
        return Delta.concat(self._schema, self._parts)

    def with_rest(self, rest: Delta) -> Delta:
        """With the last portion, which mostly is the only one: then it stays as it is."""
        if not self._parts:
            return rest.consolidate() if (rest.weight < 0).any() else rest
        self.add_portion(rest)
        return self.whole()

    @property
    def shrinks(self) -> bool:
        return self._together is not None

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self._parts)


def covered(delta: Delta) -> Delta:
    """For whoever asks only whether a row is there, of rows that are never taken away: each once, as long as it is."""
    key = delta.key()
    row, start, end = cover_intervals(*sort_by_key_time(*key, delta.start), delta.start, delta.end)
    rows = delta.take(row)
    return Delta(delta.schema, rows.columns, start, end, np.ones(len(row), np.int64))
