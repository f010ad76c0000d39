"""Hold rows back until they are final: what passes is never taken back (CEDR Align at full blocking)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.state.columns import Columns
from headwater.state.manifest import Scalars, State
from headwater.state.runs import TimeRuns
from headwater.state.starts import StartCounts
from headwater.state.store import Store


class AlignState(State):
    """Rows by the instant they end, and how many of them there are at each start."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    layouts = ("waiting", "starts")

    def __init__(self, store: Store) -> None:
        self.waiting = TimeRuns(store, constants=("weight",))
        self.starts = StartCounts(store)
        self.frontier = BEGINNING

    @property
    def rows(self) -> int:
        return self.waiting.rows


class AlignOperator(Operator):
    """Transparent to the snapshots. A row goes out once the frontier has passed its end: until then the end may still
    move, at the end itself too (errata 30), so the comparison is strict. Opened, for a query that does not wait any more, it
    lets everything pass that waits, and then does nothing more. State: every row whose end has not passed.
    """

    name = "align"

    def __init__(self, schema: Schema, *, opened: bool = False) -> None:
        self.schema, self._opened = schema, opened

    @property
    def holds_back(self) -> bool:
        return not self._opened

    def describe(self) -> dict[str, object]:
        return {"opened": True} if self._opened else {}

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self.schema.names,)

    def new_state(self, store: Store) -> AlignState:
        return AlignState(store)

    def step(self, state: AlignState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        (delta,) = inputs
        frontier = max(frontiers[0], state.frontier)
        if self._opened:
            return Step(self._let_go(state, delta), frontier)
        state.starts.add(delta.start, delta.weight)
        arrived = self._columns(delta)
        final = arrived.time < frontier
        ready = [arrived.where(final), *state.waiting.advance(frontier)]
        state.waiting.append(arrived.where(~final))
        state.frontier = frontier
        out = self._release([part for part in ready if part.rows])
        state.starts.add(out.start, -out.weight)
        if frontier == INFINITY:
            state.starts.clear()
            return Step(out, INFINITY)
        return Step(out, min(frontier, state.starts.least(state.waiting.rows, frontier)))

    def _let_go(self, state: AlignState, delta: Delta) -> Delta:
        if not state.rows:
            return delta
        waited = self._release(state.waiting.advance(INFINITY))
        state.starts.clear()
        return Delta.concat(self.schema, [waited, delta]).consolidate()

    def count_again(self, state: AlignState) -> None:
        for part in state.waiting.between(state.waiting.frontier, INFINITY):
            state.starts.add(part.array("start"), part.weight)

    def _columns(self, delta: Delta) -> Columns:
        # An end at INFINITY passes with the frontier INFINITY, so it waits one instant before.
        times = {"time": np.minimum(delta.end, INFINITY - 1), "start": delta.start, "end": delta.end}
        return times | Columns.numbered(delta.columns) | {"weight": delta.weight}

    def _release(self, parts: list[Columns]) -> Delta:
        if not parts:
            return Delta.empty(self.schema)
        rows = Columns.concat(parts)
        times = rows.array("start"), rows.array("end"), rows.weight
        return Delta(self.schema, rows.payload(len(self.schema)), *times).consolidate()
