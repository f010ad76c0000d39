"""Let changes pass only if what they change is there: a source that says otherwise is told so."""
#  stream   a|0-10)    a: 10 becomes 8    b: 9 becomes 5
#  passes   a|0-10)    a: 10 becomes 8    an error: there is no b until 9

from __future__ import annotations

from typing import Any

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Step
from headwater.operators.tables.repair import RepairOperator


class CheckChangesOperator(RepairOperator):
    """As ``RepairOperator``, but no change may wait: each finds its row in its own tick or an earlier one.

    State: rows that have passed and not ended.
    """

    name = "check changes"

    def __init__(self, schema: Schema, stream: str) -> None:
        super().__init__(schema)
        self._stream = stream

    def describe(self) -> dict[str, object]:
        return {"stream": self._stream}

    def step(self, state: Any, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        """Nothing waited before, so everything that came must have passed."""
        result = super().step(state, inputs, frontiers, reached)
        missing = Delta.concat(self.schema, [inputs[0], result.delta.negate()]).consolidate()
        if len(missing):
            raise self._error(missing.filter(missing.weight < 0) if (missing.weight < 0).any() else missing)
        return result

    def _error(self, missing: Delta) -> StreamError:
        row, start, end, _ = missing.rows()[0]
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self.schema.names, row, strict=True))
        until = "infinity" if end == INFINITY else end
        return StreamError(
            "UNKNOWN_RETRACTION",
            f'stream "{self._stream}" changes a row that is not there: ({values}) in [{start}, {until})',
            detail="What a change changes must have come before it, or in the same tick.",
            hint="Declare ordered => false if changes come in any order; malformed => 'divert' leaves such ones out.",
        )
