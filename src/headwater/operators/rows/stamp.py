"""Write the instant into the row: equal rows of different instants become different rows."""
#  in           a |)  a |)
#  stamp "t"    (a, 1)  (a, 3)

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.errors import StreamError
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Frontiers, Inputs, Operator, Step


class StampOperator(Operator):
    """An element of a chronon stream gets its instant as one more column, a BIGINT. Stateless.

    A row [h, INFINITY) is the tail of an element that never ends (``SplitOperator``): it would be another row at every
    instant to come.
    """

    name = "stamp"

    def __init__(self, schema: Schema, column: str) -> None:
        self.schema = Schema((*schema.fields, Field(column, pa.int64(), nullable=False)))

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,)

    def step(self, state: None, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta = inputs[0]
        endless = np.flatnonzero(delta.end - delta.start != 1)
        if len(endless):
            row = delta.take(endless[:1]).rows()[0][0]
            raise StreamError(
                "ENDLESS_ARRIVALS",
                f"the element {row}, which never ends, would arrive anew at every instant",
                hint="Let the elements end, or use a window that is not INTERNAL.",
            )
        return Step(delta.with_columns(self.schema, [*delta.columns, pa.array(delta.start)]), frontiers[0])
