"""The machinery of every operator that keeps running totals per key: endpoints in time order, swept once.

A row [s, e) with weight w is two endpoints of its key: the totals change by +w at s and by -w at e. An endpoint at t is
final once the frontier has passed t. A row that began before the frontier can only change its end, and its starts cancel
(legality), so nothing else is needed for retractions.

Strong: endpoints before the frontier are merged with the totals at the old frontier (``base``) and swept; each key's open
segment is held until its next endpoint, or, without holding, shown open-ended and closed later.

Speculative (CEDR 3.2 in batch form): the totals at the frontier stay the base, the endpoints in [frontier, tau] of the
touched keys are swept twice, without and with the tick's endpoints, and the difference is emitted; the last segment of a
key is shown open-ended.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from headwater.kernels.segments import find_sorted
from headwater.kernels.sweep_counts import first_marked
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity, is_recoverable, recover
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import EVERY_COLUMN, Frontiers, Inputs, Operator, Routing, Step
from headwater.operators.key_routes import route_by_part
from headwater.operators.sweeps.endpoints import Segments, Swept, both_ends
from headwater.state.aging import AgingKeys
from headwater.state.buckets import ExpiryBuckets
from headwater.state.columns import Columns
from headwater.state.hold_counts import HoldCounts
from headwater.state.latest import Found, LatestWins
from headwater.state.manifest import Route, Scalars, State, agreed, route_by_key
from headwater.state.news import WaitingNews
from headwater.state.retyped import KeptTypes
from headwater.state.runs import TimeRuns
from headwater.state.store import Store


class SweepState(State):
    """Totals at the frontier and the endpoints still to come."""

    scalars: ClassVar[Scalars] = {"frontier": min, "tau": max}
    layouts = ("endpoints", "base", "holds", "aging", "recent", "unshown")

    def __init__(self, store: Store, *, speculative: bool) -> None:
        self.frontier = BEGINNING
        self.endpoints = TimeRuns(store, constants=("weight", "port", "begins"))
        self.base = LatestWins(store)
        self.holds = HoldCounts()
        self.aging = AgingKeys(store)  # only where segments are not held for ever
        self.recent = ExpiryBuckets(store) if speculative else None
        self.unshown = WaitingNews(store)
        self.tau = BEGINNING

    @property
    def rows(self) -> int:
        return self.endpoints.rows + self.base.rows

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        """A shard that had seen rows of later times has shown more: what the others have not is news to their keys."""
        if old[0].recent is not None:
            agreed([state.frontier for state in old])
        super().hand_over(old, new, route)
        for state in old:
            late = state.endpoints.between(state.tau + 1, new[0].tau + 1)
            WaitingNews.give(late, [s.unshown for s in new], route)


class SweepOperator(Operator):
    """Base of the additive snapshot family: subclasses say which totals there are and what they mean."""

    totals: int
    """How many int64 words of totals a key has (float totals as their bits)."""

    def __init__(
        self,
        key_types: Sequence[pa.DataType],
        *,
        longest: int = INFINITY,
        speculative: bool = False,
        hold: bool = True,
        once: bool = False,
    ) -> None:
        self._longest = longest  # a strong segment is not held longer than so many instants (Krämer 11.7.2, l_max)
        self._key_types = tuple(key_types)
        self._recoverable = is_recoverable(key_types)
        self._speculative, self._hold = speculative, hold and not once
        self._once = once  # the rows of a key begin at one instant and never end: then its answer is known for good

    # -- what a subclass says ---------------------------------------------------------------------------------------

    @abstractmethod
    def key_columns(self, delta: Delta, port: int) -> tuple[Identity, Sequence[pa.Array]]:
        """The key of each row, and the key's columns."""

    def value_columns(self, delta: Delta, port: int) -> dict[str, np.ndarray]:
        """What an endpoint carries besides its weight (numpy columns)."""
        return {}

    def prepare(self, state: Any, swept: Swept) -> None:
        """Before final endpoints are swept: add columns to them that need the state."""

    @abstractmethod
    def sweep(self, swept: Swept, totals: Int64Array, since: Int64Array, horizon: int, *, show_open: bool) -> Segments:
        """Segments by (key, start): those that an endpoint closes, and, to be shown, the open one at the end of each key.

        totals and since are brought up to the last endpoint before the horizon, in place.
        """

    @abstractmethod
    def open_segments(self, totals: Int64Array, since: Int64Array) -> Segments:
        """The last segment of each key, shown until INFINITY; only where there is an answer."""

    @abstractmethod
    def is_dead(self, totals: Int64Array) -> BoolArray:
        """Where the totals are those of a key that has no rows."""

    def is_silent(self, totals: Int64Array) -> BoolArray:
        """Where the totals give no row."""
        return self.is_dead(totals)

    @abstractmethod
    def output(self, state: Any, key: Identity, segments: Segments, columns: Sequence[pa.Array]) -> Delta:
        """The answer as a delta; ``columns`` holds the key columns of each segment."""

    def remember_rows(self, state: Any, inputs: tuple[Delta, ...]) -> None:
        """Keep whole rows, for answers that totals cannot give."""

    def forget_rows(self, state: Any, frontier: int) -> None:
        """Rows that ended before the frontier are not needed any more."""

    # -- the step ---------------------------------------------------------------------------------------------------

    @property
    def settles(self) -> bool:
        return not self._speculative

    @property
    def holds_back(self) -> bool:
        return self._hold and not self._speculative

    def kept_types(self, inputs: Sequence[Schema]) -> KeptTypes:
        return {("", f"key.{i}"): type_ for i, type_ in enumerate(self._key_types)}

    def new_state(self, store: Store) -> SweepState:
        return SweepState(store, speculative=self._speculative)

    def step(self, state: SweepState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        frontier = max(min(frontiers), state.frontier)
        if self._speculative:
            result = self._speculate(state, inputs, frontier, reached)
        else:
            self.remember_rows(state, inputs)
            result = self._finish(state, inputs, frontier)
        self.forget_rows(state, frontier)
        return result

    def _endpoints(self, delta: Delta, port: int, bounds: Sequence[tuple[int, int]]) -> list[Columns]:
        """Both ends of every row, those in [low, high) for each of the bounds; what ends at INFINITY has no end."""
        key, payload = self.key_columns(delta, port)
        rows = Columns.under(key, self.value_columns(delta, port))
        if self.arity > 1:
            rows |= {"port": np.full(len(delta), port, np.uint8)}
        columns = {} if self._recoverable else {f"key.{i}": column for i, column in enumerate(payload)}
        return [both_ends(delta, rows, columns, low, high) for low, high in bounds]

    def _finish(self, state: SweepState, inputs: tuple[Delta, ...], frontier: int) -> Step:
        """Strong form: everything before the frontier is final."""
        due = self._take_due(state, inputs, frontier)
        results = [self._sweep_due(state, due)] if due is not None else []
        state.frontier = frontier
        if frontier == INFINITY:
            results.append(self._flush(state))
            return Step(Delta.concat(self.schema, results), INFINITY)
        if self._longest < INFINITY and self._hold:
            results.append(self._cut_long(state, frontier))
        return Step(Delta.concat(self.schema, results), min(frontier, state.holds.least()))

    def _take_due(self, state: SweepState, inputs: tuple[Delta, ...], frontier: int) -> Columns | None:
        """The endpoints that became final; the others wait."""
        due: list[Columns] = []
        later: list[Columns] = []
        for port, delta in enumerate(inputs):
            if len(delta):
                # Starts before the old frontier cancel each other (legality).
                now, rest = self._endpoints(delta, port, [(state.frontier, frontier), (frontier, INFINITY)])
                due.append(now)
                later.append(rest)
        due += state.endpoints.advance(frontier)
        if later:
            state.endpoints.append(Columns.concat(later))
        due = [part for part in due if part.rows]
        return Columns.concat(due) if due else None

    def _sweep_due(self, state: SweepState, due: Columns) -> Delta:
        """Merge final endpoints into the totals; what that closes is the answer."""
        swept = Swept.group(due)
        found, totals, since = self._load(state, swept.key)
        payload = self._payload(state, swept, found)
        self.prepare(state, swept)
        if not self._hold:
            old = self.open_segments(totals.copy(), since.copy())
            new = self.sweep(swept, totals, since, INFINITY, show_open=True)
            self._save(state, swept.key, found, totals, since, payload)
            return self._difference(state, swept.key, payload, *old.difference(new))
        before = since.copy()
        closed = self.sweep(swept, totals, since, INFINITY, show_open=False)
        self._save(state, swept.key, found, totals, since, payload)
        state.holds.move(before, since)
        if self._longest < INFINITY:
            moved = np.flatnonzero((since != before) & (since != INFINITY))
            state.aging.push(since[moved], swept.key.take(moved))
        return self.output(state, swept.key, closed, self._keys_of(swept.key, payload, closed.key))

    def _difference(self, state: SweepState, key: Identity, payload: Columns, old: Segments, new: Segments) -> Delta:
        gone = self.output(state, key, old, self._keys_of(key, payload, old.key)).negate()
        come = self.output(state, key, new, self._keys_of(key, payload, new.key))
        return Delta.concat(self.schema, [gone, come])

    def _load(self, state: SweepState, key: Identity) -> tuple[Found, Int64Array, Int64Array]:
        found = state.base.find(key)
        record = state.base.records(found, self.totals + 1)
        since = record[:, -1].copy()
        since[found.segment < 0] = INFINITY
        return found, np.ascontiguousarray(record[:, :-1].T), since

    def _save(
        self,
        state: SweepState,
        key: Identity,
        found: Found,
        totals: Int64Array,
        since: Int64Array,
        payload: Columns,
    ) -> None:
        since[self.is_silent(totals)] = INFINITY  # nothing is open
        record = np.empty((len(since), self.totals + 1), np.int64)
        record[:, :-1], record[:, -1] = totals.T, since
        dead = np.ones(len(since), np.bool_) if self._once else self.is_dead(totals)
        state.base.put(key, record, payload, dead, found)

    def _held_since(self, state: SweepState, key: Identity) -> Int64Array:
        return self._load(state, key)[2]

    def _cut_long(self, state: SweepState, frontier: int) -> Delta:
        """Let out the final part of segments that have been held for too long."""
        key = state.aging.before(frontier - self._longest, lambda key: self._held_since(state, key))
        if len(key.low) == 0:
            return Delta.empty(self.schema)
        found, totals, since = self._load(state, key)
        parts = self.open_segments(totals, since)
        until = since + (frontier - 1 - since) // self._longest * self._longest
        payload = Columns()
        if not self._recoverable:
            places, payload = state.base.gather_where(found, [f"key.{i}" for i in range(len(self._key_types))])
            payload = payload.take(np.argsort(places, kind="stable"))
        self._save(state, key, found, totals, until, payload)
        state.holds.move(since, until)
        state.aging.push(until, key)
        return self.output(state, key, parts._replace(end=until[parts.key]), self._keys_of(key, payload, parts.key))

    def _flush(self, state: SweepState) -> Delta:
        """The end of time: open segments last for ever."""
        result = self.held_back(state)
        self._clear(state)
        return result

    def held_back(self, state: SweepState) -> Delta:
        """What the strong form knows and has not shown: the open segments, until INFINITY."""
        key, columns = state.base.live()
        if not len(key.low) or not self._hold:
            return Delta.empty(self.schema)
        record = columns["record"]
        last = self.open_segments(np.ascontiguousarray(record[:, :-1].T), record[:, -1].copy())
        return self.output(state, key, last, self._keys_of(key, columns, last.key))

    @staticmethod
    def _clear(state: SweepState) -> None:
        state.base.clear()
        state.endpoints.advance(INFINITY)
        state.holds = HoldCounts()
        state.aging.clear()
        if state.recent is not None:
            state.recent.expire(INFINITY)

    # -- other shards -----------------------------------------------------------------------------------------------

    def route(self, old: Sequence[SweepState], routing: Routing, shards: int) -> Route:
        """By the key, unless rows are routed by a part of it: then by what is known of each key's columns."""
        (whole, *_), (by, *_) = self.routing(), routing
        if whole == by:
            return route_by_key(shards)
        assert whole is not None
        assert by is not None
        names = self.schema.names if whole == EVERY_COLUMN else whole
        return route_by_part([names.index(name) for name in by], self._key_types, shards, map(_known, old))

    def count_again(self, state: SweepState) -> None:
        key, columns = state.base.live()
        if len(key.low) and self._hold and not self._speculative:
            state.holds.fill(columns["record"][:, -1])

    # -- key columns ------------------------------------------------------------------------------------------------

    def _payload(self, state: SweepState, swept: Swept, found: Found) -> Columns:
        """The key columns of each swept key: from the base, or from a row that begins now."""
        if self._recoverable:
            return Columns()
        names = [f"key.{i}" for i in range(len(self._key_types))]
        old_places, old = state.base.gather_where(found, names)
        first = first_marked(swept.groups, np.where(swept.columns["begins"] == 1, swept.order, -1))
        fresh = np.ones(len(first), np.bool_)
        fresh[old_places] = False
        fresh_places = np.flatnonzero(fresh)
        # A key with no start at all has only cancelling ends; any row will do for it.
        source = swept.payload.only(names).take(np.maximum(first[fresh_places], 0))
        together = Columns.concat([old, source]) if old else source
        return together.take(np.argsort(np.concatenate([old_places, fresh_places]), kind="stable"))

    def _keys_of(self, key: Identity, payload: Columns, which: Int64Array) -> list[pa.Array]:
        if not self._key_types:
            return []
        if self._recoverable:
            return [recover(key.low[which], self._key_types[0])]
        where = pa.array(which)
        return [payload[f"key.{i}"].take(where) for i in range(len(self._key_types))]

    # -- from the strong form to the speculative one ------------------------------------------------------------------

    def adopt(self, state: Any, before: Operator, store: Store) -> tuple[SweepState, Delta]:
        """Totals and endpoints are the same; what waits at the frontier or after it becomes news of the next step."""
        assert isinstance(before, SweepOperator)
        shown = before.held_back(state)
        state.holds = HoldCounts()
        state.aging.clear()
        state.recent, state.tau = ExpiryBuckets(store), state.frontier - 1
        return state, shown

    # -- speculative form -------------------------------------------------------------------------------------------

    def _speculate(self, state: SweepState, inputs: tuple[Delta, ...], frontier: int, reached: int) -> Step:
        tau = max(state.tau, reached, min(frontier, INFINITY - 1), *(d.largest_start() for d in inputs))
        news = state.endpoints.between(state.tau + 1, tau + 1) if tau > state.tau else []
        news += state.unshown.take_all()
        passed = state.endpoints.advance(frontier)
        for port, delta in enumerate(inputs):
            if len(delta):
                bounds = [(state.frontier, tau + 1), (frontier, INFINITY)]
                shown, later = self._endpoints(delta, port, bounds)
                state.endpoints.append(later)
                news = [*news, shown]
        news = [part for part in news if part.rows]
        result, touched = Delta.empty(self.schema), Identity.empty()
        if news:
            fresh = Columns.concat(news)
            result, touched = self._repair(state, fresh, inputs, frontier)
            self._remember(state, fresh, frontier)
        else:
            self.remember_rows(state, inputs)
        self._fold(state, passed, touched)
        state.frontier, state.tau = frontier, tau
        assert state.recent is not None
        if frontier == INFINITY:
            self._clear(state)
        elif frontier > BEGINNING:
            state.recent.expire(frontier - 1)
        return Step(result, frontier)

    def _repair(
        self, state: SweepState, fresh: Columns, inputs: tuple[Delta, ...], frontier: int
    ) -> tuple[Delta, Identity]:
        """The answer of the touched keys with the fresh endpoints, less the answer without them; and these keys.

        Their totals are brought up to the frontier on the way.
        """
        assert state.recent is not None
        swept = Swept.group(fresh)
        before = swept.none()
        which, known = state.recent.probe(swept.key)
        if len(which):
            rows = np.flatnonzero(known.time >= state.frontier)  # older ones are in the totals
            known = known.only(fresh.without("low", "high")).take(rows)
            swept, before = swept.join(which[rows], known)
        found, totals, since = self._load(state, swept.key)
        payload = self._payload(state, swept, found)
        old = self.sweep(before, totals.copy(), since.copy(), BEGINNING, show_open=True)
        new = self.sweep(swept, totals, since, frontier, show_open=True)
        old, new = old.difference(new)
        gone = self.output(state, swept.key, old, self._keys_of(swept.key, payload, old.key)).negate()
        self.remember_rows(state, inputs)
        come = self.output(state, swept.key, new, self._keys_of(swept.key, payload, new.key))
        moved = np.flatnonzero(swept.columns["time"][swept.groups[:-1]] < frontier)
        if len(moved) == len(since):
            self._save(state, swept.key, found, totals, since, payload)
        elif len(moved):
            found = Found(found.segment[moved], found.row[moved])
            self._save(state, swept.key.take(moved), found, totals[:, moved], since[moved], payload.take(moved))
        return Delta.concat(self.schema, [gone, come]), swept.key

    def _fold(self, state: SweepState, passed: list[Columns], touched: Identity) -> None:
        """Bring the totals of the other keys up to the frontier; nothing of what they show changes."""
        parts = []
        for part in passed:
            seen = part.where(part.time <= state.tau)  # later ones were fresh: their keys are touched
            parts.append(seen.where(~find_sorted(*touched, *seen.key)))
        parts = [part for part in parts if part.rows]
        if parts:
            swept = Swept.group(Columns.concat(parts))
            found, totals, since = self._load(state, swept.key)
            self.sweep(swept, totals, since, INFINITY, show_open=False)
            self._save(state, swept.key, found, totals, since, self._payload(state, swept, found))

    @staticmethod
    def _remember(state: SweepState, fresh: Columns, frontier: int) -> None:
        kept = fresh.where(fresh.time >= frontier)
        if kept.rows and state.recent is not None:
            state.recent.append(kept.key, kept.time, kept.without("low", "high"))


def _known(state: SweepState) -> Iterator[Columns]:
    """Where the columns of the keys are: with the totals, and with endpoints at which rows begin."""
    recent = [state.recent.all()] if state.recent is not None else []
    for part in (*state.endpoints.between(state.frontier, INFINITY), *recent):
        if part.rows and "begins" in part:
            yield part.where(part["begins"] != 0)
    yield state.base.live()[1]
