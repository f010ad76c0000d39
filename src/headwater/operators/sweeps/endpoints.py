"""The endpoints of a tick: rows cut into where they begin and where they end, sorted by key and time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.kernels.merge import take_two
from headwater.kernels.segments import cancel_equal, merge_endpoints
from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity
from headwater.state.columns import Column, Columns, concat_column, take_column


class Segments(NamedTuple):
    """Pieces of answer: which of the swept keys, the interval, the multiplicity, and where its totals are in ``words``."""

    key: Int64Array
    start: Int64Array
    end: Int64Array
    weight: Int64Array
    source: Int64Array
    words: Int64Array  # totals by (word, source), float totals as their bits

    def difference(self, new: Segments) -> tuple[Segments, Segments]:
        """These and the new segments, without those that are in both."""
        (key, start, end, weight, source), come = cancel_equal(*self, *new)
        return Segments(key, start, end, weight, source, self.words), Segments._make([*come, new.words])


class Swept(NamedTuple):
    """The endpoints of a tick by (key, time)."""

    columns: dict[str, np.ndarray]  # sorted; operators add their own
    groups: Int64Array  # where each key begins, and the end
    key: Identity  # one entry per key
    order: Int64Array  # the permutation that sorted the endpoints
    payload: Columns  # key columns of the endpoints, not sorted

    @classmethod
    def group(cls, endpoints: Columns) -> Swept:
        key = endpoints.key
        order, groups = sort_by_key_time(*key, endpoints.time)
        rest = endpoints.without("low", "high")
        columns = {n: c.take(order) for n, c in rest.items() if isinstance(c, np.ndarray)}
        columns["weight"] = columns["weight"].astype(np.int64, copy=False)
        payload = Columns({n: c for n, c in rest.items() if isinstance(c, pa.Array)})
        return cls(columns, groups, key.take(order[groups[:-1]]), order, payload)

    def join(self, key: Int64Array, endpoints: Columns) -> tuple[Swept, Swept]:
        """With further endpoints of the same keys (``key`` says which), and those alone; they come first in the payload."""
        spread = np.uint64(64 - len(self.groups).bit_length())  # into the upper bits, which are sorted by
        by_key, _ = sort_by_key_time(*Identity(key.astype(np.uint64) << spread), endpoints.time)
        key = key[by_key]
        mine = {n: np.ascontiguousarray(endpoints[n].take(by_key)) for n in self.columns}
        mine["weight"] = mine["weight"].astype(np.int64, copy=False)
        order, groups = merge_endpoints(key, mine["time"], self.groups, self.columns["time"])
        columns = {n: take_two(mine[n], c, order) for n, c in self.columns.items()}
        payload = Columns({n: concat_column([endpoints[n], c]) for n, c in self.payload.items()})
        both = Swept(columns, groups, self.key, take_two(by_key, self.order + len(key), order), payload)
        counts = np.bincount(key, minlength=len(self.groups) - 1)
        return both, Swept(mine, np.concatenate([[0], np.cumsum(counts)]), self.key, by_key, payload)

    def none(self) -> Swept:
        """The same keys without endpoints."""
        columns = {n: c[:0] for n, c in self.columns.items()}
        return Swept(columns, np.zeros_like(self.groups), self.key, self.order[:0], self.payload)


def _where(mask: BoolArray) -> Int64Array | None:
    """The rows of the mask; None for all of them."""
    return None if mask.all() else np.flatnonzero(mask)


def both_ends(delta: Delta, rows: Columns, payload: Mapping[str, pa.Array], low: int, high: int) -> Columns:
    """Endpoints in [low, high): weight +w where rows begin, -w where they end; only beginnings carry the key's columns."""
    begins = _where((delta.start >= low) & (delta.start < high))
    ends = _where((delta.end >= low) & (delta.end < high))

    def pick(column: Column, which: Int64Array | None) -> Column:
        return column if which is None else take_column(column, which)

    def join(column: Column) -> Column:
        return concat_column([pick(column, begins), pick(column, ends)])

    starts, weight = pick(delta.start, begins), pick(delta.weight, begins)
    columns = {
        "time": concat_column([starts, pick(delta.end, ends)]),
        "weight": concat_column([weight, -pick(delta.weight, ends)]),
    }
    columns |= {name: join(column) for name, column in rows.items()}
    if payload:
        count = len(delta) if ends is None else len(ends)
        columns["begins"] = np.repeat(np.array([1, 0], np.uint8), [len(starts), count])
        for name, column in payload.items():
            columns[name] = concat_column([pick(column, begins), pa.nulls(count, column.type)])
    return Columns(columns)
