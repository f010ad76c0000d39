"""What a relation holds now, kept for queries that start later; and the node through which such a query reads it."""
#  relation      a |----)     b |---------      a |------
#  kept          a                              a, b          when the frontier is here ^
#  a newcomer                                   a, b, and from then on what everybody sees

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Frontiers, Inputs, Operator, Routing, Step
from headwater.operators.tables.known_rows import KnownRows, payload_of
from headwater.state.columns import Columns
from headwater.state.manifest import Scalars, State
from headwater.state.store import Store


class Standing(ABC):
    """An operator that knows the rows of its output that hold, or may still change, or begin later."""

    @abstractmethod
    def standing(self, state: Any) -> Delta:
        """Those rows, as inserts. O(state): once for each tick in which a query begins."""

    def remembered(self, state: Any) -> Delta:
        """What would make an empty state this one, if it came at once and time went on to its frontier. O(state)."""
        return self.standing(state)


class StandingState(State):
    """The rows that have not ended before the frontier."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    layouts = ("known",)

    def __init__(self, store: Store, schema: Schema) -> None:
        self.frontier = BEGINNING
        payload = Columns.numbered(pa.array([], f.type) for f in schema)
        self.known = KnownRows(store, scalars=payload)

    @property
    def rows(self) -> int:
        return self.known.rows


class StandingRowsOperator(Operator, Standing):
    """Transparent. State: every row of the stream that has not ended, with its values; also when the stream is over."""

    name = "standing rows"

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def routing(self) -> Routing:
        return (self.schema.names,)

    def new_state(self, store: Store) -> StandingState:
        return StandingState(store, self.schema)

    def step(self, state: StandingState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta = inputs[0].consolidate()
        state.frontier = frontier = max(frontiers[0], state.frontier)
        touched = state.known.touch(delta, frontier)
        count = touched.rows.counts[0] + touched.rows.weight
        lives = (count != 0) & (touched.rows.end >= frontier)
        state.known.keep(touched, [count], lives, payload_of(touched, delta))
        return Step(inputs[0], frontier)

    def standing(self, state: StandingState) -> Delta:
        key, (offsets, columns, payload) = state.known.groups.live()
        owner = np.repeat(np.arange(len(key.low)), np.diff(offsets))
        times = (columns.array(name) for name in ("start", "end", "count"))
        return Delta(self.schema, payload.take(owner).payload(len(self.schema)), *times)


class HandedOverState(State):
    """Nothing but that the rows were handed over."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    rows = 0

    def __init__(self) -> None:
        self.frontier = BEGINNING


class HandOverOperator(Operator):
    """A relation as a query reads it that begins while the relation holds rows.

    In its first tick whoever runs it puts the rows that stand before it (``Standing.standing``); legal, since nobody above
    has heard of any frontier. From then on it is transparent.
    """

    name = "hand over"

    def __init__(self, schema: Schema, by: tuple[str, ...]) -> None:
        self.schema, self._by = schema, by

    def routing(self) -> Routing:
        return (self._by,)

    def new_state(self, store: Store) -> HandedOverState:
        return HandedOverState()

    def step(self, state: HandedOverState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        state.frontier = max(state.frontier, frontiers[0])
        return Step(inputs[0], frontiers[0])
