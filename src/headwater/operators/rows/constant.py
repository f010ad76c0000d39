"""Bring the rows of a relation that never changes, once: VALUES, a SELECT without FROM."""
#  out   a |------------------ …     from 0 on, for ever
#        b |------------------ …

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.state.manifest import Scalars, State


class ConstantState(State):
    """Have the rows been sent? Nothing else is kept."""

    scalars: ClassVar[Scalars] = {"sent": max}
    rows = bytes = 0

    def __init__(self) -> None:
        self.sent = False


class ConstantOperator(Operator):
    """A source without a stream: its rows are valid [0, INFINITY) (Krämer 17.4). They come in the first tick, and nothing
    changes after it: the frontier is INFINITY at once, so that no other input ever waits for this one.
    """

    name = "constant"
    arity = 0

    def __init__(self, schema: Schema, rows: Sequence[Sequence[object]]) -> None:
        self.schema, self._rows = schema, tuple(rows)

    def new_state(self, store: object) -> ConstantState:
        return ConstantState()

    def describe(self) -> dict[str, object]:
        return {"rows": len(self._rows)}

    def step(self, state: ConstantState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        sent, state.sent = state.sent, True
        return Step(Delta.empty(self.schema) if sent else self.rows_as_delta(), INFINITY)

    def rows_as_delta(self) -> Delta:
        """Its rows, valid from the beginning of time for ever."""
        columns = [pa.array([row[i] for row in self._rows], f.type) for i, f in enumerate(self.schema)]
        start, one = np.zeros(len(self._rows), np.int64), np.ones(len(self._rows), np.int64)
        return Delta(self.schema, columns, start, np.full(len(self._rows), INFINITY, np.int64), one)
