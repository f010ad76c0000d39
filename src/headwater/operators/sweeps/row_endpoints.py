"""Endpoints that know their row: where rows begin and where they end, those that wait, and those shown before their time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity, is_recoverable
from headwater.state.buckets import ExpiryBuckets
from headwater.state.columns import Columns, concat_column
from headwater.state.manifest import State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store


def identity_columns(name: str, identity: Identity, *, wide: bool) -> Columns:
    """An identity as it is kept: ``<name>low``, and ``<name>high`` if it is a wide one (also where there are no rows)."""
    return Columns({f"{name}low": identity.low} | ({f"{name}high": identity.high} if wide else {}))


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
        payload = Columns.numbered(delta.columns)
        found = []
        for low, high in bounds:
            begins = np.flatnonzero((delta.start >= low) & (delta.start < high))
            stops = np.flatnonzero((delta.end >= low) & (delta.end < high))
            starts = (ids | payload).take(begins) | {"time": delta.start[begins], "weight": delta.weight[begins]}
            ends = ids.take(stops) | {"time": delta.end[stops], "weight": -delta.weight[stops]}
            found.append(cls(starts, ends))
        return found

    @classmethod
    def concat(cls, parts: Sequence[RowEndpoints]) -> RowEndpoints:
        return cls(Columns.concat([p.starts for p in parts]), Columns.concat([p.ends for p in parts]))

    @classmethod
    def joined(cls, parts: Iterable[Sequence[Columns]], none: RowEndpoints) -> RowEndpoints:
        """Parts of the starts, and parts of the ends; ``none``: how it looks when there are none."""
        return cls(*(Columns.concat(found) if found else no for found, no in zip(parts, none, strict=True)))

    @property
    def size(self) -> int:
        return self.starts.rows + self.ends.rows

    def filter(self, choose: Callable[[Columns], BoolArray]) -> RowEndpoints:
        """Those that the function chooses, of the starts and of the ends."""
        return RowEndpoints(*(part.where(choose(part)) for part in self))

    def column(self, name: str) -> np.ndarray:
        """A column that both have, first of the starts, then of the ends."""
        column = concat_column([self.starts[name], self.ends[name]])
        assert isinstance(column, np.ndarray)
        return column.astype(np.int64, copy=False) if name == "weight" else column

    def identity(self, name: str = "") -> Identity:
        return Identity.concat([self.starts.identity(name), self.ends.identity(name)])

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
        return RowEndpoints.joined(found, none)

    def parts_between(self, low: int, high: int) -> list[list[Columns]]:
        """Those in [low, high) as they are kept: beginnings, and ends."""
        return [part.between(low, high) for part in self._parts]

    def advance(self, frontier: int, none: RowEndpoints) -> RowEndpoints:
        """Take out those before the frontier."""
        found = (part.advance(frontier) for part in self._parts)
        return RowEndpoints.joined(found, none)


class RecentEndpoints(State):
    """Endpoints that were shown and are not final, found by partition."""

    layouts = ("_parts",)

    def __init__(self, store: Store) -> None:
        self._parts = tuple(ExpiryBuckets(store, constants=("weight",)) for _ in range(2))

    def append(self, endpoints: RowEndpoints) -> None:
        for part, columns in zip(self._parts, endpoints, strict=True):
            part.append(columns.key, columns.time, columns.without("low", "high"))

    def probe(self, partition: Identity, since: int, none: RowEndpoints) -> RowEndpoints:
        """Those of the partitions that are not before ``since``."""
        found = []
        for part, nothing in zip(self._parts, none, strict=True):
            which, columns = part.probe(partition)
            if columns:
                columns |= identity_columns("", partition.take(which), wide="high" in nothing)
                found.append(columns.only(nothing).where(columns.time >= since))
            else:
                found.append(nothing)
        return RowEndpoints(*found)

    def expire(self, frontier: int) -> None:
        for part in self._parts:
            part.expire(frontier)
