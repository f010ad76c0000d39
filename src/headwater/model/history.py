"""The canonical history of a stream: what was valid when, whatever elements said so (CEDR 2.1, Krämer 12.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import StreamError
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.element import Row
from headwater.model.identity import Identity
from headwater.model.python_values import python_values
from headwater.model.schema import Schema
from headwater.model.time import INFINITY, render

_NAN = float("nan")  # one object, so that rows with NaN are equal as keys of a dict


class History:
    """Per row, the maximal intervals in which its multiplicity is constant and positive.

    Two streams mean the same exactly when their histories are equal: neither arrival order nor the way in which
    intervals are cut matters. Kept in the order of (identity of the row, start).
    """

    __slots__ = ("_identity", "columns", "count", "end", "schema", "start")

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[pa.Array],
        start: Int64Array,
        end: Int64Array,
        count: Int64Array,
        identity: Identity,
    ) -> None:
        self.schema, self.columns = schema, tuple(columns)
        self.start, self.end, self.count = start, end, count
        self._identity = identity

    @classmethod
    def of(cls, schema: Schema, deltas: Iterable[Delta]) -> History:
        """The history that the deltas add up to; a multiplicity below zero at any instant is an error."""
        history = _sweep(Delta.concat(schema, list(deltas)))
        if (history.count < 0).any():
            raise _negative(history)
        return history

    # -- looking -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.start)

    def rows(self) -> list[tuple[Row, int, int, int]]:
        """(row, start, end, count), sorted by (start, end, row)."""
        times = (self.start.tolist(), self.end.tolist(), self.count.tolist())
        listed = zip(_tuples(self.columns, len(self)), *times, strict=True)
        return sorted(listed, key=lambda r: (r[1], r[2], canonical_order(r[0])))

    def snapshot(self, instant: int) -> Counter[Row]:
        """The multiset of rows valid at the instant (Krämer 10.1); rows are frozen, see ``freeze``."""
        valid = np.flatnonzero((self.start <= instant) & (instant < self.end))
        where = pa.array(valid)
        rows = _tuples([c.take(where) for c in self.columns], len(valid))
        return Counter(dict(zip(map(freeze, rows), self.count[valid].tolist(), strict=True)))

    def logical(self, horizon: int) -> dict[tuple[Row, int], int]:
        """The logical stream {(row, t): n} at the instants before the horizon (Krämer 6.2)."""
        table: dict[tuple[Row, int], int] = {}
        for row, start, end, count in self.until(horizon).rows():
            frozen = freeze(row)
            table.update(((frozen, t), count) for t in range(start, end))
        return table

    def __repr__(self) -> str:
        return "\n".join(["History:", *(f"  {show(*r)}" for r in self.rows())])

    # -- comparing ---------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        if self.schema.types != other.schema.types or len(self) != len(other):
            return False
        ours, theirs = self._arrays(), other._arrays()
        return all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _arrays(self) -> tuple[np.ndarray, ...]:
        return (*self._identity, self.start, self.end, self.count)

    def difference(self, other: History) -> list[tuple[Row, int, int, int]]:
        """Where the histories differ: (row, start, end, n) with n copies too many here (n > 0) or there (n < 0)."""
        both = [self.delta(), other.delta().negate()]
        return _sweep(Delta.concat(self.schema, both)).rows()

    # -- changing ----------------------------------------------------------------------------------------------------

    def delta(self) -> Delta:
        """One delta that makes this history."""
        return Delta(self.schema, self.columns, self.start, self.end, self.count)

    def until(self, instant: int) -> History:
        """The history before the instant: what a frontier there says is final."""
        return _sweep(self.delta().with_times(self.start, np.minimum(self.end, instant)))

    def shift(self, amount: int) -> History:
        """Everything so many instants later (or earlier)."""
        end = np.where(self.end == INFINITY, INFINITY, self.end + amount)
        return _sweep(self.delta().with_times(self.start + amount, end))


# -- values ---------------------------------------------------------------------------------------------------------


def freeze(value: Any) -> Any:
    """The value as a dict key: NaN equals NaN, lists and structs become tuples."""
    if isinstance(value, float):
        return _NAN if value != value else value  # noqa: PLR0124
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    if isinstance(value, dict):
        return tuple((name, freeze(item)) for name, item in value.items())
    return value


def canonical_order(value: Any) -> Any:
    """A sort key for values of one type: NULL first, NaN last, lists and structs item by item."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if value != value else (1, value)  # noqa: PLR0124
    if isinstance(value, dict):
        return (1, tuple(map(canonical_order, value.values())))
    if isinstance(value, (list, tuple)):
        return (1, tuple(map(canonical_order, value)))
    return (1, value)


def show(row: Row, start: int, end: int, count: int) -> str:
    """``(1, 'a') [3, 8) x2``"""
    many = "" if count == 1 else f" x{count}"
    return f"{row} [{render(start)}, {render(end)}){many}"


# -- the sweep ------------------------------------------------------------------------------------------------------


def _sweep(delta: Delta) -> History:
    """Segments of constant non-zero (also negative) multiplicity, by a running sum over the endpoints of each row."""
    n = len(delta)
    low, high = delta.key()
    wide = len(high) > 0
    row = np.concatenate([np.arange(n), np.arange(n)])
    time = np.concatenate([delta.start, delta.end])
    change = np.concatenate([delta.weight, -delta.weight])
    order = np.lexsort((time, high[row], low[row]) if wide else (time, low[row]))
    row, time, change = row[order], time[order], change[order]
    # One event a (row, instant); events that change nothing go, so that what is left over bounds maximal segments.
    first = np.ones(2 * n, np.bool_)
    first[1:] = (time[1:] != time[:-1]) | (low[row[1:]] != low[row[:-1]])
    if wide:
        first[1:] |= high[row[1:]] != high[row[:-1]]
    places = np.flatnonzero(first)
    total = np.add.reduceat(change, places) if n else change
    kept = places[total != 0]
    row, time = row[kept], time[kept]
    level = np.cumsum(total[total != 0])  # the changes of one row sum to 0, so the next row begins at 0 again
    opened = np.flatnonzero(level != 0)
    where = row[opened]
    columns = [c.take(pa.array(where)) for c in delta.columns]
    identity = Identity(low[where], high[where] if wide else high)
    return History(delta.schema, columns, time[opened], time[opened + 1], level[opened], identity)


def _tuples(columns: Sequence[pa.Array], rows: int) -> list[Row]:
    return list(zip(*map(python_values, columns), strict=True)) if columns else [()] * rows


def _negative(history: History) -> StreamError:
    row, start, end, count = next(r for r in history.rows() if r[3] < 0)
    return StreamError(
        "NEGATIVE_MULTIPLICITY",
        f"the row {row} is valid {count} times from {render(start)} to {render(end)}",
        hint="More copies were taken away than had been added.",
    )
