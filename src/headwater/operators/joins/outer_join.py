"""Joins that ask whether a row has a match at all: semi, anti, and the outer joins that pad what has none with NULL.

They are built of an inner join and a count per row: let n1 be how often a row is in the one input at an instant, and n2 how
often it is in a matching pair. A match depends on the row's values alone, so all n1 copies have one or none has.
"""
#  left      a |-----------)
#  right          a |---)
#  semi           a |---)
#  anti      a |----)   |--)
#  outer   a,- |----|aa-|--) a,-

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from attrs import evolve

from headwater.expressions.nodes import Expression
from headwater.expressions.text import to_text
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Frontiers, Inputs, Operator, Portions, Routing, Step, at_once
from headwater.operators.joins.join import BLOCK, JoinOperator
from headwater.operators.joins.pile import Pile, covered
from headwater.operators.sight import Sight, put_together
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.state.manifest import State
from headwater.state.retyped import KeptTypes
from headwater.state.store import Store

Keys = Sequence[tuple[str, str]]

_TO_COUNT = 4
"""Rows take so many times their bytes while they are sorted and counted."""


class PartStates(State):
    """The states of the operators that another one is built of."""

    layouts = ("parts",)

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.aside = 0
        """Bytes of pairs that wait for the end of the step, in which they are counted."""

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


class _MatchingOperator(Operator):
    """What semi, anti and outer joins have in common."""

    arity = 2

    def __init__(self, left: Schema, right: Schema, keys: Keys, residual: Expression | None, kind: str) -> None:
        self._inputs, self.kind, self._residual = (left, right), kind, residual
        self._keys = tuple(a for a, _ in keys), tuple(b for _, b in keys)
        self._parts: list[Operator] = []
        self._join: JoinOperator

    @property
    def holds_back(self) -> bool:
        return any(part.holds_back for part in self._parts)

    def describe(self) -> dict[str, object]:
        keys = " AND ".join(f"{a} = {b}" for a, b in zip(*self._keys, strict=True))
        return {
            "kind": self.kind,
            "keys": keys,
            "residual": to_text(self._residual) if self._residual is not None else None,
        }

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return self._keys

    def spread(self, routes: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
        """Columns of the other side may be NULL."""
        return {"left": routes[:1], "right": routes[1:], "full": ()}.get(self.kind, routes[:1])

    def step(self, state: PartStates, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        return at_once(self.schema, self.portions(state, inputs, frontiers, BLOCK, reached))

    def put_aside(self, state: PartStates) -> int:
        return _TO_COUNT * state.aside

    def _pile(self, count: CountSweepOperator) -> Pile:
        """For the rows that are in pairs. In how many does not matter where none is ever taken back."""
        rows = Sight(frozenset(count.schema.names))
        return Pile(count.schema, partial(put_together, sight=rows) if self._join.retracts else covered)

    def busiest_key(self, inputs: tuple[Delta, ...]) -> str:
        return self._join.busiest_key(inputs)

    def hand_over(self, old: Sequence[PartStates], new: Sequence[PartStates], routing: Routing) -> None:
        for i, part in enumerate(self._parts):
            side = self._side_of(part)
            its_routing = routing if side is None else (routing[side],) * part.arity
            part.hand_over([s.parts[i] for s in old], [s.parts[i] for s in new], its_routing)

    @abstractmethod
    def _side_of(self, part: Operator) -> int | None:
        """The input whose rows the part counts; None for the join of both."""

    def new_state(self, store: Store) -> PartStates:
        return PartStates(*(part.new_state(store) for part in self._parts))

    def kept_types(self, inputs: Sequence[Schema]) -> KeptTypes:
        parts = [(i, part.kept_types(inputs)) for i, part in enumerate(self._parts)]
        return {(f"parts.{i}.{layout}", name): type_ for i, its in parts for (layout, name), type_ in its.items()}

    def adopt(self, state: PartStates, before: Operator, store: Store) -> tuple[PartStates, Delta]:
        """Part by part; what a part had held back is shown as that part's answers are."""
        assert isinstance(before, _MatchingOperator)
        parts = zip(self._parts, state.parts, before._parts, strict=True)
        states, held = zip(*(part.adopt(its, was, store) for part, its, was in parts), strict=True)
        shown = [self._shown(part, delta) for part, delta in zip(self._parts, held, strict=True) if len(delta)]
        return PartStates(*states), Delta.concat(self.schema, shown)

    @abstractmethod
    def _shown(self, part: Operator, delta: Delta) -> Delta:
        """What a part that holds back has to say, as rows of the output."""


class SemiJoinOperator(_MatchingOperator):
    """⋉ and ▷ (Krämer 8.11, 8.16) as SQL reads EXISTS and NOT EXISTS: left rows that have a match, or have none, as often
    as they occur on the left. A NULL key matches nothing, so the row stays in an anti-join.

    Without a residual the match is by key, and the join is with the distinct keys of the right: at most one match an
    instant, and a semi-join is just that. The distinct keys are shown open-ended: held back, a key would come
    out when it has no row any more, which on a busy stream is never.
    """

    name = "semi join"

    def __init__(
        self,
        left: Schema,
        right: Schema,
        keys: Keys,
        residual: Expression | None = None,
        *,
        kind: str = "semi",
        speculative: bool = False,
        hold: bool = True,
        revisable: bool = True,
    ) -> None:
        super().__init__(left, right, keys, residual, kind)
        self.schema = left
        self._distinct: CountSweepOperator | None = None
        if keys and residual is None:
            right = right.select(dict.fromkeys(self._keys[1]))
            self._distinct = CountSweepOperator(right, "distinct", speculative=speculative, hold=False)
        revised = revisable or self._distinct is not None
        self._join = JoinOperator(left, right, keys, residual, revisable=revised, left_only=True)
        self._count: CountSweepOperator | None = None
        if kind == "anti" or self._distinct is None:
            count = "semi" if kind == "semi" else "strict difference"
            self._count = CountSweepOperator(left, count, speculative=speculative, hold=hold)
        self._parts = [part for part in (self._distinct, self._join, self._count) if part is not None]
        self.retracts = self._count is None or speculative or not hold
        """Can the output contain negative weights?"""

    @property
    def settles(self) -> bool:
        return self._count is not None and self._count.settles

    def _side_of(self, part: Operator) -> int | None:
        return None if part is self._join else int(part is self._distinct)

    def _shown(self, part: Operator, delta: Delta) -> Delta:
        assert part is self._count, "the others hold nothing back"
        return delta

    def portions(
        self, state: PartStates, inputs: Inputs, frontiers: Frontiers, size: int, reached: int = BEGINNING
    ) -> Portions:
        left, right = inputs
        reached = max(reached, *(delta.largest_start() for delta in inputs))  # for parts that see one input only
        states = dict(zip(self._parts, state.parts, strict=True))
        if self._distinct is not None:
            names = self._distinct.schema.names
            keys = right.with_columns(self._distinct.schema, [right.column(n) for n in names])
            right = self._distinct.step(states[self._distinct], (keys,), frontiers[1:], reached).delta
        pairs = self._join.portions(states[self._join], (left, right), frontiers, size)
        if self._count is None:
            return (yield from pairs)
        piled = self._pile(self._count)
        while True:
            try:
                piled.add_portion(next(pairs))
            except StopIteration as end:
                rest, frontier = end.value
                break
            state.aside = piled.bytes
            yield Delta.empty(self.schema)  # whoever has asked may find that it becomes too much
        state.aside = 0
        return self._count.step(states[self._count], (left, piled.with_rest(rest)), (frontiers[0], frontier), reached)


class OuterJoinOperator(_MatchingOperator):
    """Left, right and full outer join: the matching pairs, and each row of an outer side padded with NULL while it has none.

    State: that of the inner join, and per distinct row of an outer side its two counts.
    """

    name = "outer join"

    def __init__(
        self,
        left: Schema,
        right: Schema,
        keys: Keys,
        residual: Expression | None = None,
        *,
        kind: str = "left",
        speculative: bool = False,
        hold: bool = True,
        revisable: bool = True,
    ) -> None:
        super().__init__(left, right, keys, residual, kind)
        outer = {"left": (0,), "right": (1,), "full": (0, 1)}[kind]
        fields = [
            evolve(field, nullable=field.nullable or 1 - side in outer)
            for side, schema in enumerate(self._inputs)
            for field in schema
        ]
        self.schema = Schema(tuple(fields))
        self._join = JoinOperator(left, right, keys, residual, revisable=revisable)
        self._counts = {
            side: CountSweepOperator(self._inputs[side], "strict difference", speculative=speculative, hold=hold)
            for side in outer
        }
        self._parts = [self._join, *self._counts.values()]
        self._settles = not (revisable or speculative)
        self.retracts = not self._settles or not hold
        """Can the output contain negative weights? The pairs are emitted at once, and with revisable inputs revised."""

    @property
    def settles(self) -> bool:
        return self._settles

    def _side_of(self, part: Operator) -> int | None:
        return next((side for side, count in self._counts.items() if count is part), None)

    def _shown(self, part: Operator, delta: Delta) -> Delta:
        side = self._side_of(part)
        assert side is not None, "the join holds nothing back"
        return self._padded(side, delta)

    def portions(
        self, state: PartStates, inputs: Inputs, frontiers: Frontiers, size: int, reached: int = BEGINNING
    ) -> Portions:
        reached = max(reached, *(delta.largest_start() for delta in inputs))  # for parts that see one input only
        join_state, *count_states = state.parts
        pairs = self._join.portions(join_state, inputs, frontiers, size)
        piled = {side: self._pile(count) for side, count in self._counts.items()}
        while True:
            try:
                portion = next(pairs)
            except StopIteration as end:
                rest, frontier = end.value
                break
            for side, pile in piled.items():
                pile.add_portion(self._of_side(side, portion))
            state.aside = sum(pile.bytes for pile in piled.values())
            yield portion
        state.aside = 0
        results, joined = [rest], frontier
        for (side, count), count_state in zip(self._counts.items(), count_states, strict=True):
            matched = piled[side].with_rest(self._of_side(side, rest))
            alone = count.step(count_state, (inputs[side], matched), (frontiers[side], joined), reached)
            results.append(self._padded(side, alone.delta))
            frontier = min(frontier, alone.frontier)
        return Step(Delta.concat(self.schema, results), frontier)

    def _of_side(self, side: int, pairs: Delta) -> Delta:
        """The rows of one input that are in the pairs."""
        split = len(self._inputs[0])
        columns = pairs.columns[split:] if side else pairs.columns[:split]
        return pairs.with_columns(self._inputs[side], columns)

    def _padded(self, side: int, delta: Delta) -> Delta:
        nulls = [pa.nulls(len(delta), type_) for type_ in self._inputs[1 - side].types]
        columns = [*nulls, *delta.columns] if side else [*delta.columns, *nulls]
        return delta.with_columns(self.schema, columns)
