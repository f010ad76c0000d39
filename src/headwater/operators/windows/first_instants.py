"""Of rows that last, the instants that a window of the last n rows has to see."""
#  in, k = 2      {a, b} |---------------)  {c} |--------)
#  n = 3          a,b |) a,b |)             c |) c |) c |)      ceil(3/2) = 2 instants, then ceil(3/1) = 3

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Frontiers, Inputs, Operator, Step


class FirstInstantsOperator(Operator):
    """An element holds, as a list, all rows of a partition while these stay the same; out come its first instants.

    A row that lasts counts at each of its instants (Krämer 8.18 over 6.3.2). While the same k rows are valid, the last n
    elements are those of the last ceil(n/k) instants. So once that many have passed, each further instant pushes out
    what it brings: the window shows the same rows until the partition changes, and those instants need not be seen. An
    instant that is seen without need does no harm, as long as all rows of it are. Hence what the window shows does not
    depend on how the elements are cut. Stateless; at most n + k - 1 rows for an element of k rows, however long it is.
    """

    name = "first instants"

    def __init__(self, schema: Schema, rows: int) -> None:
        self.schema, self._rows = schema, rows

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,)

    def describe(self) -> dict[str, object]:
        return {"rows": self._rows}

    def step(self, state: None, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], frontiers[0]
        if not len(delta):
            return Step(Delta.empty(self.schema), frontier)
        lists = delta.columns[-1]
        assert isinstance(lists, pa.ListArray)
        offsets = lists.offsets.to_numpy().astype(np.int64)
        valid = np.diff(offsets)
        needed = -(-self._rows // valid)
        lasts = delta.end.view(np.uint64) - delta.start.view(np.uint64)
        instants = np.minimum(lasts, needed.astype(np.uint64)).astype(np.int64)
        count = instants * valid
        element = np.repeat(np.arange(len(delta)), count)
        nth = np.arange(len(element)) - np.repeat(np.cumsum(count) - count, count)
        passed, place = np.divmod(nth, valid[element])
        rows = lists.values.take(pa.array(offsets[element] + place))
        start = delta.start[element] + passed
        return Step(Delta(self.schema, rows.flatten(), start, start + 1, delta.weight[element]), frontier)
