"""For a query that begins while its stream is running: changes of rows that came before it are none of its business."""
#  stream   a |--------)   then a ends earlier      b |-----)   then b ends earlier
#                      ^ the query begins
#  passes                                           b |-----)   and the change of b

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Operator, Step
from headwater.state.columns import Columns
from headwater.state.groups import LatestGroups
from headwater.state.latest import Found
from headwater.state.manifest import Scalars, State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_NAMES = ("start", "end", "count")
_NONE = np.empty(0, np.uint64)


class SinceState(State):
    """The rows that have passed and may still change: per payload their intervals; and by their ends, to forget them."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    layouts = ("passed", "ends")

    def __init__(self, store: Store) -> None:
        self.passed = LatestGroups(store, columns=dict.fromkeys(_NAMES, np.empty(0, np.int64)))
        self.ends = TimeRuns(store)
        self.frontier = BEGINNING

    @property
    def rows(self) -> int:
        return self.passed.rows


class _Rows(NamedTuple):
    """Intervals by the number of their key: ``count`` copies are there, ``weight`` come or go."""

    key: Int64Array
    start: Int64Array
    end: Int64Array
    count: Int64Array
    weight: Int64Array
    place: Int64Array
    """Of a row that comes or goes, in the delta; -1: it was there before."""

    def take(self, order: Int64Array) -> _Rows:
        return _Rows(*(column[order] for column in self))


class SinceOperator(Operator):
    """The stream as one sees it who has just come: a row that goes must have come before his eyes.

    Of a change of an unseen row neither half passes: what goes is not known, and as many rows of the same payload and
    start that come with it take its place, those that end first. Transparent to everything else. State: every row that
    has passed and whose end has not, by payload.
    """

    name = "since"

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self.schema.names,)

    def new_state(self, store: Store) -> SinceState:
        return SinceState(store)

    def step(self, state: SinceState, inputs: tuple[Delta, ...], frontiers: tuple[int, ...]) -> Step:
        delta = inputs[0].consolidate()
        frontier = max(frontiers[0], state.frontier)
        state.frontier = frontier
        out = self._pass(state, delta, frontier)
        if frontier == INFINITY:
            state.passed.clear()
            state.ends.advance(INFINITY)
        return Step(out, frontier)

    def _pass(self, state: SinceState, delta: Delta, frontier: int) -> Delta:
        gone: list[Any] = state.ends.advance(frontier)
        past = [Identity(part["low"], part.get("high", _NONE)) for part in gone]
        touched = Identity.concat([delta.key(), *past])
        if len(touched.low) == 0:
            return delta
        key, number = _distinct(touched)
        found = state.passed.find(key)
        known = state.passed.gather(found)
        rows = _together(delta, number[: len(delta)], known.offsets, cast("dict[str, Int64Array]", known.columns))
        weight = _seen_only(rows)
        self._keep(state, key, found, rows, weight, frontier)
        mine_only = rows.place >= 0
        passed = np.zeros(len(delta), np.int64)
        passed[rows.place[mine_only]] = weight[mine_only]
        return delta.with_weight(passed).filter(passed != 0)

    def _keep(
        self, state: SinceState, key: Identity, found: Found, rows: _Rows, weight: Int64Array, frontier: int
    ) -> None:
        """The intervals of the keys as they are now, without those that cannot change any more."""
        count = rows.count + weight
        lives = np.flatnonzero((count > 0) & (rows.end >= frontier))
        left, count = rows.take(lives), count[lives]
        sizes = np.bincount(left.key, minlength=len(key.low))
        known = np.flatnonzero((sizes > 0) | (found.segment >= 0))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[known])])
        columns: Columns = {"start": left.start, "end": left.end, "count": count}
        was = Found(found.segment[known], found.row[known])
        state.passed.put(key.take(known), offsets, columns, {}, sizes[known] == 0, was)
        new = np.flatnonzero((left.place >= 0) & (left.end < INFINITY))
        named = key.take(left.key[new])
        ends: Columns = {"time": left.end[new], "low": named.low}
        if len(named.high):
            ends["high"] = named.high
        state.ends.append(ends)


def _distinct(keys: Identity) -> tuple[Identity, Int64Array]:
    """The keys, each once and sorted, and the number of each one given."""
    low, high = keys
    order = np.lexsort((high, low)) if len(high) else np.argsort(low, kind="stable")
    changes = low[order][1:] != low[order][:-1]
    if len(high):
        changes |= high[order][1:] != high[order][:-1]
    first = np.concatenate([[True], changes])
    number = np.empty(len(low), np.int64)
    number[order] = np.cumsum(first) - 1
    return keys.take(order[first]), number


def _together(delta: Delta, number: Int64Array, offsets: Int64Array, known: dict[str, Int64Array]) -> _Rows:
    """What was there and what comes or goes, sorted by key, start and end; one row for each."""
    sizes = np.diff(offsets)
    before = int(offsets[-1])
    rows = _Rows(
        np.concatenate([np.repeat(np.arange(len(sizes)), sizes), number]),
        np.concatenate([known["start"], delta.start]),
        np.concatenate([known["end"], delta.end]),
        np.concatenate([known["count"], np.zeros(len(delta), np.int64)]),
        np.concatenate([np.zeros(before, np.int64), delta.weight]),
        np.concatenate([np.full(before, -1), np.arange(len(delta))]),
    )
    rows = rows.take(np.lexsort((rows.place, rows.end, rows.start, rows.key)))
    # A row that was there is right before the same one in the delta: they become one.
    again = np.flatnonzero(
        (rows.key[1:] == rows.key[:-1])
        & (rows.start[1:] == rows.start[:-1])
        & (rows.end[1:] == rows.end[:-1])
        & (rows.place[:-1] < 0)
    )
    rows.count[again + 1] += rows.count[again]
    return rows.take(np.delete(np.arange(len(rows.key)), again))


def _seen_only(rows: _Rows) -> Int64Array:
    """The weights without what goes unseen, and without what comes in its place."""
    if len(rows.key) == 0:
        return rows.weight
    comes, goes = np.maximum(rows.weight, 0), np.maximum(-rows.weight, 0)
    unseen = np.maximum(goes - rows.count, 0)
    first = np.concatenate([[True], (rows.key[1:] != rows.key[:-1]) | (rows.start[1:] != rows.start[:-1])])
    group = np.cumsum(first) - 1
    owed = np.bincount(group, weights=unseen).astype(np.int64)
    so_far = np.cumsum(comes) - comes
    so_far -= so_far[first][group]
    replaced = np.clip(owed[group] - so_far, 0, comes)
    return comes - replaced - (goes - unseen)
