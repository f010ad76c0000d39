"""For a query that begins while its stream is running: changes of rows that came before it are none of its business."""
#  stream   a |--------)   then a ends earlier      b |-----)   then b ends earlier
#                      ^ the query begins
#  passes                                           b |-----)   and the change of b

from __future__ import annotations

from typing import ClassVar

import numpy as np

from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Operator, Step
from headwater.operators.known_rows import Intervals, KnownRows, first_of_each, sums
from headwater.state.manifest import Scalars, State
from headwater.state.store import Store


class SinceState(State):
    """The rows that have passed and may still change."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    layouts = ("passed",)

    def __init__(self, store: Store) -> None:
        self.passed = KnownRows(store)
        self.frontier = BEGINNING

    @property
    def rows(self) -> int:
        return self.passed.rows


class SinceOperator(Operator):
    """The stream as one sees it who has just come: a row that goes must have come before his eyes.

    Of a change of an unseen row neither half passes: what goes is not known, and as many rows of the same payload and
    start that come with it take its place, those that end first. Transparent to everything else. State: every row that
    has passed and whose end has not, by payload.
    """

    name = "since"

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self.schema.names,)

    def new_state(self, store: Store) -> SinceState:
        return SinceState(store)

    def step(self, state: SinceState, inputs: tuple[Delta, ...], frontiers: tuple[int, ...]) -> Step:
        delta = inputs[0].consolidate()
        frontier = max(frontiers[0], state.frontier)
        state.frontier = frontier
        touched = state.passed.touch(delta, frontier)
        rows = touched.rows
        weight = _seen_only(rows)
        count = rows.counts[0] + weight
        state.passed.keep(touched, [count], (count > 0) & (rows.end >= frontier))
        mine_only = rows.place >= 0
        passed = np.zeros(len(delta), np.int64)
        passed[rows.place[mine_only]] = weight[mine_only]
        if frontier == INFINITY:
            state.passed.clear()
        return Step(delta.with_weight(passed).filter(passed != 0), frontier)


def _seen_only(rows: Intervals) -> Int64Array:
    """The weights without what goes unseen, and without what comes in its place."""
    comes, goes = np.maximum(rows.weight, 0), np.maximum(-rows.weight, 0)
    unseen = np.maximum(goes - rows.counts[0], 0)
    group, groups = rows.groups()
    replaced = first_of_each(group, comes, sums(group, unseen, groups))
    return comes - replaced - (goes - unseen)
