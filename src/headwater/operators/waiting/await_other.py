"""Hold rows back until time has come to them in another stream too (Srivastava & Widom 7)."""
#  frontiers         5 of 9   6 of 12     8 of 12    (of the other input, of the rows themselves)
#  stream            a|4-9) b|6-12)       c|7-9)
#  passes            a|4-9)               b|6-12)    c|7-9)

from __future__ import annotations

from headwater.model.time import BEGINNING
from headwater.operators.base import EVERY_COLUMN, Frontiers, Inputs, Routing, Step
from headwater.operators.waiting.block import BlockOperator, BlockState


class AwaitOperator(BlockOperator):
    """Transparent to the history: what starts before both frontiers passes, with all its changes; the rest waits.

    The other input brings no rows, only its frontier. Opened, it lets everything pass. State: the rows that wait.
    """

    name = "await"

    def routing(self) -> Routing:
        return (self._by, EVERY_COLUMN)

    def step(self, state: BlockState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        return self._release(state, inputs[0], frontiers[0] if self._opened else min(frontiers))
