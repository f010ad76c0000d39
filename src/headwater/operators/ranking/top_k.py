"""ORDER BY … LIMIT and ROW_NUMBER: at every instant the first rows of each partition, or all rows with their numbers."""
#  in            5 |-----------)
#                     3 |---)       4 |------ …
#  LIMIT 1       5 |--)     |--)    4 |------ …      ORDER BY x: while 3 is valid it comes first
#                     3 |---)
#  ROW_NUMBER  5,1 |--|5,2  |5,1)  4,1|------ …
#                   3,1 |---)

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from headwater.kernels.segments import find_sorted
from headwater.model.arrays import BoolArray
from headwater.model.delta import Delta
from headwater.model.identity import Identity
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.operators.ranking.sort_order import SortColumn
from headwater.operators.ranking.top_rows import Shown, TopRows
from headwater.operators.sweeps.row_endpoints import PendingEndpoints, RecentEndpoints, RowEndpoints
from headwater.state.columns import Columns
from headwater.state.hold_counts import HoldCounts
from headwater.state.manifest import Route, Scalars, State, agreed
from headwater.state.news import WaitingNews
from headwater.state.store import Store

_MOST_ROWS = 1 << 62  # a limit beyond this is none


class TopKState(State):
    """The first rows of each partition at the frontier, and the endpoints still to come."""

    scalars: ClassVar[Scalars] = {"frontier": min, "tau": max}
    layouts = ("first", "endpoints", "recent", "holds", "unshown")

    def __init__(self, store: Store, first: TopRows, *, speculative: bool) -> None:
        self.frontier = self.tau = BEGINNING
        self.first = first
        self.endpoints = PendingEndpoints(store)
        self.recent = RecentEndpoints(store) if speculative else None
        self.holds = HoldCounts()
        self.unshown = WaitingNews(store), WaitingNews(store)

    @property
    def rows(self) -> int:
        return self.endpoints.rows + self.first.rows

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        """A shard that had seen rows of later times has shown more: what the others have not is news to their partitions."""
        if old[0].recent is not None:
            agreed([state.frontier for state in old])
        super().hand_over(old, new, route)
        for state in old:
            for i, late in enumerate(state.endpoints.parts_between(state.tau + 1, new[0].tau + 1)):
                WaitingNews.give(late, [s.unshown[i] for s in new], route)

    def take_unshown(self, none: RowEndpoints) -> RowEndpoints:
        parts = (waiting.take_all() for waiting in self.unshown)
        return RowEndpoints.joined(parts, none)

    def clear(self) -> None:
        self.first.clear()
        self.holds = HoldCounts()
        if self.recent is not None:
            self.recent.expire(INFINITY)


class TopKOperator(Operator):
    """Rows number offset + 1 to offset + limit of each partition's order at every instant; ties by the canonical order.

    A row that is valid n times has n numbers. ``rank`` names a column for the number.

    State: one end to come a live row, and the row itself until it ends; of each partition the first rows once more, with
    some to spare (``TopRows``). With n live rows in a partition and d endpoints of it, a tick costs O(d log n + offset +
    limit + sqrt(n * d)), and O(n) when the spare rows have run out. Without a limit all rows are the first ones, nothing
    else is kept, and a tick costs O(n) a touched partition.
    """

    name = "top-k"

    def __init__(
        self,
        schema: Schema,
        order: Sequence[SortColumn],
        limit: int = INFINITY,
        offset: int = 0,
        partition: Sequence[str] = (),
        rank: str | None = None,
        *,
        speculative: bool = False,
        hold: bool = True,
    ) -> None:
        self._input, self._order, self._partition, self._rank = schema, tuple(order), tuple(partition), rank
        number = (Field(rank, pa.int32(), nullable=False),) if rank is not None else ()
        self.schema = Schema(schema.fields + number)
        self._limit, self._offset = limit, offset
        self._window = (offset, offset + limit if limit < _MOST_ROWS - offset else INFINITY)
        self._speculative, self._hold = speculative, hold and not speculative
        (self._none,) = RowEndpoints.of(Delta.empty(schema), self._partition, [(0, 0)])

    def new_state(self, store: Store) -> TopKState:
        order = [(self._input.index(by.column), by) for by in self._order]
        first = TopRows(store, self._input, order, self._window, ranked=self._rank is not None)
        return TopKState(store, first, speculative=self._speculative)

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self._partition,)

    def describe(self) -> dict[str, object]:
        shown: dict[str, object] = {"order": [str(by) for by in self._order], "partition": list(self._partition)}
        shown |= {"limit": self._limit, "offset": self._offset, "rank": self._rank}
        return shown | {"speculative": self._speculative, "hold": self._hold}

    @property
    def settles(self) -> bool:
        return not self._speculative

    @property
    def holds_back(self) -> bool:
        return self._hold

    # -- the step ---------------------------------------------------------------------------------------------------

    def step(self, state: TopKState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], max(frontiers[0], state.frontier)
        results = (
            self._speculate(state, delta, frontier, reached)
            if self._speculative
            else self._finish(state, delta, frontier)
        )
        state.frontier = frontier
        if frontier == INFINITY:
            state.clear()
        else:
            # Only now: the rows are those valid at the old frontier, which the delta does not change.
            state.first.append(delta, self._partition, frontier)
            if frontier > BEGINNING:
                state.first.expire(frontier)
        return Step(Delta.concat(self.schema, results), min(frontier, state.holds.least()))

    def count_again(self, state: TopKState) -> None:
        if self._hold:
            state.holds.fill(state.first.all_since())

    def adopt(self, state: TopKState, before: Operator, store: Store) -> tuple[TopKState, Delta]:
        """What waits at the frontier or after it becomes news of the next step."""
        assert isinstance(before, TopKOperator)
        shown = self._output(state.first.still_open()) if before._hold else Delta.empty(self.schema)
        state.holds, state.recent, state.tau = HoldCounts(), RecentEndpoints(store), state.frontier - 1
        return state, shown

    def _finish(self, state: TopKState, delta: Delta, frontier: int) -> list[Delta]:
        """Strong form: everything before the frontier is final."""
        due, later = self._endpoints(delta, [(state.frontier, frontier), (frontier, INFINITY)])
        due = RowEndpoints.concat([due, state.endpoints.advance(frontier, self._none)])
        state.endpoints.append(later)
        results: list[Delta] = []
        if due.size:
            fresh = np.ones(due.size, np.bool_)
            changed = state.first.sweep(due, fresh, state.frontier, INFINITY, show_open=not self._hold)
            results = [self._output(shown) for shown in changed.shown]
            if self._hold:
                for before, after in zip(changed.since_before, changed.since_after, strict=True):
                    state.holds.move(before, after)
        if frontier == INFINITY and self._hold:
            results.append(self._output(state.first.still_open()))
        return results

    def _speculate(self, state: TopKState, delta: Delta, frontier: int, reached: int) -> list[Delta]:
        """Speculative form: the answer up to tau with the news, less the one without."""
        assert state.recent is not None
        tau = max(state.tau, min(frontier, INFINITY - 1), reached, delta.largest_start())
        news = [state.endpoints.between(state.tau + 1, tau + 1, self._none), state.take_unshown(self._none)]
        passed = state.endpoints.advance(frontier, self._none)
        arrived, later = self._endpoints(delta, [(state.frontier, tau + 1), (frontier, INFINITY)])
        state.endpoints.append(later)
        news = RowEndpoints.concat([*news, arrived])
        results: list[Delta] = []
        touched = Identity.empty()
        if news.size:
            touched = news.partitions()[0]
            known = state.recent.probe(touched, state.frontier, self._none)
            fresh = np.concatenate([_marks(old, new) for old, new in zip(known, news, strict=True)])
            both = RowEndpoints.concat([known, news])
            changed = state.first.sweep(both, fresh, state.frontier, frontier, show_open=True)
            results = [self._output(shown) for shown in changed.shown]
            state.recent.append(news.filter(lambda part: part.time >= frontier))
        # Later ones are news. Of partitions without news nothing that is shown changes: only what is kept moves on.
        passed = passed.filter(lambda part: (part.time <= state.tau) & ~find_sorted(*touched, *part.key))
        if passed.size:
            stale = np.zeros(passed.size, np.bool_)
            state.first.sweep(passed, stale, state.frontier, INFINITY, show_open=False)
        state.tau = tau
        if frontier > BEGINNING:
            state.recent.expire(frontier - 1)
        return results

    def _endpoints(self, delta: Delta, bounds: Sequence[tuple[int, int]]) -> list[RowEndpoints]:
        """Starts before the frontier cancel each other (legality): those within the bounds are all that matter."""
        return RowEndpoints.of(delta, self._partition, bounds) if len(delta) else [self._none] * len(bounds)

    def _output(self, shown: Shown) -> Delta:
        where = pa.array(shown.slot)
        columns = [column.take(where) for column in shown.columns]
        if self._rank is not None:
            columns.append(pa.array(shown.number).cast(pa.int32()))
        return Delta(self.schema, columns, shown.start, shown.end, shown.weight)


def _marks(old: Columns, new: Columns) -> BoolArray:
    """False for each of the old, true for each of the new."""
    return np.repeat([False, True], [old.rows, new.rows])
