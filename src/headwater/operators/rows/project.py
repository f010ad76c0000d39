"""Compute the output columns from the input's, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headwater.expressions.evaluation import Expressions
from headwater.expressions.nodes import Expression
from headwater.expressions.text import to_text
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Frontiers, Inputs, Operator, Step


class ProjectOperator(Operator):
    """μ (Krämer 8.2, Alg. 3): every row of a snapshot mapped by the expressions; multiplicities add up.

        in   (1, 2) |------)     (2, 1) |------)
        out  (3)    |------)     (3)    |------)       x + y

    Stateless: weights and intervals pass, and so does the frontier.
    """

    name: ClassVar[str] = "project"

    def __init__(self, input_schema: Schema, output_schema: Schema, expressions: Sequence[Expression]) -> None:
        self.schema = output_schema
        self._expressions = Expressions(input_schema, expressions, output_schema.types)

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,)

    def step(self, state: None, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        (delta,) = inputs
        columns = self._expressions.evaluate(delta.columns, len(delta))
        return Step(delta.with_columns(self.schema, columns), frontiers[0])

    def carried(self, below: Schema) -> dict[str, str]:
        return {before: after for after, before in self._expressions.direct(self.schema.names).items()}

    def describe(self) -> dict[str, object]:
        return {"columns": dict(zip(self.schema.names, map(to_text, self._expressions.expressions), strict=True))}
