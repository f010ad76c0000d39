"""What every operator is: a step function over explicit state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.state.store import Store

EVERY_COLUMN = ("*",)
"""For ``routing``: by all columns of that input, whatever their names."""


class Step(NamedTuple):
    """What one tick brought: the output delta, and the output frontier (nothing before it changes any more)."""

    delta: Delta
    frontier: int


class Buffered(NamedTuple):
    """How much an operator keeps."""

    rows: int
    bytes: int


class Operator(ABC):
    """Given state, the tick's input deltas and the inputs' new frontiers, return the output and update the state.

    No threads, no clock, no Spark: the same object runs in process and inside a task. Inputs are legal at their old
    frontier L: a row with start < L has end >= L, and the weights of such rows cancel per (row, start). Every output is
    legal at the operator's own frontier. With frontier INFINITY everything is final and the state empties.
    """

    name: ClassVar[str]
    arity: ClassVar[int] = 1

    schema: Schema
    """The output's payload columns."""

    def new_state(self, store: Store) -> Any:
        """Fresh state that keeps its segments in the store; None for a stateless operator."""
        return None

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        """For each input, the columns by whose hash it may be sharded; () = one shard for all, None = anyhow."""
        return ((),) * self.arity

    @abstractmethod
    def step(self, state: Any, inputs: tuple[Delta, ...], frontiers: tuple[int, ...]) -> Step: ...

    def describe(self) -> dict[str, object]:
        """Fields for EXPLAIN, metrics and error texts."""
        return {}

    def buffered(self, state: Any) -> Buffered:
        """Rows and bytes of the state; truthful, cheap."""
        return Buffered(0, 0) if state is None else Buffered(state.rows, state.bytes)
