"""Let only final changes pass: for a query that showed things early and shall be certain from now on (CEDR Align)."""
#  shown before   a|3-)
#  stream         a ends at 9      b|5-8)      (final before 9)   (final before 10)
#  passes                                      b|5-8)             a ends at 9

from __future__ import annotations

import numpy as np

from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Step
from headwater.operators.tables.known_rows import Intervals, sums
from headwater.operators.waiting.pools import PoolOperator, PoolState


class SettleOperator(PoolOperator):
    """Changes of one row and start wait together until none of them can be changed again: the start and all ends that they
    bring lie before the frontier. So what passes is never taken back; what had been shown before is, once, where it was
    wrong. ``whole``: an end is known with its start, so only this must be final. Opened, it lets everything pass that waits,
    and then does nothing more. State: the changes that wait.
    """

    name = "settle"
    remembers = False

    def __init__(self, schema: Schema, *, opened: bool = False, whole: bool = False) -> None:
        super().__init__(schema)
        self._opened, self._whole = opened, whole

    @property
    def holds_back(self) -> bool:
        return not (self._opened or self._whole)

    def describe(self) -> dict[str, object]:
        return {"opened": self._opened}

    def step(self, state: PoolState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        if not self._opened:
            return super().step(state, inputs, frontiers, reached)
        if not state.rows:
            return Step(inputs[0], frontiers[0])
        before, state.frontier = state.frontier, INFINITY
        waited = super().step(state, (Delta.empty(self.schema),), (INFINITY,)).delta
        state.frontier = max(before, frontiers[0])
        return Step(Delta.concat(self.schema, [waited, inputs[0]]).consolidate(), frontiers[0])

    def stays(self, rows: Intervals, passed: Int64Array, waits: Int64Array, frontier: int) -> BoolArray:
        group, groups = rows.groups()
        late = self.look_again(rows, waits) >= frontier
        if frontier == INFINITY:
            late[:] = False
        return sums(group, (late & (waits != 0)).astype(np.int64), groups)[group] > 0

    def look_again(self, rows: Intervals, waits: Int64Array) -> Int64Array:
        """What only goes is certain with its start."""
        return rows.start if self._whole else np.where(waits > 0, rows.end, rows.start)
