"""A table by its key, made of change events: each row holds from its event until the next one of its key."""
#  events of one key    a |)     b |)        deleted |)       a |)
#  the table            a |------)                            a |--------- …
#                                b |----------------)

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Routing, Step
from headwater.operators.tables.known_rows import distinct
from headwater.operators.tables.standing_rows import Standing
from headwater.operators.windows.row_elements import Elements, arrange, columns_of
from headwater.state.columns import Columns
from headwater.state.groups import LatestGroups
from headwater.state.latest import Found
from headwater.state.manifest import Scalars, State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store


class KeyedTableState(State):
    """Of each key the last final event, unless it is a deletion, and the events that are not final; and when a key is to
    be looked at again because one of its events has become final."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    layouts = ("events", "due")

    def __init__(self, store: Store, events: Schema) -> None:
        self.frontier = BEGINNING
        columns = Columns.numbered(pa.array([], f.type) for f in events) | {"time": np.empty(0, np.int64)}
        self.events = LatestGroups(store, columns=columns)
        self.due = TimeRuns(store)

    @property
    def rows(self) -> int:
        return self.events.rows


class _Lives(NamedTuple):
    """From when until when the row of each event holds; empty: it is a deletion, or another event is of the same time."""

    start: Int64Array
    end: Int64Array


class KeyedTableOperator(Operator, Standing):
    """Events, in each key by (time, values), become rows of the table: what comes last at an instant counts.

    It shows at once what follows from the events seen, and changes ends as others come: one form for all levels of
    consistency, as a changelog would bring it. A key whose last final event is a deletion is forgotten: as nothing older
    can come, it is as if it had never been. State: an event for each key that is there, and those that are not final.
    """

    name = "keyed table"

    def __init__(self, events: Schema, schema: Schema, key: Sequence[str], deleted: str) -> None:
        self.schema, self._events, self._key = schema, events, tuple(key)
        self._shown = [events.index(name) for name in schema.names]
        self._deleted = f"column.{events.index(deleted)}"

    def routing(self) -> Routing:
        return (self._key,)

    def describe(self) -> dict[str, object]:
        return {"key": self._key}

    def new_state(self, store: Store) -> KeyedTableState:
        return KeyedTableState(store, self._events)

    def step(self, state: KeyedTableState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        state.frontier = frontier = max(frontiers[0], state.frontier)
        arrived = columns_of(inputs[0], self._key)
        due = [part.key for part in state.due.advance(frontier)]
        if not len(inputs[0]) and not due:
            return Step(Delta.empty(self.schema), frontier)
        key, _ = distinct(Identity.concat([arrived.key, *due]))
        found = state.events.find(key)
        elements = self._elements(state, key, found, arrived)
        deleted = self._is_deleted(elements)
        was, now = (_lives(elements, counts > 0, deleted) for counts in (elements.before, elements.after))
        self._keep(state, found, elements, deleted)
        return Step(self._changes(elements, was, now), frontier)

    def _elements(self, state: KeyedTableState, key: Identity, found: Found, arrived: Columns) -> Elements:
        """What is known of the touched keys and what comes, in order. Each of these keys has an event: one that comes, or
        one that has become final."""
        offsets, known, _ = state.events.gather(found)
        owners = key.take(np.repeat(np.arange(len(key.low)), np.diff(offsets)))
        known |= {"low": owners.low, "high": owners.high, "weight": np.ones(len(owners.low), np.int64)}
        arrived = {"high": key.high[:0]} | arrived if len(key.high) else arrived
        rows = Columns.concat([known.only(arrived), arrived])
        before = (np.arange(len(rows.time)) < len(owners.low)).astype(np.int64)
        return arrange(rows, before, np.ones(len(before), np.int64))

    def _is_deleted(self, elements: Elements) -> BoolArray:
        return np.asarray(elements.rows[self._deleted].to_numpy(zero_copy_only=False), np.bool_)[elements.order]

    def _keep(self, state: KeyedTableState, found: Found, elements: Elements, deleted: BoolArray) -> None:
        """Each key goes on with the last final event, if its row is there, and with what is not final."""
        time, groups, frontier = elements.time, elements.groups, state.frontier
        final = time < frontier
        last = np.append(final[:-1] & ~final[1:], final[-1:])  # of its key, or of all
        last[groups[1:] - 1] |= final[groups[1:] - 1]
        kept = np.flatnonzero(~final | (last & ~deleted))
        sizes = np.bincount(_owners(groups)[kept], minlength=len(groups) - 1)
        known = np.flatnonzero((sizes > 0) | (found.segment >= 0))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[known])])
        was = Found(found.segment[known], found.row[known])
        events = elements.rows.without("low", "high", "weight").take(elements.order[kept])
        state.events.put(elements.key.take(known), offsets, events, {}, sizes[known] == 0, was)
        new = np.flatnonzero(~final & (elements.before == 0))
        names = [n for n in ("low", "high") if n in elements.rows]
        state.due.append({"time": time[new]} | elements.rows.only(names).take(elements.order[new]))

    def _changes(self, elements: Elements, was: _Lives, now: _Lives) -> Delta:
        changed = (was.end != now.end) | (was.start != now.start)
        gone = np.flatnonzero(changed & (was.end > was.start))
        come = np.flatnonzero(changed & (now.end > now.start))
        rows = np.concatenate([gone, come])
        weight = np.repeat(np.array([-1, 1], np.int64), [len(gone), len(come)])
        start = np.concatenate([was.start[gone], now.start[come]])
        end = np.concatenate([was.end[gone], now.end[come]])
        return Delta(self.schema, self._columns(elements, rows), start, end, weight)

    def _columns(self, elements: Elements, rows: Int64Array) -> list[pa.Array]:
        return list(elements.rows.only(f"column.{i}" for i in self._shown).take(elements.order[rows]).values())

    def remembered(self, state: KeyedTableState) -> Delta:
        _, (_, events, _) = state.events.live()
        time = events.time
        return Delta(self._events, events.payload(len(self._events)), time, time + 1, np.ones(len(time), np.int64))

    def standing(self, state: KeyedTableState) -> Delta:
        key, (offsets, events, _) = state.events.live()
        owners = key.take(np.repeat(np.arange(len(key.low)), np.diff(offsets)))
        one = np.ones(len(owners.low), np.int64)
        rows = Columns.under(owners, events)
        if len(one) == 0:
            return Delta.empty(self.schema)
        elements = arrange(rows, np.zeros_like(one), one)
        nothing = _Lives(elements.time, elements.time)
        return self._changes(elements, nothing, _lives(elements, one > 0, self._is_deleted(elements)))


def _owners(groups: Int64Array) -> Int64Array:
    return np.repeat(np.arange(len(groups) - 1), np.diff(groups))


def _lives(elements: Elements, counts: BoolArray, deleted: BoolArray) -> _Lives:
    """Each event that counts lasts until the next one of its key that does."""
    start, end = elements.time, elements.time.copy()
    at = np.flatnonzero(counts)
    owner = _owners(elements.groups)[at]
    until = np.full(len(at), INFINITY, np.int64)
    until[:-1] = np.where(owner[:-1] == owner[1:], start[at][1:], INFINITY)
    end[at] = np.where(deleted[at], start[at], until)
    return _Lives(start, end)
