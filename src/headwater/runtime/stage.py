"""One level of one shard in one tick: the same code in the driver and in a task of Spark."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from attrs import Factory, define

from headwater.errors import HeadwaterError, StreamError
from headwater.model.delta import Delta
from headwater.model.time import BEGINNING
from headwater.operators.base import Operator, Step
from headwater.operators.joins.pile import Pile
from headwater.operators.tables.standing_rows import Standing
from headwater.runtime import points
from headwater.runtime.ahead import later_readers, legal_part, pile_for, too_large
from headwater.runtime.bundles import Bundle, all_seen, bundles_for, rows_of
from headwater.runtime.graph import Graph, Node
from headwater.runtime.layout import GraphLevel, Layout
from headwater.runtime.portions import PORTION, portions
from headwater.runtime.reach import passed_on, reached
from headwater.runtime.tick import Made, StreamTimes, Tick, level_0_frontiers, stream_times
from headwater.sinks.base import Staged, Stager
from headwater.state.store import MemoryStore, Store

Record = dict[str, Any]
"""What is kept of an operator in a shard: its saved state, the frontiers it has heard, and its own. JSON values."""
Records = dict[int, dict[str, Record]]
"""By shard, then by node key."""

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
    known: dict[str, int] = Factory(dict)
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
        self._level: GraphLevel = layout.levels[level]
        self._store, self._place, self._cache = store, place, cache
        self._stagers, self._staging = stagers, staging
        self._out = StageOutput(level, shard)
        self._states: dict[int, Any] = {}
        self._heard: dict[int, list[int]] = {}
        self._promised: dict[int, int] = {}
        """By node: its frontier so far."""
        self._come: dict[int, int] = {}
        """By node: how far time has come for it."""
        self._ahead = tick.portion or 4 * PORTION
        """About so many rows of a step that is not over go ahead at once."""
        self._elsewhere = 0.0
        """Seconds in steps that are counted already."""
        self._taken = 0
        """Bytes that went ahead into states."""
        self._parts: dict[int, list[Delta]] = {}
        """By node: what its steps have brought for later levels and for queries."""
        self._piles: dict[int, Pile] = {}
        """By node: what went ahead to them."""
        self._aside: dict[tuple[int, int], Pile] = {}
        """By node and input: what went ahead, and waits for the rest since the node sees less than rows."""
        self._handed: dict[int, Delta] = {}
        """By node: what stands in a relation, for queries that begin with this tick."""

    def run(
        self, bundles: Sequence[Bundle], records: Mapping[str, Record]
    ) -> tuple[StageOutput, list[tuple[int, int, Bundle]]]:
        """``records`` are this shard's; the bundles are for later levels, as (level, shard, bundle)."""
        began = time.perf_counter()
        seen = all_seen(bundles)
        now = stream_times(self._tick, seen)
        edges = [self._layout.edges[e] for e in self._level.outgoing]
        wanted = {edge.node for edge in edges} | {self._layout.graph.queries[q] for q in self._level.queries}
        self._parts = {i: [] for i in wanted}
        made: dict[int, Made] = {}
        come = {i: self._reached(i, now) for i in self._level.nodes}
        for arrived, until in portions(self._arrived(bundles, now), self._tick.portion):
            self._come = {i: min(time, until) for i, time in come.items()}
            made = self._steps(arrived, records)
            for i in wanted:
                self._parts[i].append(made[i].delta)
        for i, pile in self._piles.items():
            self._parts[i].append(pile.whole())
        deltas = {i: Delta.concat(self._layout.graph.nodes[i].schema, parts) for i, parts in self._parts.items()}
        frontiers = {i: (made[i].frontier, made[i].known) for i in wanted}
        self._keep(records, {i: step.frontier for i, step in made.items()})
        self._stage(deltas, frontiers)
        onward = list(bundles_for(edges, deltas, frontiers, seen, self._tick.shards, self._shard))
        points.passed(points.IN_A_STAGE)
        self._out.seconds = time.perf_counter() - began
        return self._out, onward

    def _reached(self, node: int, now: StreamTimes) -> int:
        graph, scope = self._layout.graph, self._layout.scope[node]
        return reached(graph, graph.nodes[node], scope, now.frontiers, now.newest, self._tick.newest_before)

    def _steps(self, arrived: Mapping[int, Made], records: Mapping[str, Record]) -> dict[int, Made]:
        """Every operator of the level once."""
        made: dict[int, Made] = {}
        for i in self._level.nodes:
            inputs = [
                made[source.node] if source.node is not None else arrived[source.edge or 0]
                for source in self._layout.inputs[i]
            ]
            for port in range(len(inputs)):
                if (pile := self._aside.pop((i, port), None)) is not None:
                    inputs[port] = inputs[port]._replace(delta=pile.with_rest(inputs[port].delta))
            made[i] = self._step(self._layout.graph.nodes[i], inputs, records)
        return made

    def _go_ahead(self, node: Node, delta: Delta, records: Mapping[str, Record]) -> None:
        """Rows of a step that is not over: the operators above take them while time stands still, or put them aside."""
        made = {node.id: _still(delta, self._promised.get(node.id, BEGINNING))}
        for i in self._level.nodes:
            sources, above = self._layout.inputs[i], self._layout.graph.nodes[i]
            if i not in made and any(source.node in made for source in sources):
                if self._put_aside(above, made):
                    continue
                record = records.get(above.key)
                before = record["heard"] if record is not None else []  # nothing, too, where another form has heard it
                heard = self._heard.get(i) or before or [BEGINNING] * len(sources)
                inputs = [
                    made[source.node] if source.node in made else _still(Delta.empty(nodes.schema), frontier)
                    for source, nodes, frontier in zip(sources, self._inputs_of(above), heard, strict=False)
                ]
                made[i] = self._step(above, inputs, records)
                if self._states.get(i) is not None:
                    self._taken += sum(its.delta.bytes for its in inputs)
        for i in made.keys() & self._parts.keys():
            if i not in self._piles:
                self._piles[i] = pile_for(self._layout.graph.nodes[i], later_readers(self._layout, i))
            self._piles[i].add_portion(made[i].delta)

    def _put_aside(self, node: Node, made: Mapping[int, Made]) -> bool:
        """For the node's own step, if it sees less than rows of all inputs that have brought something."""
        assert node.operator is not None
        come = [(port, source.node) for port, source in enumerate(self._layout.inputs[node.id]) if source.node in made]
        piles: list[Pile] = []
        for port, below in come:
            pile = self._aside.get((node.id, port))
            piles.append(pile or pile_for(self._layout.graph.nodes[below], [node.operator.sight(port)]))
        if not all(pile.shrinks for pile in piles):
            return False
        for (port, below), pile in zip(come, piles, strict=True):
            pile.add_portion(made[below].delta)
            self._aside[node.id, port] = pile
        return True

    def _inputs_of(self, node: Node) -> list[Node]:
        return [self._layout.graph.nodes[i] for i in node.inputs]

    def _arrived(self, bundles: Sequence[Bundle], now: StreamTimes) -> dict[int, Made]:
        """The rows of each edge that comes in, and how far all its senders are."""
        arrived: dict[int, Made] = {}
        origin = level_0_frontiers(self._layout, now.frontiers)
        for e in self._level.incoming:
            edge = self._layout.edges[e]
            rows = rows_of(e, self._layout.graph.nodes[edge.node].schema, bundles)
            if self._layout.level_of[edge.node] == 0:
                frontier = known = origin[edge.node]
            else:
                told = [b.frontiers[e] for b in bundles if e in b.frontiers]
                frontier, known = map(min, zip(*told, strict=True))
            arrived[e] = Made(rows, frontier, known)
        return arrived

    def _step(self, node: Node, inputs: Sequence[Made], records: Mapping[str, Record]) -> Made:
        delta, frontier = self._made(node, inputs, records)
        return Made(delta, frontier, known_before(self._layout.graph, node, inputs, frontier))

    def _made(self, node: Node, inputs: Sequence[Made], records: Mapping[str, Record]) -> Step:
        began, elsewhere = time.perf_counter(), self._elsewhere
        operator, record, reached_ = node.operator, records.get(node.key), self._come[node.id]
        assert operator is not None, "sources are at level 0"
        deltas, frontiers = tuple(s.delta for s in inputs), tuple(s.frontier for s in inputs)
        heard = [*frontiers, reached_ if node.speculative else 0]
        held = [Delta.empty(node.schema)]
        if node.id not in self._states:
            newcomers = self._newcomers(node, records)
            if record is not None and record["heard"] == heard and not any(map(len, deltas)) and not newcomers:
                return Step(held[0], record["promised"])  # nothing came and time stands still
            self._states[node.id], held[0] = self._state(node, record)
            self._promised[node.id] = record["promised"] if record is not None else BEGINNING
            if newcomers and isinstance(operator, Standing):  # what comes in this tick they see by themselves
                self._handed |= dict.fromkeys(newcomers, operator.standing(self._states[node.id]))
        went, frontier = 0, BEGINNING
        portions = operator.portions(self._states[node.id], deltas, frontiers, self._ahead, reached_)
        while True:
            try:
                ahead, waits = legal_part(next(portions), self._promised[node.id])
            except StopIteration as end:
                held.append(end.value.delta)
                frontier = end.value.frontier
                break
            except StreamError:
                raise  # it names the stream whose rows are wrong, whoever reads them
            except HeadwaterError as problem:
                raise problem.of(self._layout.graph.whose(node.id)) from problem.__cause__
            held.append(waits)
            went += len(ahead)
            if len(ahead):
                self._go_ahead(node, ahead, records)
            kept = self._taken + operator.put_aside(self._states[node.id])
            kept += sum(pile.bytes for pile in (*self._piles.values(), *self._aside.values()))
            kept += sum(delta.bytes for parts in (held, *self._parts.values()) for delta in parts)
            if kept > self._tick.step_bytes:
                key = operator.busiest_key(deltas)
                raise too_large(self._layout.graph, node, key, self._tick.step_bytes)
        delta = held[-1]
        if any(map(len, held[:-1])):
            delta = Delta.concat(node.schema, held).consolidate()
        self._promised[node.id] = frontier = max(frontier, self._promised[node.id])
        self._heard[node.id] = heard
        took = time.perf_counter() - began - (self._elsewhere - elsewhere)
        self._elsewhere += took
        worked = Worked(sum(map(len, deltas)), went + len(delta), took)
        before = self._out.worked.get(node.key)
        self._out.worked[node.key] = worked if before is None else before.plus(worked)
        return Step(delta, frontier)

    def _newcomers(self, node: Node, records: Mapping[str, Record]) -> list[int]:
        """The nodes that hand over what stands in this one, and have not done so yet."""
        if not isinstance(node.operator, Standing):
            return []
        nodes = (self._layout.graph.nodes[i] for i in self._level.nodes)
        return [other.id for other in nodes if other.standing == node.id and other.key not in records]

    def _state(self, node: Node, record: Record | None) -> tuple[Any, Delta]:
        """The state to go on with, and what shows now because a form that held it back has had it so far."""
        assert node.operator is not None
        if record is None:
            handed = self._handed.pop(node.id, None)
            return node.operator.new_state(self._store), Delta.empty(node.schema) if handed is None else handed
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

    def _stage(self, deltas: Mapping[int, Delta], frontiers: Mapping[int, tuple[int, int]]) -> None:
        for query in self._level.queries:
            root = self._layout.graph.queries[query]
            self._out.frontiers[query], self._out.known[query] = frontiers[root]
            delta = settled(deltas[root])
            if len(delta) and query in self._stagers:
                number = self._tick.number
                self._out.staged[query] = self._stagers[query].stage(number, self._shard, delta, self._staging)


def _still(delta: Delta, frontier: int) -> Made:
    """Rows, while time stands still."""
    return Made(delta, frontier, frontier)


def known_before(graph: Graph, node: Node, inputs: Sequence[Made], frontier: int) -> int:
    """How far the answer of a node is known, whose rows have come up to this frontier."""
    known = tuple(made.known for made in inputs)
    assert node.operator is not None
    if node.operator.holds_back:
        return min(known)
    if all(made.known == made.frontier for made in inputs):
        return frontier
    return passed_on(graph, node, known)


def settled(delta: Delta) -> Delta:
    """Without rows that take each other away; where nothing is taken away there are none."""
    return delta.consolidate() if (delta.weight < 0).any() else delta
