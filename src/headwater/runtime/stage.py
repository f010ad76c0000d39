"""One level of one shard in one tick: the same code in the driver and in a task of Spark."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from attrs import Factory, define

from headwater.model.delta import Delta
from headwater.operators.base import Operator, Step
from headwater.runtime import points
from headwater.runtime.bundles import Bundle, all_seen, bundles_for, rows_of
from headwater.runtime.graph import Node
from headwater.runtime.layout import Layout, Level
from headwater.runtime.portions import portions
from headwater.runtime.reach import reached
from headwater.runtime.tick import Progress, Tick, level_0_frontiers, progress
from headwater.sinks.base import Staged, Stager
from headwater.state.store import MemoryStore, Store

Record = dict[str, Any]
"""What is kept of an operator in a shard: its saved state, the frontiers it has heard, and its own. JSON values."""


STRONG_FORM = "strong"
"""In a record: the state is that of the operator's strong form, and to be taken over in the next tick."""


def owner_of(node: Node, record: Record) -> Operator:
    """Whose state a record has: the operator's own, or that of its strong form."""
    owner = node.before if STRONG_FORM in record else node.operator
    assert owner is not None
    return owner


class Worked(NamedTuple):
    """What an operator did in one shard."""

    rows_in: int
    rows_out: int
    seconds: float

    def plus(self, other: Worked) -> Worked:
        return Worked(self.rows_in + other.rows_in, self.rows_out + other.rows_out, self.seconds + other.seconds)


@define
class StageOutput:
    """What a stage leaves behind, besides the bundles for later levels."""

    level: int
    shard: int
    records: dict[str, Record] = Factory(dict)
    """By node key: only of the operators that did something."""
    staged: dict[str, Staged] = Factory(dict)
    """By query."""
    frontiers: dict[str, int] = Factory(dict)
    """By query."""
    worked: dict[str, Worked] = Factory(dict)
    """By node key."""
    seconds: float = 0.0


class StateCache:
    """States in the memory of a process, valid as long as nobody else has gone on with them.

    A state is taken out before it changes: if the tick fails it is gone, and read again from what was committed.
    """

    def __init__(self, most: int | None = 1000) -> None:
        self._states: OrderedDict[tuple[str, str, int], tuple[str, Any]] = OrderedDict()
        self._most = most

    def take(self, place: tuple[str, str, int], version: str) -> Any:
        known, state = self._states.pop(place, ("", None))
        return state if known == version else None

    def put(self, place: tuple[str, str, int], version: str, state: Any) -> None:
        self._states[place] = version, state
        while self._most is not None and len(self._states) > self._most:
            self._states.popitem(last=False)

    def peek(self, place: tuple[str, str, int]) -> Any:
        return self._states.get(place, ("", None))[1]

    def copy(self, keys: Mapping[str, str]) -> None:
        """States of the old keys also under the new ones: ``keys`` says which is which."""
        for (place, key, shard), (version, state) in list(self._states.items()):
            for new in (new for new, old in keys.items() if old == key):
                self._states[place, new, shard] = version, deepcopy(state)

    def forget(self, keep: set[str]) -> None:
        """Only the nodes of these keys are needed any more."""
        for place in [p for p in self._states if p[1] not in keep]:
            del self._states[place]


class Stage:
    """One level of one shard."""

    def __init__(
        self,
        layout: Layout,
        level: int,
        shard: int,
        tick: Tick,
        *,
        store: Store,
        place: str,
        cache: StateCache,
        stagers: Mapping[str, Stager],
        staging: str,
    ) -> None:
        self._layout, self._shard, self._tick = layout, shard, tick
        self._level: Level = layout.levels[level]
        self._store, self._place, self._cache = store, place, cache
        self._stagers, self._staging = stagers, staging
        self._out = StageOutput(level, shard)
        self._states: dict[int, Any] = {}
        self._heard: dict[int, list[int]] = {}

    def run(
        self, bundles: Sequence[Bundle], records: Mapping[str, Record]
    ) -> tuple[StageOutput, list[tuple[int, int, Bundle]]]:
        """``records`` are this shard's; the bundles are for later levels, as (level, shard, bundle)."""
        began = time.perf_counter()
        seen = all_seen(bundles)
        now = progress(self._tick, seen)
        edges = [self._layout.edges[e] for e in self._level.outgoing]
        wanted = {edge.node for edge in edges} | {self._layout.graph.queries[q] for q in self._level.queries}
        parts: dict[int, list[Delta]] = {i: [] for i in wanted}
        made: dict[int, Step] = {}
        come = {i: self._reached(i, now) for i in self._level.nodes}
        for arrived, until in portions(self._arrived(bundles, now), self._tick.portion):
            made = self._steps(arrived, {i: min(time, until) for i, time in come.items()}, records)
            for i in wanted:
                parts[i].append(made[i].delta)
        deltas = {i: Delta.concat(self._layout.graph.nodes[i].schema, parts[i]) for i in wanted}
        frontiers = {i: made[i].frontier for i in wanted}
        self._keep(records, {i: step.frontier for i, step in made.items()})
        self._stage(deltas, frontiers)
        onward = list(bundles_for(edges, deltas, frontiers, seen, self._tick.shards, self._shard))
        points.passed(points.IN_A_STAGE)
        self._out.seconds = time.perf_counter() - began
        return self._out, onward

    def _reached(self, node: int, now: Progress) -> int:
        graph, scope = self._layout.graph, self._layout.scope[node]
        return reached(graph, graph.nodes[node], scope, now.frontiers, now.newest, self._tick.newest_before)

    def _steps(
        self, arrived: Mapping[int, Step], come: Mapping[int, int], records: Mapping[str, Record]
    ) -> dict[int, Step]:
        """Every operator of the level once; ``come``: how far time has come for each."""
        made: dict[int, Step] = {}
        for i in self._level.nodes:
            inputs = [
                made[source.node] if source.node is not None else arrived[source.edge or 0]
                for source in self._layout.inputs[i]
            ]
            node = self._layout.graph.nodes[i]
            made[i] = self._step(node, inputs, come[i], records.get(node.key))
        return made

    def _arrived(self, bundles: Sequence[Bundle], now: Progress) -> dict[int, Step]:
        """The rows of each edge that comes in, and how far all its senders are."""
        arrived: dict[int, Step] = {}
        origin = level_0_frontiers(self._layout, now.frontiers)
        for e in self._level.incoming:
            edge = self._layout.edges[e]
            rows = rows_of(e, self._layout.graph.nodes[edge.node].schema, bundles)
            if self._layout.level_of[edge.node] == 0:
                frontier = origin[edge.node]
            else:
                frontier = min(b.frontiers[e] for b in bundles if e in b.frontiers)
            arrived[e] = Step(rows, frontier)
        return arrived

    def _step(self, node: Node, inputs: Sequence[Step], reached_: int, record: Record | None) -> Step:
        began = time.perf_counter()
        operator = node.operator
        assert operator is not None, "sources are at level 0"
        deltas, frontiers = tuple(s.delta for s in inputs), tuple(s.frontier for s in inputs)
        heard = [*frontiers, reached_ if node.speculative else 0]
        held = Delta.empty(node.schema)
        if node.id not in self._states:
            if record is not None and record["heard"] == heard and not any(map(len, deltas)):
                return Step(held, record["promised"])  # nothing came and time stands still
            self._states[node.id], held = self._state(node, record)
        for delta in deltas:
            delta.reached = reached_
        delta, frontier = operator.step(self._states[node.id], deltas, frontiers)
        if len(held):
            delta = Delta.concat(node.schema, [held, delta]).consolidate()
        delta.reached = reached_
        if record is not None:
            frontier = max(frontier, record["promised"])
        self._heard[node.id] = heard
        worked = Worked(sum(map(len, deltas)), len(delta), time.perf_counter() - began)
        before = self._out.worked.get(node.key)
        self._out.worked[node.key] = worked if before is None else before.plus(worked)
        return Step(delta, frontier)

    def _state(self, node: Node, record: Record | None) -> tuple[Any, Delta]:
        """The state to go on with, and what shows now because a form that held it back has had it so far."""
        assert node.operator is not None
        if record is None:
            return node.operator.new_state(self._store), Delta.empty(node.schema)
        owner = owner_of(node, record)
        state = self._cache.take((self._place, node.key, self._shard), record["version"])
        if state is None:
            state = owner.restore(record["state"], self._store)
        if owner is node.operator:
            return state, Delta.empty(node.schema)
        return node.operator.adopt(state, owner, self._store)

    def _keep(self, records: Mapping[str, Record], frontiers: Mapping[int, int]) -> None:
        """Save the states that have changed."""
        durable = not isinstance(self._store, MemoryStore)  # state in memory lives in the cache alone
        for i, state in self._states.items():
            node = self._layout.graph.nodes[i]
            if state is None or node.operator is None:
                continue
            rows, size = node.operator.buffered(state)
            version = uuid.uuid4().hex
            self._out.records[node.key] = {
                "version": version,
                "heard": self._heard[i],
                "promised": frontiers[i],
                "rows": rows,
                "bytes": size,
                "state": node.operator.save(state) if durable else None,
                "counts": node.operator.counts(state),
            }
            self._cache.put((self._place, node.key, self._shard), version, state)

    def _stage(self, deltas: Mapping[int, Delta], frontiers: Mapping[int, int]) -> None:
        for query in self._level.queries:
            root = self._layout.graph.queries[query]
            self._out.frontiers[query] = frontiers[root]
            delta = settled(deltas[root])
            if len(delta) and query in self._stagers:
                number = self._tick.number
                self._out.staged[query] = self._stagers[query].stage(number, self._shard, delta, self._staging)


def settled(delta: Delta) -> Delta:
    """Without rows that take each other away; where nothing is taken away there are none."""
    return delta.consolidate() if (delta.weight < 0).any() else delta
