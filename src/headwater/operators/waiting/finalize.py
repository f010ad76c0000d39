"""Remember for so long, then forget: what comes too late to be repaired is left out and counted (CEDR Finalize)."""
#  time has come to  5        20 (remembered for 10: nothing before 10 changes any more)
#  stream            a|3-30)  b|4-9)  a ends at 7 instead   a ends at 15 instead   c|12-18)
#  passes            a|3-30)          a|3-10)               (its end is past)      c|12-18)      forgotten: 3

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Routing, Step
from headwater.operators.tables.known_rows import Intervals, KnownRows, first_of_each, route_by_kept, sums
from headwater.state.columns import Columns
from headwater.state.manifest import Route, Scalars, State
from headwater.state.store import Store


class FinalizeState(State):
    """How far the past is closed, how many changes of it were forgotten, and the rows that exist but did not pass."""

    scalars: ClassVar[Scalars] = {"closed": max, "forgotten": None}
    layouts = ("hidden",)

    def __init__(self, store: Store, *, revisable: bool) -> None:
        self.closed = BEGINNING
        self.forgotten = 0
        self.hidden = KnownRows(store, scalars=Columns({"route": np.empty(0, np.uint64)})) if revisable else None

    @property
    def rows(self) -> int:
        return self.hidden.rows if self.hidden is not None else 0

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        super().hand_over(old, new, route)
        new[0].forgotten = sum(state.forgotten for state in old)


class FinalizeOperator(Operator):
    """The stream with its past closed at a forced frontier: the input's own, or behind the newest row by as much as is
    remembered (``reached``), whichever is later. Rows of a tick are judged by what was closed before it (A.12).

    A row that starts in the closed past is not let in. One that passed before may still change its end, as long as both
    ends are open; an end that moves into the closed past, or a row that is removed, is cut there. Of changes of rows that
    did not pass, and of ends that are past, neither half passes. So everything that passes is legal at the forced frontier,
    and nothing is taken back that did not come. State: rows that were not let in and have not ended; none if the stream is
    never revised.
    """

    name = "finalize"

    def __init__(self, schema: Schema, by: Sequence[str], *, revisable: bool = True, remember: str = "") -> None:
        self.schema, self._by = schema, tuple(by)
        self._revisable, self._remember = revisable, remember

    def routing(self) -> Routing:
        return (self._by,)

    def describe(self) -> dict[str, object]:
        return {"remember": self._remember}

    def new_state(self, store: Store) -> FinalizeState:
        return FinalizeState(store, revisable=self._revisable)

    def step(self, state: FinalizeState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        (delta,) = inputs
        closed = state.closed
        state.closed = max(closed, frontiers[0], reached)
        behind = delta.start < closed
        out, late = delta.filter(~behind), delta.filter(behind)
        if state.hidden is None:
            state.forgotten += int(late.weight.sum())
        elif len(late) or (state.hidden.rows and state.hidden.ends.frontier < closed):
            passed = self._late(state, state.hidden, late.consolidate(), closed)
            out = Delta.concat(self.schema, [out, passed])
        if state.closed == INFINITY and state.hidden is not None:
            state.hidden.clear()
        return Step(out, state.closed)

    def _late(self, state: FinalizeState, hidden: KnownRows, late: Delta, closed: int) -> Delta:
        """What passes of changes of rows that start in the closed past."""
        touched = hidden.touch(late, closed)
        rows = touched.rows
        judged = _judge(rows, closed)
        lives = (judged.hidden > 0) & (rows.end >= closed)
        route = np.array(touched.scalars["route"])
        route[touched.own] = late.key(self._by).low
        hidden.keep(touched, [judged.hidden], lives, Columns({"route": route}))
        state.forgotten += judged.forgotten
        mine = rows.place >= 0
        weight, cut = np.zeros(len(late), np.int64), np.zeros(len(late), np.int64)
        weight[rows.place[mine]] = judged.passes[mine]
        cut[rows.place[mine]] = judged.cut[mine]
        shorter = late.with_weight(cut).filter(cut != 0)
        shorter = shorter.with_times(shorter.start, np.full(len(shorter), closed, np.int64))
        passed = late.with_weight(weight).filter(weight != 0)
        return Delta.concat(self.schema, [passed, shorter]).consolidate()

    def route(self, old: Sequence[FinalizeState], routing: Routing, shards: int) -> Route:
        return route_by_kept(shards)

    def counts(self, state: FinalizeState) -> dict[str, int]:
        return {"forgotten": state.forgotten}


class _Judged(NamedTuple):
    """For each interval: the weight that passes, what passes of it cut where the past is closed, and how many copies are
    hidden from now on; and how many changes are forgotten, or not followed to the end."""

    passes: Int64Array
    cut: Int64Array
    hidden: Int64Array
    forgotten: int


def _judge(rows: Intervals, closed: int) -> _Judged:
    """Weights of one payload and start must cancel, and all ends be open (legality, C.0)."""
    known = rows.counts[0]
    comes, goes = np.maximum(rows.weight, 0), np.maximum(-rows.weight, 0)
    group, groups = rows.groups()
    past = rows.end < closed
    from_hidden = np.where(past, 0, np.minimum(goes, known))
    unseen = np.where(past, goes, from_hidden)
    seen = goes - unseen
    # Which of the rows that come take the place of which that go is not said; any choice is as good: those that end first
    # follow on unseen ones, the next on seen ones, and the rest is new, too late.
    wanted, unseen_of = sums(group, seen, groups), sums(group, unseen, groups)
    after_unseen = first_of_each(group, comes, unseen_of)
    after_seen = first_of_each(group, comes - after_unseen, wanted)
    not_let_in = comes - after_seen
    removed = wanted - sums(group, after_seen, groups)
    # A removed row ends where the past is closed; any interval of the group may carry it, as long as it is in the delta.
    carrier = np.flatnonzero(seen > 0)
    carrier = carrier[np.diff(group[carrier], prepend=-1) != 0]
    cut = np.where(past, after_seen, 0)
    cut[carrier] += removed[group[carrier]]
    lost = np.maximum(sums(group, np.where(past, goes, 0), groups) - sums(group, after_unseen, groups), 0)
    return _Judged(
        np.where(past, 0, after_seen) - seen,
        cut,
        np.where(past, 0, known - from_hidden + not_let_in),
        int(not_let_in.sum() + cut.sum() + lost.sum()),
    )
