"""Endpoints that know their row: where rows begin and where they end, those that wait, and those shown before their time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity, is_recoverable
from headwater.state.buckets import ExpiryBuckets
from headwater.state.columns import Columns, concat, concat_column, rows_of, take
from headwater.state.manifest import State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_NONE = np.empty(0, np.uint64)


def identity_columns(name: str, identity: Identity, *, wide: bool) -> Columns:
    """An identity as it is kept: ``<name>low``, and ``<name>high`` if it is a wide one (also where there are no rows)."""
    return {f"{name}low": identity.low} | ({f"{name}high": identity.high} if wide else {})


def identity_of(rows: Columns, name: str = "") -> Identity:
    """The opposite of ``identity_columns``."""
    return Identity(rows[f"{name}low"], rows.get(f"{name}high", _NONE))  # type: ignore[arg-type]


class RowEndpoints(NamedTuple):
    """Starts and ends of rows: ``time``, ``weight``, the identities of partition (``low``) and row (``row.low``).

    Only starts carry the row itself, as ``column.i``: whoever meets an end that matters has met the row before.
    """

    starts: Columns
    ends: Columns

    @classmethod
    def of(cls, delta: Delta, partition: Sequence[str], bounds: Sequence[tuple[int, int]]) -> list[RowEndpoints]:
        """Those in [low, high), for each of the bounds; what ends at INFINITY has no end."""
        narrow = is_recoverable(delta.schema.select(partition).types), is_recoverable(delta.schema.types)
        ids = identity_columns("", delta.key(partition), wide=not narrow[0])
        ids |= identity_columns("row.", delta.key(), wide=not narrow[1])
        payload: Columns = {f"column.{i}": column for i, column in enumerate(delta.columns)}
        found = []
        for low, high in bounds:
            begins = np.flatnonzero((delta.start >= low) & (delta.start < high))
            stops = np.flatnonzero((delta.end >= low) & (delta.end < high))
            starts = take(ids | payload, begins) | {"time": delta.start[begins], "weight": delta.weight[begins]}
            ends = take(ids, stops) | {"time": delta.end[stops], "weight": -delta.weight[stops]}
            found.append(cls(starts, ends))
        return found

    @classmethod
    def concat(cls, parts: Sequence[RowEndpoints]) -> RowEndpoints:
        return cls(concat([p.starts for p in parts]), concat([p.ends for p in parts]))

    @property
    def size(self) -> int:
        return rows_of(self.starts) + rows_of(self.ends)

    def filter(self, choose: Callable[[Columns], BoolArray]) -> RowEndpoints:
        """Those that the function chooses, of the starts and of the ends."""
        return RowEndpoints(*(take(part, np.flatnonzero(choose(part))) for part in self))

    def column(self, name: str) -> np.ndarray:
        """A column that both have, first of the starts, then of the ends."""
        column = concat_column([self.starts[name], self.ends[name]])
        assert isinstance(column, np.ndarray)
        return column.astype(np.int64, copy=False) if name == "weight" else column

    def identity(self, name: str = "") -> Identity:
        both = {n: self.column(n) for n in (f"{name}low", f"{name}high") if n in self.starts}
        return identity_of(both, name)

    def partitions(self) -> tuple[Identity, Int64Array, Int64Array]:
        """The partitions (sorted, distinct), the order by (partition, time), and where in it each partition begins."""
        key = self.identity()
        order, groups = sort_by_key_time(*key, self.column("time"))
        return key.take(order[groups[:-1]]), order, groups


class PendingEndpoints(State):
    """Endpoints that wait for their instant."""

    layouts = ("_parts",)

    def __init__(self, store: Store) -> None:
        self._parts = tuple(TimeRuns(store, constants=("weight",)) for _ in range(2))

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self._parts)

    def append(self, endpoints: RowEndpoints) -> None:
        for part, columns in zip(self._parts, endpoints, strict=True):
            part.append(columns)

    def between(self, low: int, high: int, none: RowEndpoints) -> RowEndpoints:
        """Those in [low, high); ``none``: how it looks when there are none."""
        found = (part.between(low, high) for part in self._parts)
        return RowEndpoints(*(concat(f) if f else n for f, n in zip(found, none, strict=True)))

    def parts_between(self, low: int, high: int) -> list[list[Columns]]:
        """Those in [low, high) as they are kept: beginnings, and ends."""
        return [part.between(low, high) for part in self._parts]

    def advance(self, frontier: int, none: RowEndpoints) -> RowEndpoints:
        """Take out those before the frontier."""
        found = (part.advance(frontier) for part in self._parts)
        return RowEndpoints(*(concat(f) if f else n for f, n in zip(found, none, strict=True)))


class RecentEndpoints(State):
    """Endpoints that were shown and are not final, found by partition."""

    layouts = ("_parts",)

    def __init__(self, store: Store) -> None:
        self._parts = tuple(ExpiryBuckets(store, constants=("weight",)) for _ in range(2))

    def append(self, endpoints: RowEndpoints) -> None:
        for part, columns in zip(self._parts, endpoints, strict=True):
            rest = {n: c for n, c in columns.items() if n not in ("low", "high")}
            part.append(identity_of(columns), columns["time"], rest)  # type: ignore[arg-type]

    def probe(self, partition: Identity, since: int, none: RowEndpoints) -> RowEndpoints:
        """Those of the partitions that are not before ``since``."""
        found = []
        for part, nothing in zip(self._parts, none, strict=True):
            which, columns = part.probe(partition)
            if columns:
                columns |= identity_columns("", partition.take(which), wide="high" in nothing)
                rows = np.flatnonzero(columns["time"] >= since)
                found.append(take({n: columns[n] for n in nothing}, rows))
            else:
                found.append(nothing)
        return RowEndpoints(*found)

    def expire(self, frontier: int) -> None:
        for part in self._parts:
            part.expire(frontier)
