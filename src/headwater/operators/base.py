"""What every operator is: a step function over explicit state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import Any, ClassVar, NamedTuple

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.operators.sight import Sight
from headwater.state.manifest import Route, route_by_key
from headwater.state.retyped import KeptTypes
from headwater.state.store import Store

EVERY_COLUMN = ("*",)
"""For ``routing``: by all columns of that input, whatever their names."""


Routing = tuple[tuple[str, ...] | None, ...]
"""For each input, the columns by whose hash it may be sharded; () = one shard for all, None = anyhow."""


Inputs = tuple[Delta, ...]
"""What a tick brings on each input."""
Frontiers = tuple[int, ...]
"""How far each input is final."""


class Step(NamedTuple):
    """What one tick brought: the output delta, and the output frontier (nothing before it changes any more)."""

    delta: Delta
    frontier: int


class Buffered(NamedTuple):
    """How much an operator keeps."""

    rows: int
    bytes: int


Portions = Generator[Delta, None, Step]
"""What a step brings, portion by portion; its end has the rest and the frontier."""


def at_once(schema: Schema, portions: Portions) -> Step:
    """All portions as one step."""
    ahead: list[Delta] = []
    while True:
        try:
            ahead.append(next(portions))
        except StopIteration as end:
            out = Delta.concat(schema, [*ahead, end.value.delta])
            return Step(out.consolidate() if (out.weight < 0).any() else out, end.value.frontier)


class Operator(ABC):
    """Given state, the tick's input deltas and the inputs' new frontiers, return the output and update the state.

    No threads, no clock, no Spark: the same object runs in process and inside a task. Inputs are legal at their old
    frontier L: a row with start < L has end >= L, and the weights of such rows cancel per (row, start). Every output is
    legal at the operator's own frontier. With frontier INFINITY everything is final and the state empties.

    ``reached`` is how far time has come in the streams that feed it, wherever their rows went: speculation shows what it
    knows up to there, and what waits or forgets goes by it.
    """

    name: ClassVar[str]
    arity: int = 1

    schema: Schema
    """The output's payload columns."""

    def new_state(self, store: Store) -> Any:
        """Fresh state that keeps its segments in the store; None for a stateless operator."""
        return None

    def routing(self) -> Routing:
        """For each input, the columns by whose hash it may be sharded; () = one shard for all, None = anyhow."""
        return ((),) * self.arity

    @abstractmethod
    def step(self, state: Any, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step: ...

    @property
    def holds_back(self) -> bool:
        """Does it keep rows whose start is final until their end is? Then more is known than its frontier says."""
        return False

    @property
    def settles(self) -> bool:
        """Does a row of its output go out when its start is final, and get its end, if that was open, when it is final?"""
        return False

    def portions(
        self, state: Any, inputs: Inputs, frontiers: Frontiers, size: int, reached: int = BEGINNING
    ) -> Portions:
        """As ``step``; but where output may be much larger than input, most of it goes ahead, about ``size`` rows at a time.

        The state is up to date when it has come to its end. A portion alone need not be legal.
        """
        yield from ()
        return self.step(state, inputs, frontiers, reached)

    def put_aside(self, state: Any) -> int:
        """The bytes that a step which is not over has put aside, besides the portions that went ahead."""
        return 0

    def sight(self, port: int) -> Sight | None:
        """What it sees of an input, where that is less than its rows; None: it needs them as they are."""
        return None

    def busiest_key(self, inputs: tuple[Delta, ...]) -> str:
        """Of an operator with portions, the key of which it has got most rows, as a condition: for error texts."""
        return ""

    def describe(self) -> dict[str, object]:
        """Fields for EXPLAIN, metrics and error texts."""
        return {}

    def counts(self, state: Any) -> dict[str, int]:
        """What it has counted since it began, for metrics: numbers that may be added up over the shards."""
        return {}

    def adopt(self, state: Any, before: Operator, store: Store) -> tuple[Any, Delta]:
        """Go on with the state of the strong form of this operator, ``before``: that state as this form keeps it, and what
        the strong form had held back, which shows from now on. Here for operators whose forms keep the same state.
        """
        return state, Delta.empty(self.schema)

    # -- keeping ----------------------------------------------------------------------------------------------------

    def save(self, state: Any) -> dict[str, Any]:
        """All of the state as JSON can hold it: numbers, and the names of segments; {} for a stateless operator."""
        return {} if state is None else state.to_manifest()

    def restore(self, manifest: dict[str, Any], store: Store) -> Any:
        """The state that ``save`` described, with its segments in the store. None of them is opened yet."""
        state = self.new_state(store)
        if state is not None and manifest:
            state.from_manifest(manifest)
        return state

    def kept_types(self, inputs: Sequence[Schema]) -> KeptTypes:
        """The types of the values that its state keeps as they are, not as hashes or words, over such inputs."""
        return {("", f"column.{i}"): type_ for schema in inputs[:1] for i, type_ in enumerate(schema.types)}

    def goes_on_from(self, before: Operator) -> bool:
        """Is a state of the same operator over narrower types one of this one, but for the types of what it keeps?"""
        return True

    def reshard(self, states: Sequence[Any], shards: int, store: Store) -> list[Any]:
        """The states of all shards, of one tick, as those of another number of shards.

        A row belongs to the shard of its routing columns (``shard_of``). Without any, all is in shard 0.
        """
        new = [self.new_state(store) for _ in range(shards)]
        if not any(self.routing()):
            return [states[0], *new[1:]]
        if new[0] is not None:
            self.hand_over(states, new, self.routing())
        return new

    def hand_over(self, old: Sequence[Any], new: Sequence[Any], routing: Routing) -> None:
        """What the old states keep goes to the new ones, by these routing columns of the inputs."""
        type(old[0]).hand_over(old, new, self.route(old, routing, len(new)))
        for state in new:
            self.count_again(state)

    def route(self, old: Sequence[Any], routing: Routing, shards: int) -> Route:
        """Where a row goes that the old states keep."""
        return route_by_key(shards)

    def count_again(self, state: Any) -> None:
        """Fill in what a state knows by counting its rows, when they were handed over to it."""
        return

    def buffered(self, state: Any) -> Buffered:
        """Rows and bytes of the state; truthful, cheap."""
        return Buffered(0, 0) if state is None else Buffered(state.rows, state.bytes)
