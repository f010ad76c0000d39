"""Keep the elements whose row satisfies a predicate."""

from __future__ import annotations

from typing import ClassVar

from headwater.expressions.nodes import Expression
from headwater.expressions.text import to_text
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.operators.rows.condition import Condition


class FilterOperator(Operator):
    """σ (Krämer 8.1, Alg. 2): at every instant the rows for which the predicate is true; not those where it is NULL.

        in   a |----------)        b |-----)
        out  a |----------)                       (b fails)

    Stateless: weights and intervals pass, and so does the frontier.
    """

    name: ClassVar[str] = "filter"

    def __init__(self, schema: Schema, predicate: Expression) -> None:
        self.schema, self.predicate = schema, predicate
        self._condition = Condition(schema, predicate)

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,)

    def step(self, state: None, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        (delta,) = inputs
        if len(delta) == 0:
            return Step(delta, frontiers[0])
        return Step(delta.filter(self._condition.holds(delta.columns, len(delta))), frontiers[0])

    def describe(self) -> dict[str, object]:
        return {"predicate": to_text(self.predicate)}
