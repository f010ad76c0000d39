"""Bag union: what the inputs have, multiplicities add."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Frontiers, Inputs, Operator, Step


class UnionOperator(Operator):
    """∪ of two inputs or more (Krämer 8.3). Stateless; as far as the slowest input."""

    name = "union"

    def __init__(self, schema: Schema, arity: int = 2) -> None:
        self.schema, self.arity = schema, arity

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,) * self.arity

    def carried(self, below: Schema) -> dict[str, str]:
        return {own.name: out.name for own, out in zip(below, self.schema, strict=True) if own.type == out.type}

    def step(self, state: Any, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        typed = [
            d.with_columns(self.schema, [_as(c, f.type) for c, f in zip(d.columns, self.schema, strict=True)])
            for d in inputs
        ]
        return Step(Delta.concat(self.schema, typed), min(frontiers))


def _as(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return column if column.type == type_ else column.cast(type_)
