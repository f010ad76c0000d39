"""Make time coarser: answers are exact at the multiples of a granule (Krämer 20, Alg. 24)."""
#  in           a |-------)   b |-)
#  granule g      a   |-------)        both ends rounded up; b met no multiple of g

from __future__ import annotations

import numpy as np

from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY, round_up
from headwater.operators.base import Frontiers, Inputs, Operator, Step


class GranularityOperator(Operator):
    """Both ends of every interval go up to a multiple of the granule, or so much after one; what becomes empty is gone.
    Stateless.

    The frontier goes up likewise: what began before it still reaches it, because both were rounded the same way.
    """

    name = "granularity"

    def __init__(self, schema: Schema, granule: int, offset: int = 0) -> None:
        self.schema, self._granule, self._offset = schema, granule, offset % granule

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,)

    def describe(self) -> dict[str, object]:
        return {"granule": self._granule, "offset": self._offset}

    def step(self, state: None, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], frontiers[0]
        if BEGINNING < frontier < INFINITY:
            frontier = int(round_up(np.array([frontier]), self._granule, self._offset)[0])
        if self._granule == 1:
            return Step(delta, frontier)
        ends = (round_up(times, self._granule, self._offset) for times in (delta.start, delta.end))
        coarse = delta.with_times(*ends)
        # An adjust within a granule changes nothing.
        return Step(coarse.consolidate() if (coarse.weight < 0).any() else coarse, frontier)
