"""Rows by payload with their intervals and counts, forgotten once their end has passed: for operators that must know
which rows of a stream they have let through, or have not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta, shard_of
from headwater.model.identity import Identity
from headwater.model.time import INFINITY
from headwater.state.columns import Columns, concat_column, take_column
from headwater.state.groups import LatestGroups
from headwater.state.latest import Found
from headwater.state.manifest import Route, State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_NOTHING = Columns()


class Intervals(NamedTuple):
    """Intervals sorted by the number of their payload, start and end; each of them once."""

    key: Int64Array
    start: Int64Array
    end: Int64Array
    counts: tuple[Int64Array, ...]
    """What is known of each: as many columns as the state has."""
    weight: Int64Array
    """How many of it come (go, if negative) in this tick."""
    place: Int64Array
    """Of one that comes or goes, in the delta; -1: it was known before."""

    def groups(self) -> tuple[Int64Array, int]:
        """The number of the (payload, start) of each interval, and how many there are."""
        if len(self.key) == 0:
            return self.key, 0
        changes = (self.key[1:] != self.key[:-1]) | (self.start[1:] != self.start[:-1])
        group = np.concatenate([np.zeros(1, np.int64), np.cumsum(changes)])
        return group, int(group[-1]) + 1


class Touched(NamedTuple):
    """The payloads that a tick is about, and what is known of all their intervals."""

    key: Identity
    found: Found
    rows: Intervals
    scalars: Columns
    """What is known of each payload as such."""
    own: Int64Array
    """The number of the payload of each row of the delta."""


class KnownRows(State):
    """The intervals of each payload, and the payloads by the ends of these, to be looked at when they have passed.

    ``scalars``: what is kept of each payload as such, by example. Where there is a ``route``, rows find their shard by it
    instead of by their payload. ``endless``: also rows that never end are looked at, at the end of time.
    """

    layouts = ("groups", "ends")

    def __init__(
        self,
        store: Store,
        counts: Sequence[str] = ("count",),
        scalars: Columns = _NOTHING,
        *,
        endless: bool = False,
    ) -> None:
        self._counts, self._last = tuple(counts), INFINITY if endless else INFINITY - 1
        names = ("start", "end", *self._counts)
        columns = dict.fromkeys(names, np.empty(0, np.int64))
        self.groups = LatestGroups(store, columns=columns, scalars=scalars)
        self.ends = TimeRuns(store)

    @property
    def rows(self) -> int:
        return self.groups.rows

    def clear(self) -> None:
        self.groups.clear()
        self.ends.advance(INFINITY)

    def touch(self, delta: Delta, frontier: int) -> Touched:
        """What is known of the payloads of a consolidated delta, and of those with an end that the frontier passes."""
        past = [part.key for part in self.ends.advance(frontier)]
        key, number = distinct(Identity.concat([delta.key(), *past]))
        found = self.groups.find(key)
        known = self.groups.gather(found)
        own = number[: len(delta)]
        return Touched(key, found, self._together(delta, own, known.offsets, known.columns), known.scalars, own)

    def _together(self, delta: Delta, number: Int64Array, offsets: Int64Array, known: Columns) -> Intervals:
        """What was known and what comes or goes."""
        sizes = np.diff(offsets)
        before, new = int(offsets[-1]), np.zeros(len(delta), np.int64)
        columns = [
            np.concatenate([np.repeat(np.arange(len(sizes)), sizes), number]),
            np.concatenate([known["start"], delta.start]),
            np.concatenate([known["end"], delta.end]),
            np.concatenate([np.zeros(before, np.int64), delta.weight]),
            np.concatenate([np.full(before, -1), np.arange(len(delta))]),
            *(np.concatenate([known[name], new]) for name in self._counts),
        ]
        order = np.lexsort((columns[4], columns[2], columns[1], columns[0]))
        key, start, end, weight, place, *counts = (column[order] for column in columns)
        # What was known is right before the same interval in the delta: they become one.
        same = (key[1:] == key[:-1]) & (start[1:] == start[:-1]) & (end[1:] == end[:-1])
        again = np.flatnonzero(same & (place[:-1] < 0))
        for count in counts:
            count[again + 1] += count[again]
        once = np.delete(np.arange(len(key)), again)
        left = tuple(count[once] for count in counts)
        return Intervals(key[once], start[once], end[once], left, weight[once], place[once])

    def keep(
        self,
        touched: Touched,
        counts: Sequence[Int64Array],
        lives: BoolArray,
        scalars: Columns = _NOTHING,
        times: Int64Array | None = None,
    ) -> None:
        """From now on this is known of the touched payloads; they are looked at again when these times pass, or the ends."""
        key, found, rows, *_ = touched
        kept = np.flatnonzero(lives)
        owner, start, end = rows.key[kept], rows.start[kept], rows.end[kept]
        sizes = np.bincount(owner, minlength=len(key.low))
        known = np.flatnonzero((sizes > 0) | (found.segment >= 0))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[known])])
        columns = {"start": start, "end": end}
        columns |= {name: count[kept] for name, count in zip(self._counts, counts, strict=True)}
        was = Found(found.segment[known], found.row[known])
        self.groups.put(key.take(known), offsets, columns, scalars.take(known), sizes[known] == 0, was)
        until = end if times is None else times[kept]
        new = np.flatnonzero((rows.place[kept] >= 0) & (until <= self._last) & (until >= self.ends.frontier))
        ends = {"time": np.minimum(until[new], INFINITY - 1)}
        if "route" in scalars:
            ends["route"] = take_column(scalars["route"], owner[new])
        self.ends.append(Columns.under(key.take(owner[new]), ends))


def payload_of(touched: Touched, delta: Delta) -> Columns:
    """The columns of each touched payload: of the delta, or as they are known."""
    where = np.full(len(touched.key.low), -1, np.int64)
    where[touched.own] = np.arange(len(delta))
    known = np.flatnonzero(where < 0)
    order = np.empty(len(where), np.int64)
    order[known], order[where >= 0] = np.arange(len(known)) + len(delta), where[where >= 0]
    kept = touched.scalars.take(known).payload(len(delta.columns))
    together = (concat_column([column, other]) for column, other in zip(delta.columns, kept, strict=True))
    return Columns.numbered(together).take(order)


def distinct(keys: Identity) -> tuple[Identity, Int64Array]:
    """The keys, each once and sorted, and the number of each one given."""
    low, high = keys
    order = np.lexsort((high, low)) if len(high) else np.argsort(low, kind="stable")
    changes = low[order][1:] != low[order][:-1]
    if len(high):
        changes |= high[order][1:] != high[order][:-1]
    first = np.concatenate([np.ones(min(len(low), 1), np.bool_), changes])
    number = np.empty(len(low), np.int64)
    number[order] = np.cumsum(first) - 1
    return keys.take(order[first]), number


def first_of_each(group: Int64Array, amount: Int64Array, wanted: Int64Array) -> Int64Array:
    """Of the amounts, in their order, as much as each group wants."""
    if len(group) == 0:
        return amount
    so_far = np.cumsum(amount) - amount
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    return np.clip(wanted[group] - (so_far - so_far[begins][group]), 0, amount)


def sums(group: Int64Array, amount: Int64Array, groups: int) -> Int64Array:
    """The sum of the amounts of each group."""
    total = np.zeros(groups, np.int64)
    np.add.at(total, group, amount)
    return total


def route_by_kept(shards: int) -> Route:
    """For rows that are kept with what finds their shard."""
    return lambda columns: shard_of(Identity(columns.array("route")), shards)
