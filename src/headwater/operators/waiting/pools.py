"""Changes that wait, all of one row and start together, and the frontier with them: for operators that must not let a
change pass before others of its kind have come."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Routing, Step
from headwater.operators.tables.known_rows import Intervals, KnownRows, payload_of, sums
from headwater.state.columns import Columns
from headwater.state.manifest import Route, Scalars, State
from headwater.state.starts import StartCounts
from headwater.state.store import Store


class PoolState(State):
    """What has passed and may still change, where that is asked for, and what waits; when the changes that wait would take
    effect; and how many changes were given up."""

    scalars: ClassVar[Scalars] = {"frontier": min, "broken": None}
    layouts = ("known", "held")

    def __init__(self, store: Store, schema: Schema) -> None:
        self._store, self._schema = store, schema
        self.frontier, self.broken = BEGINNING, 0
        self.forget()

    def forget(self) -> None:
        """Nothing waits, and nothing is known to have passed."""
        payload = Columns.numbered(pa.array([], f.type) for f in self._schema)
        self.known = KnownRows(self._store, ("passed", "waits"), payload, endless=True)
        self.held = StartCounts(self._store)

    @property
    def rows(self) -> int:
        return self.known.rows

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        super().hand_over(old, new, route)
        new[0].broken = sum(state.broken for state in old)


class PoolOperator(Operator):
    """Lets the changes of a row and start pass as one, when a subclass says so. The frontier waits with them: at the start
    if they change how many rows there are, else at the earliest end that they move (C.6)."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    # -- what a subclass says ---------------------------------------------------------------------------------------

    remembers: ClassVar[bool]
    """Must it know what has passed?"""

    @abstractmethod
    def stays(self, rows: Intervals, passed: Int64Array, waits: Int64Array, frontier: int) -> BoolArray:
        """Does the interval wait on, with all others of its row and start?"""

    def taken(self, delta: Delta) -> Delta:
        """The changes of a tick, each interval once, with those that must be looked at besides."""
        return delta

    def goes(self, rows: Intervals, passed: Int64Array, waits: Int64Array, frontier: int) -> Int64Array:
        """How many of what waits pass now."""
        return np.where(self.stays(rows, passed, waits, frontier), 0, waits)

    def needed(self, rows: Intervals, waits: Int64Array) -> BoolArray:
        """Must the interval be kept for what waits?"""
        return waits != 0

    def given_up(self, rows: Intervals, passed: Int64Array, waits: Int64Array, frontier: int) -> tuple[Int64Array, int]:
        """What waits without changes that are not worth waiting for, and how many these are."""
        return waits, 0

    def look_again(self, rows: Intervals, waits: Int64Array) -> Int64Array:
        """For each interval: when its payload is to be looked at again, even if nothing comes."""
        return rows.end

    # -- the step ---------------------------------------------------------------------------------------------------

    def routing(self) -> Routing:
        return (self.schema.names,)

    def new_state(self, store: Store) -> PoolState:
        return PoolState(store, self.schema)

    def step(self, state: PoolState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta = self.taken(inputs[0].consolidate())
        frontier = max(frontiers[0], state.frontier)
        state.frontier = frontier
        touched = state.known.touch(delta, frontier)
        rows = touched.rows
        passed, waited = rows.counts
        _hold(state, rows, waited, -1)
        waits, broken = self.given_up(rows, passed, waited + rows.weight, frontier)
        state.broken += broken
        out = self.goes(rows, passed, waits, frontier)
        waits = waits - out
        passed = passed + out if self.remembers else passed
        _hold(state, rows, waits, +1)
        payload = payload_of(touched, delta)
        lives = self.needed(rows, waits) | ((passed > 0) & (rows.end >= frontier))
        waiting = _only_where(payload, rows.key[waits != 0])
        state.known.keep(touched, [passed, waits], lives, waiting, self.look_again(rows, waits))
        result = self.passing(rows, payload, out)
        if frontier == INFINITY:
            state.forget()
            return Step(result, INFINITY)
        return Step(result, min(frontier, state.held.least(state.known.rows, frontier)))

    def passing(self, rows: Intervals, payload: Columns, weight: Int64Array) -> Delta:
        """The intervals as a delta."""
        out = np.flatnonzero(weight)
        columns = payload.take(rows.key[out]).payload(len(self.schema))
        return Delta(self.schema, columns, rows.start[out], rows.end[out], weight[out])

    def waiting(self, state: PoolState) -> Delta:
        """What waits. O(state)."""
        _, (offsets, columns, payload) = state.known.groups.live()
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        times = (columns.array(name) for name in ("start", "end", "waits"))
        known = Delta(self.schema, payload.take(owner).payload(len(self.schema)), *times)
        return known.filter(known.weight != 0)

    def count_again(self, state: PoolState) -> None:
        key, (offsets, columns, _) = state.known.groups.live()
        sizes, nothing = np.diff(offsets), np.zeros(int(offsets[-1]), np.int64)
        numbers = np.repeat(np.arange(len(key.low)), sizes)
        start, end, waits = (columns.array(name) for name in ("start", "end", "waits"))
        _hold(state, Intervals(numbers, start, end, (), nothing, nothing), waits, +1)


def _hold(state: PoolState, rows: Intervals, waits: Int64Array, sign: int) -> None:
    """Count in (or out) when the changes that wait take effect."""
    held = _held(rows, waits)
    state.held.add(held, np.full(len(held), sign, np.int64))


def _held(rows: Intervals, waits: Int64Array) -> Int64Array:
    """For each group that waits: its start if its weights do not cancel, else the earliest end."""
    group, groups = rows.groups()
    waiting = np.flatnonzero(waits)
    net = sums(group, waits, groups)
    first = np.full(groups, INFINITY, np.int64)
    np.minimum.at(first, group[waiting], rows.end[waiting])
    begins = waiting[np.diff(group[waiting], prepend=-1) != 0]
    which = group[begins]
    return np.where(net[which] != 0, rows.start[begins], first[which])


def _only_where(payload: Columns, needed: Int64Array) -> Columns:
    """The columns of the payloads that wait; NULL for the others, of which the hash is enough."""
    if not payload:
        return payload
    size = payload.rows
    where = np.full(size, size, np.int64)
    where[needed] = needed
    nulls = {n: pa.concat_arrays([c, pa.nulls(1, c.type)]) for n, c in payload.items() if isinstance(c, pa.Array)}
    return Columns(nulls).take(where)
