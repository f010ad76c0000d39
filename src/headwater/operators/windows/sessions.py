"""The sessions of the keys that a tick touches: those that are known, the rows that take part, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from headwater.kernels.groups import group_rows
from headwater.kernels.sessions import join_sessions
from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.identity import Identity
from headwater.model.time import saturating_add
from headwater.state.columns import Columns
from headwater.state.groups import LatestGroups
from headwater.state.latest import Found
from headwater.state.manifest import Route, Scalars, State, rows_by_shard
from headwater.state.session_rows import SessionRows
from headwater.state.store import Store


class Points(NamedTuple):
    """Rows that take part in a tick; ``order`` sorts them by (key, time), ``groups``: where each touched key begins."""

    rows: Columns
    order: Int64Array
    groups: Int64Array
    key: Identity

    @classmethod
    def arrange(cls, rows: Columns, others: Identity) -> Points:
        """The rows, their keys, and other keys that are touched."""
        key = Identity.concat([rows.key, others])
        time = np.concatenate([rows.time, np.zeros(len(others.low), np.int64)])
        order, groups = sort_by_key_time(*key, time)
        real = order < len(rows.time)
        return cls(rows, order[real], _before(real)[groups], key.take(order[groups[:-1]]))

    def sorted(self, name: str) -> Int64Array:
        return self.rows.array(name).take(self.order)


class Blocks(NamedTuple):
    """Sessions that are known: where each key's begin, their first and last instants and their numbers."""

    offsets: Int64Array
    first: Int64Array
    last: Int64Array
    id: Int64Array

    @classmethod
    def known(cls, table: LatestGroups, found: Found) -> Blocks:
        offsets, columns, _ = table.gather(found)
        return cls(offsets, *(columns.array(name) for name in ("first", "last", "id")))

    @property
    def key(self) -> Int64Array:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def filter(self, mask: BoolArray) -> Blocks:
        return Blocks(_before(mask)[self.offsets], self.first[mask], self.last[mask], self.id[mask])


def _before(mask: BoolArray) -> Int64Array:
    """How many are true before each place, and in all."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(mask, dtype=np.int64)])


class OpenSessions(State):
    """The sessions that are not final: their ends a partition, and their rows, each under its session's number."""

    scalars: ClassVar[Scalars] = {"next_id": None}
    layouts = ("table", "members")

    def __init__(self, store: Store, types: Mapping[str, pa.DataType]) -> None:
        self.table = LatestGroups(store, columns=dict.fromkeys(("first", "last", "id"), np.empty(0, np.int64)))
        self.members = SessionRows(store, types)
        self.next_id = 0

    def new_ids(self, count: int) -> Int64Array:
        self.next_id += count
        return np.arange(self.next_id - count, self.next_id)

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        """Numbers are given per shard, so that every session gets a new one; its rows go where its partition goes."""
        for sessions in old:
            key, (offsets, columns, _) = sessions.table.live()
            for shard, chosen in rows_by_shard(route(Columns({"low": key.low}))):
                sizes = np.diff(offsets)[chosen]
                moved = columns.take(group_rows(offsets, chosen))
                new[shard]._take_in(sessions.members, key.take(chosen), sizes, moved)

    def _take_in(self, members: SessionRows, key: Identity, sizes: Int64Array, sessions: Columns) -> None:
        ids = self.new_ids(int(sizes.sum()))
        which, rows = members.load(sessions.array("id"))
        self.members.change(ids[which], rows, ids[:0])
        places = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        none = np.full(len(sizes), -1, np.int64)
        self.table.put(key, places, sessions | {"id": ids}, {}, sizes == 0, Found(none, none))


class Joined:
    """Blocks and points that are at most the gap apart, as sessions by (key, first); ``last`` INFINITY: it never ends.

    ``was_shown_before``: known sessions that ended before this were shown; those that end before ``shown_before`` are
    now, and those that end before ``frontier`` are final.
    """

    def __init__(
        self, gap: int, points: Points, blocks: Blocks, *, was_shown_before: int, shown_before: int, frontier: int
    ) -> None:
        self.blocks = blocks
        parts, of_point, self.of_block = join_sessions(
            gap, points.groups, points.sorted("time"), points.sorted("until"), *blocks[:3]
        )
        self.key, self.first, self.last, self.parts, _ = parts
        self.of_point = np.empty_like(of_point)  # in the order of the rows
        self.of_point[points.order] = of_point
        self.end = saturating_add(self.last, gap)
        self.block_end = saturating_add(blocks.last, gap)
        self.shown, self.final = self.end < shown_before, self.end < frontier
        self.was_shown = self.block_end < was_shown_before
        self.same = (blocks.first == self.first[self.of_block]) & (blocks.last == self.last[self.of_block])
        self.heir = np.full(len(self.first), -1, np.int64)
        """The block whose number the session goes on under, and to which the rows of the others move; -1: none."""
        self.heir[self.of_block] = np.arange(len(self.of_block))

    def choose_heirs(self, crowded: Int64Array, sizes: Int64Array) -> None:
        """Of the blocks that become one, the largest is the heir."""
        by_size = crowded[np.argsort(sizes, kind="stable")]
        self.heir[self.of_block[by_size]] = by_size  # of several the last one counts

    @property
    def crowded(self) -> Int64Array:
        """The blocks that become one with others."""
        return np.flatnonzero(self.parts[self.of_block] > 1)

    @cached_property
    def reshown(self) -> BoolArray:
        """The blocks of which what is shown changes."""
        shown = self.shown[self.of_block]
        return (self.was_shown != shown) | (shown & ~self.same)

    @cached_property
    def moves(self) -> BoolArray:
        """The blocks whose rows go on under another number."""
        return (self.heir[self.of_block] != np.arange(len(self.of_block))) & ~self.final[self.of_block]

    @cached_property
    def steady(self) -> BoolArray:
        """The sessions that are one block as it was, and are kept."""
        steady = (self.parts == 1) & ~self.final
        steady[self.of_block[~self.same]] = False
        return steady

    @cached_property
    def begins_to_wait(self) -> BoolArray:
        """The sessions that are kept and whose end or state is another than before."""
        unchanged = self.steady.copy()
        unchanged[self.of_block[self.was_shown != self.shown[self.of_block]]] = False
        return ~(unchanged | self.final)
