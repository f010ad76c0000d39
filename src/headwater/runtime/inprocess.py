"""Run a graph in this process, tick by tick."""

from __future__ import annotations

from typing import Any

from headwater.algebra.nodes import Plan
from headwater.language.consistency import MIDDLE, STRONG, Consistency
from headwater.model.delta import Delta
from headwater.model.time import BEGINNING
from headwater.operators.base import EVERY_COLUMN, Buffered, Operator, Step
from headwater.operators.block import BlockOperator
from headwater.operators.finalize import FinalizeOperator
from headwater.operators.sample import SampleOperator
from headwater.runtime.graph import Graph, Node
from headwater.runtime.lower import lower
from headwater.runtime.reach import reached
from headwater.runtime.stage import known_before
from headwater.runtime.tick import Made
from headwater.state.store import MemoryStore, Store


class Runner:
    """Holds the state of every operator; ``tick`` takes what the sources bring and gives each query's step.

    With several shards, every keyed operator has one state a shard and its inputs are split by key.
    """

    def __init__(
        self,
        plans: dict[str, Plan],
        *,
        speculative: bool = False,
        consistency: Consistency | None = None,
        store: Store | None = None,
        shards: int = 1,
        opens: bool = False,
    ) -> None:
        level = consistency or (MIDDLE if speculative else STRONG)
        self.graph: Graph = lower(plans, consistency=level, opens=opens)
        self._store = store or MemoryStore()
        self._cells = {node.id: self._cell(node.operator, shards) for node in self.graph.nodes if node.operator}
        self._speculative = level != STRONG
        self._heard: dict[int, tuple[tuple[int, ...], int | None]] = {}
        self._promised: dict[int, int] = {}
        self._newest: dict[str, int] = {}
        self.known: dict[str, int] = {}
        """By query: how far its answer is known."""
        self._frontiers = dict.fromkeys((node.source for node in self.graph.nodes if node.source), BEGINNING)

    def _cell(self, operator: Operator, shards: int) -> _Cell:
        spread = shards if any(operator.routing()) else 1
        return _Cell(operator, [operator.new_state(self._store) for _ in range(spread)])

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self._frontiers)

    def tick(self, deltas: dict[str, Delta], frontiers: dict[str, int]) -> dict[str, Step]:
        """One unit of progress: the sources' deltas, then their new frontiers (absent: as before)."""
        for name, frontier in frontiers.items():
            if name in self._frontiers:
                self._frontiers[name] = max(self._frontiers[name], frontier)
        for name, delta in deltas.items():
            self._newest[name] = max(self._newest.get(name, BEGINNING), delta.largest_start())
        made: list[Made] = []
        for node in self.graph.nodes:
            delta, frontier = self._step(node, made, deltas)
            below = [made[i] for i in node.inputs]
            known = frontier if node.operator is None else known_before(self.graph, node, below, frontier)
            made.append(Made(delta, frontier, known))
        self.known = {name: made[node].known for name, node in self.graph.queries.items()}
        return {name: Step(*made[node][:2]) for name, node in self.graph.queries.items()}

    def _step(self, node: Node, steps: list[Made], deltas: dict[str, Delta]) -> Step:
        if node.source is not None:
            return Step(deltas.get(node.source, Delta.empty(node.schema)), self._frontiers[node.source])
        inputs = [steps[i] for i in node.inputs]
        deltas_in, frontiers = tuple(s.delta for s in inputs), tuple(s.frontier for s in inputs)
        # Speculation shows what it knows up to the largest start seen, in whichever of the streams.
        come = reached(self.graph, node, self._newest, self._frontiers, self._newest, {})
        for delta in deltas_in:
            delta.reached = come
        # Where nothing came and time stands still, nothing happens.
        heard = (frontiers, come if self._speculative else None)
        if self._heard.get(node.id) == heard and not any(map(len, deltas_in)):
            return Step(Delta.empty(node.schema), self._promised[node.id])
        step = self._cells[node.id].step(deltas_in, frontiers)
        self._heard[node.id], self._promised[node.id] = heard, step.frontier
        return step

    def counts(self, what: str) -> int:
        """What all operators have counted of something, as "forgotten" rows."""
        return sum(cell.counts(what) for cell in self._cells.values())

    def buffered(self) -> Buffered:
        """What all operators keep."""
        parts = [cell.buffered() for cell in self._cells.values()]
        return Buffered(sum(p.rows for p in parts), sum(p.bytes for p in parts))


class _Cell:
    """One operator and its states, one a shard."""

    def __init__(self, operator: Operator, states: list[Any]) -> None:
        self._operator, self._states = operator, states

    def step(self, inputs: tuple[Delta, ...], frontiers: tuple[int, ...]) -> Step:
        if len(self._states) == 1:
            return self._operator.step(self._states[0], inputs, frontiers)
        shards = len(self._states)
        routes = [
            d.schema.names if by == EVERY_COLUMN else by or ()
            for d, by in zip(inputs, self._operator.routing(), strict=True)
        ]
        parts = [d.split(by, shards) for d, by in zip(inputs, routes, strict=True)]
        waits = isinstance(self._operator, BlockOperator | FinalizeOperator | SampleOperator)
        for whole, split in zip(inputs, parts, strict=True):
            for part in split:
                part.reached = whole.reached if waits else whole.largest_start()
        steps = [
            self._operator.step(state, tuple(part[i] for part in parts), frontiers)
            for i, state in enumerate(self._states)
        ]
        delta = Delta.concat(self._operator.schema, [s.delta for s in steps])
        return Step(delta, min(s.frontier for s in steps))

    def counts(self, what: str) -> int:
        return sum(self._operator.counts(state).get(what, 0) for state in self._states)

    def buffered(self) -> Buffered:
        parts = [self._operator.buffered(state) for state in self._states]
        return Buffered(sum(p.rows for p in parts), sum(p.bytes for p in parts))
