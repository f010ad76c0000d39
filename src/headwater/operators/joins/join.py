"""Pair the rows of two inputs that match, for as long as both are valid."""
#  left    a |-----------)      b |----)
#  right        a |-----------)
#  out         aa |------)

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.expressions.nodes import Expression
from headwater.expressions.text import to_text
from headwater.kernels.directory import build_directory, find_first
from headwater.kernels.join import match_overlapping
from headwater.kernels.sort import sort_by_key
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity, identify, is_recoverable
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Frontiers, Inputs, Operator, Portions, Step, at_once
from headwater.operators.rows.condition import Condition
from headwater.state.buckets import ExpiryBuckets
from headwater.state.columns import Columns, concat_column, once, take_column
from headwater.state.manifest import State
from headwater.state.retyped import KeptTypes
from headwater.state.store import Segment, Store

BLOCK = 1 << 19  # pairs looked at together: bounds the memory of products and hot keys
_LEAST_ROOM = 1024


class JoinState(State):
    """The rows of each side that may still meet a row of the other."""

    layouts = ("sides",)

    def __init__(self, left: ExpiryBuckets, right: ExpiryBuckets) -> None:
        self.sides = left, right

    @property
    def rows(self) -> int:
        return sum(side.rows for side in self.sides)


class _Rows(NamedTuple):
    """Rows to be paired: their columns, and key and times sorted by key; ``order`` leads from there to the columns."""

    columns: Columns
    by_key: Columns
    order: Int64Array | None

    @classmethod
    def kept(cls, segment: Segment) -> _Rows:
        return cls(segment.columns, segment.columns, None)

    def places(self, rows: Int64Array) -> Int64Array:
        return rows if self.order is None else self.order[rows]


class _Arrived(NamedTuple):
    """The tick's rows of one input that can match at all."""

    delta: Delta
    key: Identity
    order: Int64Array  # sorts by key
    rows: _Rows  # the columns are those that the state will keep


class _Pairs(NamedTuple):
    """Pairs of an arrived row and a row of one segment, and when both are valid."""

    columns: Columns
    query: Int64Array
    row: Int64Array
    start: Int64Array
    end: Int64Array

    def filter(self, mask: BoolArray) -> _Pairs:
        return _Pairs(self.columns, *(array[mask] for array in self[1:]))


class JoinOperator(Operator):
    """⋈ (Krämer 8.10, CEDR 4.3): at every instant the pairs whose keys are equal and for which the residual is true.

    out = dL x R' + L x dR on weighted sets: weights multiply, intervals intersect, and a retraction needs no path of its
    own. NULL keys match nothing. No keys: the product, or any theta-join. The residual sees columns ``"l.x"``, ``"r.x"``.
    ``left_only``: of a pair only the left row is shown. Results are emitted at once, in strong and in speculative plans
    alike; with revisable inputs they may be taken back.

    State: each side's rows that end after the other side's frontier, in buckets by end (CEDR C.4, errata 8 and 9).
    """

    name = "join"
    arity = 2

    def __init__(
        self,
        left: Schema,
        right: Schema,
        keys: Sequence[tuple[str, str]],
        residual: Expression | None = None,
        *,
        speculative: bool = False,  # makes no difference here; all joins are made alike
        revisable: bool = True,
        left_only: bool = False,
    ) -> None:
        self._inputs = left, right
        self._shown = [(of, i) for of in ((0,) if left_only else (0, 1)) for i in range(len(self._inputs[of]))]
        self.schema = Schema(tuple(self._inputs[of].fields[i] for of, i in self._shown))
        self._keys = tuple(a for a, _ in keys), tuple(b for _, b in keys)
        self._predicate, self._revisable = residual, revisable
        types = [tuple(side.field(n).type for n in names) for side, names in zip(self._inputs, self._keys, strict=True)]
        assert all(map(_comparable, *types)), "keys are cast to one type before the join"
        # An exact key is not stored: where it matched, the other side has the same value.
        exact = len(keys) == 1 and all(is_recoverable(t) and not pa.types.is_floating(t[0]) for t in types)
        self._exact = tuple(side.index(n[0]) if exact else -1 for side, n in zip(self._inputs, self._keys, strict=True))
        self._residual = self._bind(residual) if residual is not None else None
        needed = {*self._shown, *(self._residual[1] if self._residual is not None else ())}
        # The payload columns that the state keeps.
        self._stored = tuple(
            [i for of, i in sorted(needed) if of == side and i != self._exact[side]] for side in (0, 1)
        )

    @property
    def retracts(self) -> bool:
        """Can the output contain negative weights? Then a strong plan needs an align behind it."""
        return self._revisable

    def describe(self) -> dict[str, object]:
        keys = " AND ".join(f"{a} = {b}" for a, b in zip(*self._keys, strict=True))
        return {"keys": keys, "residual": to_text(self._predicate) if self._predicate is not None else None}

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return self._keys

    def spread(self, routes: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
        return routes

    def new_state(self, store: Store) -> JoinState:
        left, right = (self._new_side(store, side) for side in (0, 1))
        return JoinState(left, right)

    def _new_side(self, store: Store, side: int) -> ExpiryBuckets:
        return ExpiryBuckets(store, constants=("lifetime", "weight"), identity=self._identity(side))

    def _identity(self, side: int) -> list[str] | None:
        """By which columns rows take each other away; None: nothing is ever taken away."""
        return ["lifetime", *(f"column.{i}" for i in self._stored[side])] if self._revisable else None

    def kept_types(self, inputs: Sequence[Schema]) -> KeptTypes:
        sides = enumerate(self._inputs)
        return {(f"sides.{of}.", f"column.{i}"): type_ for of, side in sides for i, type_ in enumerate(side.types)}

    def adopt(self, state: JoinState, before: Operator, store: Store) -> tuple[JoinState, Delta]:
        """Both forms keep the same rows, but now some may be taken away again."""
        for side, rows in enumerate(state.sides):
            rows.cancel_by(self._identity(side))
        return super().adopt(state, before, store)

    def step(self, state: JoinState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        return at_once(self.schema, self.portions(state, inputs, frontiers, BLOCK))

    def portions(
        self, state: JoinState, inputs: Inputs, frontiers: Frontiers, size: int, reached: int = BEGINNING
    ) -> Portions:
        left, right = (self._arrive(side, delta) for side, delta in enumerate(inputs))
        kept_left, kept_right = (list(map(_Rows.kept, side.segments())) for side in state.sides)
        waiting: list[Delta] = []
        for result in chain(self._match(0, left, [*kept_right, right.rows]), self._match(1, right, kept_left)):
            if sum(map(len, waiting)) >= size:
                yield Delta.concat(self.schema, waiting)
                waiting = []
            waiting.append(result)
        # A row is needed until the other side has passed its end. Rows of either sign are treated alike: else a row
        # that was forgotten would come back as a negative one.
        for side, arrived in enumerate((left, right)):
            state.sides[side].expire(frontiers[1 - side])
            state.sides[side].append(arrived.key, arrived.delta.end, arrived.rows.columns, order=arrived.order)
        return Step(Delta.concat(self.schema, waiting), min(frontiers))

    def busiest_key(self, inputs: tuple[Delta, ...]) -> str:
        """In the larger of the inputs; nothing where all rows are paired with all."""
        side = int(len(inputs[1]) > len(inputs[0]))
        if not self._keys[side]:
            return ""
        low = inputs[side].key(self._keys[side]).low
        _, first, counts = np.unique(low, return_index=True, return_counts=True)
        row = inputs[side].take(first[[counts.argmax()]])
        return " AND ".join(f"{name} = {row.column(name)[0].as_py()!r}" for name in self._keys[side])

    # -- arriving rows ----------------------------------------------------------------------------------------------

    def _arrive(self, side: int, delta: Delta) -> _Arrived:
        columns = [delta.column(n) for n in self._keys[side]]
        valid = [c.is_valid() for c in columns if c.null_count]
        if valid:
            mask = np.logical_and.reduce([v.to_numpy(zero_copy_only=False) for v in valid])
            delta = delta.filter(mask)
            columns = [delta.column(n) for n in self._keys[side]]
        key = identify(columns, len(delta))
        order = sort_by_key(*key) if columns else np.arange(len(delta))
        lifetime = delta.end - delta.start
        ordered = key.take(order)
        by_key = {"directory": build_directory(ordered.low), "expiry": delta.end[order], "lifetime": lifetime[order]}
        kept = Columns({"lifetime": lifetime, "weight": delta.weight})
        kept |= {f"column.{i}": delta.columns[i] for i in self._stored[side]}
        return _Arrived(delta, key, order, _Rows(kept, Columns.under(ordered, by_key), order))

    # -- pairs ------------------------------------------------------------------------------------------------------

    def _match(self, side: int, arrived: _Arrived, others: Iterable[_Rows]) -> Iterator[Delta]:
        """The results of the arrived rows of one side with rows of the other, in blocks of bounded size."""
        block: list[_Pairs] = []
        size = 0
        for pairs in (pairs for other in others for pairs in _overlapping(arrived.rows, other)):
            block.append(pairs)
            size += len(pairs.row)
            if size >= BLOCK:
                yield self._results(side, arrived, block)
                block, size = [], 0
        if block:
            yield self._results(side, arrived, block)

    def _results(self, side: int, arrived: _Arrived, block: list[_Pairs]) -> Delta:
        if self._residual is not None:
            block = self._filter(side, arrived, block)
        query = np.concatenate([pairs.query for pairs in block])
        columns = [self._gather(side, arrived, block, query, of, i) for of, i in self._shown]
        start, end = (np.concatenate([getattr(pairs, n) for pairs in block]) for n in ("start", "end"))
        weight = np.concatenate([take_column(pairs.columns["weight"], pairs.row) for pairs in block])
        return Delta(self.schema, columns, start, end, arrived.delta.weight[query] * weight)

    def _gather(
        self, side: int, arrived: _Arrived, block: list[_Pairs], query: Int64Array, of: int, i: int
    ) -> pa.Array:
        """Column i of input ``of``, for each pair."""
        if of == side:
            return arrived.delta.columns[i].take(pa.array(query))
        if i == self._exact[of]:
            return arrived.delta.columns[self._exact[side]].take(pa.array(query)).cast(self._inputs[of].types[i])
        return concat_column([take_column(pairs.columns[f"column.{i}"], pairs.row) for pairs in block])

    # -- residual ---------------------------------------------------------------------------------------------------

    def _bind(self, residual: Expression) -> tuple[Condition, list[tuple[int, int]]]:
        """The residual over only those columns that it reads, and which these are."""
        read = set(residual.columns)
        fields: list[Field] = []
        places: list[tuple[int, int]] = []
        for of, side in enumerate(self._inputs):
            for i, field in enumerate(side):
                name = f"{'lr'[of]}.{field.name}"
                if name in read:
                    fields.append(Field(name, field.type))
                    places.append((of, i))
        return Condition(Schema(tuple(fields)), residual), places

    def _filter(self, side: int, arrived: _Arrived, block: list[_Pairs]) -> list[_Pairs]:
        """The pairs for which the residual is true (not NULL)."""
        assert self._residual is not None
        condition, places = self._residual
        query = np.concatenate([pairs.query for pairs in block])
        columns = [self._gather(side, arrived, block, query, of, i) for of, i in places]
        mask = condition.holds(columns, len(query))
        if mask.all():
            return block
        cuts = np.cumsum([len(pairs.row) for pairs in block])[:-1]
        return [pairs.filter(part) for pairs, part in zip(block, np.split(mask, cuts), strict=True)]


def _overlapping(arrived: _Rows, other: _Rows) -> Iterator[_Pairs]:
    """Pairs of equal keys whose intervals meet, at most a block at a time; the side with fewer rows asks."""
    swapped = len(other.by_key.key.low) < len(arrived.by_key.key.low)
    asking, asked = (other, arrived) if swapped else (arrived, other)
    questions, answers = asking.by_key, asked.by_key
    q_key, key = questions.key, answers.key
    which, first = find_first(q_key.low, key.low, answers["directory"])
    q_end = np.ascontiguousarray(questions["expiry"])
    q_start = q_end - questions["lifetime"]
    # What is constant in a segment must not be spread out: that would cost the size of the state.
    end, lifetime = (once(answers[name]) for name in ("expiry", "lifetime"))
    room = min(max(_LEAST_ROOM, 2 * len(which)), BLOCK)
    at, offset = 0, 0
    while at < len(which):
        asks, row, start, stop = (np.empty(room, np.int64) for _ in range(4))
        at, offset, found = match_overlapping(
            which, first, *q_key, q_start, q_end, *key, end, lifetime, at, offset, asks, row, start, stop
        )
        if found:
            ours, theirs = asking.places(asks[:found]), asked.places(row[:found])
            query, place = (theirs, ours) if swapped else (ours, theirs)
            yield _Pairs(other.columns, query, place, start[:found], stop[:found])


def _comparable(a: pa.DataType, b: pa.DataType) -> bool:
    """Do equal values of the two types have equal hashes?"""
    alike = (pa.types.is_integer, pa.types.is_floating)
    return a == b or any(test(a) and test(b) for test in alike)
