"""One level of one shard in one tick: the same code in the driver and in a task of Spark."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from attrs import Factory, define

from headwater.model.delta import Delta
from headwater.operators.base import Step
from headwater.runtime.bundles import Bundle, all_seen, bundles_for, rows_of
from headwater.runtime.graph import Node
from headwater.runtime.layout import Layout, Level
from headwater.runtime.tick import Progress, Tick, level_0_frontiers, progress, reached
from headwater.sinks.base import Staged, Stager
from headwater.state.store import MemoryStore, Store

Record = dict[str, Any]
"""What is kept of an operator in a shard: its saved state, the frontiers it has heard, and its own. JSON values."""


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

    def run(
        self, bundles: Sequence[Bundle], records: Mapping[str, Record]
    ) -> tuple[StageOutput, list[tuple[int, int, Bundle]]]:
        """``records`` are this shard's; the bundles are for later levels, as (level, shard, bundle)."""
        began = time.perf_counter()
        seen = all_seen(bundles)
        now = progress(self._tick, seen)
        steps = self._arrived(bundles, now)
        made: dict[int, Step] = {}
        for i in self._level.nodes:
            inputs = [
                made[source.node] if source.node is not None else steps[source.edge or 0]
                for source in self._layout.inputs[i]
            ]
            made[i] = self._step(self._layout.graph.nodes[i], inputs, reached(self._layout, i, now.newest), records)
        self._stage(made)
        edges = [self._layout.edges[e] for e in self._level.outgoing]
        deltas = {i: step.delta for i, step in made.items()}
        frontiers = {i: step.frontier for i, step in made.items()}
        onward = list(bundles_for(edges, deltas, frontiers, seen, self._tick.shards, self._shard))
        self._out.seconds = time.perf_counter() - began
        return self._out, onward

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

    def _step(self, node: Node, inputs: Sequence[Step], reached_: int, records: Mapping[str, Record]) -> Step:
        began = time.perf_counter()
        operator, record = node.operator, records.get(node.key)
        assert operator is not None, "sources are at level 0"
        deltas, frontiers = tuple(s.delta for s in inputs), tuple(s.frontier for s in inputs)
        heard = [*frontiers, reached_ if node.speculative else 0]
        if record is not None and record["heard"] == heard and not any(map(len, deltas)):
            return Step(Delta.empty(node.schema), record["promised"])  # nothing came and time stands still
        for delta in deltas:
            delta.reached = reached_
        state = self._state(node, record)
        delta, frontier = operator.step(state, deltas, frontiers)
        delta.reached = reached_
        if state is not None:
            frontier = max(frontier, record["promised"]) if record else frontier
            self._keep(node, state, heard, frontier)
        self._out.worked[node.key] = Worked(sum(map(len, deltas)), len(delta), time.perf_counter() - began)
        return Step(delta, frontier)

    def _state(self, node: Node, record: Record | None) -> Any:
        assert node.operator is not None
        if record is None:
            return node.operator.new_state(self._store)
        cached = self._cache.take((self._place, node.key, self._shard), record["version"])
        return cached if cached is not None else node.operator.restore(record["state"], self._store)

    def _keep(self, node: Node, state: Any, heard: list[int], frontier: int) -> None:
        assert node.operator is not None
        rows, size = node.operator.buffered(state)
        record: Record = {
            "version": uuid.uuid4().hex,
            "heard": heard,
            "promised": frontier,
            "rows": rows,
            "bytes": size,
        }
        # State in memory lives in the cache alone.
        record["state"] = None if isinstance(self._store, MemoryStore) else node.operator.save(state)
        self._out.records[node.key] = record
        self._cache.put((self._place, node.key, self._shard), record["version"], state)

    def _stage(self, made: Mapping[int, Step]) -> None:
        for query in self._level.queries:
            delta, frontier = made[self._layout.graph.queries[query]]
            self._out.frontiers[query] = frontier
            delta = delta.consolidate()
            if len(delta) and query in self._stagers:
                self._out.staged[query] = self._stagers[query].stage(
                    self._tick.number, self._shard, delta, self._staging
                )
