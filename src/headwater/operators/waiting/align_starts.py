"""Let rows pass as soon as they begin, with an open end, and their ends when these are final (LMerge: half frozen)."""
#  in                 a|3-9)           a ends at 7      (final before 4)   (final before 8)
#  passes                                               a|3-)              a ends at 7

from __future__ import annotations

from typing import ClassVar

import numpy as np

from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.state.columns import Columns
from headwater.state.manifest import Scalars, State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store


class AlignStartsState(State):
    """Rows by the instant they begin, and rows by the instant they end."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    layouts = ("beginning", "ending")

    def __init__(self, store: Store) -> None:
        self.beginning = TimeRuns(store, constants=("weight",))
        self.ending = TimeRuns(store, constants=("weight",))
        self.frontier = BEGINNING

    @property
    def rows(self) -> int:
        return self.beginning.rows + self.ending.rows


class AlignStartsOperator(Operator):
    """Transparent to the snapshots. A row [s, e) is two changes: it comes as [s, INFINITY) once the frontier has passed s,
    and becomes [s, e) once the frontier has passed e. What the input takes back before that cancels where it waits, or as it
    passes, since rows that began before the frontier cancel by (row, start): so each row that passes is one insert and at
    most one adjust, of an end that is final. It holds nothing back: the frontier is that of the input.

    Opened, it lets everything pass that waits, and then does nothing more. State: rows whose start or end is not final.
    """

    name = "align starts"

    def __init__(self, schema: Schema, *, opened: bool = False) -> None:
        self.schema, self._opened = schema, opened

    def describe(self) -> dict[str, object]:
        return {"opened": True} if self._opened else {}

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self.schema.names,)

    def new_state(self, store: Store) -> AlignStartsState:
        return AlignStartsState(store)

    def step(self, state: AlignStartsState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        (delta,) = inputs
        frontier = max(frontiers[0], state.frontier)
        if self._opened:
            return Step(self._let_go(state, delta), frontier)
        begun = self._due(state.beginning, _endless(delta), delta.start, frontier)
        ends = delta.filter(delta.end != INFINITY)
        ended = self._due(state.ending, ends, ends.end, frontier)
        state.frontier = frontier
        return Step(self._changes(begun, ended), frontier)

    def _due(self, waiting: TimeRuns, delta: Delta, at: Int64Array, frontier: int) -> list[Delta]:
        """The rows whose instant has passed; the others wait for it."""
        now = at < frontier
        waited = [self._rows(part) for part in waiting.advance(frontier) if part.rows]
        times = {"time": at, "start": delta.start, "end": delta.end, "weight": delta.weight}
        columns = times | Columns.numbered(delta.columns)
        waiting.append(columns.where(~now))
        return [*waited, delta.filter(now)]

    def _let_go(self, state: AlignStartsState, delta: Delta) -> Delta:
        """What waits passes as it is: the rows that have not begun with their ends, the others get theirs."""
        if not state.rows:
            return delta
        begun = [self._rows(part) for part in state.beginning.advance(INFINITY) if part.rows]
        ended = [self._rows(part) for part in state.ending.advance(INFINITY) if part.rows]
        return self._changes([*begun, delta], ended)

    def _changes(self, come: list[Delta], ended: list[Delta]) -> Delta:
        """Rows that come, and rows that were there without an end and have one now."""
        return Delta.concat(self.schema, [*come, *(_endless(part).negate() for part in ended), *ended]).consolidate()

    def _rows(self, part: Columns) -> Delta:
        rows = Columns.concat([part])
        times = rows.array("start"), rows.array("end"), rows.weight
        return Delta(self.schema, rows.payload(len(self.schema)), *times)


def _endless(delta: Delta) -> Delta:
    return delta.with_times(delta.start, np.full(len(delta), INFINITY, np.int64))
