"""Hold rows back for a while: what arrives late in that time, or is taken back in it, never shows (CEDR Align)."""
#  time has come to  3          5             8   (rows wait until it is 2 past their start)
#  stream            a|1-9) b|3-7)   -b       c|4-
#  passes            a|1-9)                   c|4-     b came and went while it waited

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Routing, Step
from headwater.state.columns import Columns
from headwater.state.manifest import Route, Scalars, State, route_by_key
from headwater.state.runs import TimeRuns
from headwater.state.store import Store


class BlockState(State):
    """The rows that wait, by their start. What starts before ``waiting.frontier`` has passed, and all its changes do."""

    scalars: ClassVar[Scalars] = {"taken": None}
    layouts = ("waiting",)

    def __init__(self, store: Store) -> None:
        self._store = store
        self.waiting = TimeRuns(store, constants=("weight",))
        self.taken = 0
        """Rows with a negative weight among those that wait, since they were last put together."""

    def wait_instead(self, rows: Columns) -> None:
        """These rows are all that waits."""
        frontier, self.waiting = self.waiting.frontier, TimeRuns(self._store, constants=("weight",))
        self.waiting.frontier, self.taken = frontier, 0
        self.waiting.append(rows)

    def let_go(self, until: int) -> list[Columns]:
        """All that waits; from now on what starts before ``until`` does not."""
        rows = self.waiting.between(self.waiting.frontier, INFINITY)
        self.waiting, self.taken = TimeRuns(self._store, constants=("weight",)), 0
        self.waiting.frontier = until
        return rows

    @property
    def rows(self) -> int:
        return self.waiting.rows


class BlockOperator(Operator):
    """Transparent to the history: it only delays. A row goes on when time has come to its start (``reached``, which
    is behind the newest row by the time to wait) or when its start is final; from then on all its changes pass (A.11).

    It lets everything through sooner or later, inserts and retractions alike, and nothing that starts before the frontier
    waits: so the frontier passes as it is, and the time to wait may change between two ticks. Opened, for a query that lets
    nothing wait any more, everything passes at once. State: the rows that wait.
    """

    name = "block"

    def __init__(self, schema: Schema, by: Sequence[str], wait: str = "", *, opened: bool = False) -> None:
        self.schema, self._by, self._wait, self._opened = schema, tuple(by), wait, opened

    def routing(self) -> Routing:
        return (self._by,)

    def describe(self) -> dict[str, object]:
        return {"for": self._wait}

    def new_state(self, store: Store) -> BlockState:
        return BlockState(store)

    def step(self, state: BlockState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        (delta,) = inputs
        until = max(frontiers[0], min(reached, INFINITY - 1) + 1)
        return Step(self._release(state, delta, until).delta, frontiers[0])

    def _release(self, state: BlockState, delta: Delta, until: int) -> Step:
        """Let pass what starts before this instant; it never goes back."""
        until = max(state.waiting.frontier, until)
        later = delta.start >= (INFINITY if self._opened else until)
        waited = state.let_go(until) if self._opened else state.waiting.advance(until)
        out = delta.filter(~later)
        if waited:
            out = Delta.concat(self.schema, [out, self._delta(waited)]).consolidate()
        self._wait_on(state, delta.filter(later))
        return Step(out, until)

    def _wait_on(self, state: BlockState, delta: Delta) -> None:
        state.waiting.append(self._columns(delta))
        state.taken += int(np.count_nonzero(delta.weight < 0))
        if state.taken and 2 * state.taken >= state.waiting.rows > 0:  # so each row is looked at about twice
            rows = state.waiting.between(state.waiting.frontier, INFINITY)
            state.wait_instead(self._columns(self._delta(rows).consolidate()))

    def count_again(self, state: BlockState) -> None:
        rows = state.waiting.between(state.waiting.frontier, INFINITY)
        state.taken = sum(int(np.count_nonzero(part.array("weight") < 0)) for part in rows)

    def route(self, old: Sequence[BlockState], routing: Routing, shards: int) -> Route:
        whole, places = route_by_key(shards), [self.schema.index(name) for name in self._by]
        return lambda rows: whole(Columns.numbered(rows[f"column.{i}"] for i in places))

    def _columns(self, delta: Delta) -> Columns:
        return {"time": delta.start, "end": delta.end, "weight": delta.weight} | Columns.numbered(delta.columns)

    def _delta(self, parts: Sequence[Columns]) -> Delta:
        rows = Columns.concat(parts)
        return Delta(self.schema, rows.payload(len(self.schema)), rows.time, rows.array("end"), rows.weight)
