"""Put the rows of a partition that are at most a gap apart into one session, which ends a gap after its last row."""
#  in         a |)  b |)           c |)             at 1, 3 and 9
#  gap 4      a,b [1,7)    |------------------- …   known at 7, shown for ever
#             c [9,13)                   |----- …
#  d at 6 would join them all to one session [1,13), shown at 13

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headwater.kernels.consolidate import consolidate_rows
from headwater.kernels.sessions import find_revised
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity, identify
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY, saturating_add
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.operators.windows.hop_window import instants
from headwater.operators.windows.row_elements import columns_of
from headwater.operators.windows.sessions import Blocks, Joined, OpenSessions, Points
from headwater.state.columns import Columns
from headwater.state.latest import Found
from headwater.state.manifest import Scalars, State
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_NO_NUMBERS = np.empty(0, np.int64)


class SessionWindowState(State):
    """The sessions that are not final: their ends a partition, their rows, and when to look at them again."""

    scalars: ClassVar[Scalars] = {"frontier": min, "shown_before": min}
    layouts = ("pending", "sessions", "waiting", "closing")

    def __init__(self, store: Store, types: dict[str, pa.DataType]) -> None:
        self._new = store, types
        self.frontier = BEGINNING
        self.shown_before = BEGINNING  # sessions that end before this are shown
        self.clear()

    def clear(self) -> None:
        store, types = self._new
        self.pending = TimeRuns(store, constants=("weight",))  # strong: rows that are not final yet
        self.sessions = OpenSessions(store, types)
        self.waiting = TimeRuns(store)  # partitions by the ends of their sessions that are not shown
        self.closing = TimeRuns(store)  # and of those that are shown

    @property
    def rows(self) -> int:
        return self.pending.rows + self.sessions.members.rows


class SessionWindowOperator(Operator):
    """Every row of a chronon stream with the ends of its session, valid from the session's end on, for ever.

    A row at a session's end still continues it, so it is final once the frontier has passed its end. Strong: its rows go
    out then, and are never taken back. Speculative: they go out when time has come to the end (``reached``), and
    what later rows and retractions change, by joining sessions or splitting them, is repaired.

    Frontier: a row at or after f changes sessions that end at or after f, and no others. Strong: nothing before the end
    of the first session that is open, nor before f + gap, when a session that begins at f would end.

    State: the rows of sessions that are not final. A tick costs the rows that came and the sessions that they change.
    """

    name = "session window"

    def __init__(
        self,
        schema: Schema,
        gap: int,
        partition: Sequence[str] = (),
        *,
        start: str,
        end: str,
        time: pa.DataType,
        speculative: bool,
    ) -> None:
        ends = (Field(name, time, nullable=False) for name in (start, end))
        self.schema = Schema((*schema.fields, *ends))
        self._gap, self._partition, self._time = gap, tuple(partition), time
        self._speculative = speculative
        self._types = {f"column.{i}": type_ for i, type_ in enumerate(schema.types)}

    def new_state(self, store: Store) -> SessionWindowState:
        return SessionWindowState(store, self._types)

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self._partition,)

    def spread(self, routes: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
        """By none: its shards come unequally far, and whoever reads it must hear of all of them."""
        return ()

    def describe(self) -> dict[str, object]:
        return {"gap": self._gap, "partition": self._partition, "speculative": self._speculative}

    # -- the step ---------------------------------------------------------------------------------------------------

    def step(self, state: SessionWindowState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], max(frontiers[0], state.frontier)
        shown_before = frontier
        if self._speculative:
            # Where that is known, rows do not say how far time has come: it must be the same in all shards.
            come = reached if reached > BEGINNING else delta.largest_start()
            shown_before = max(min(frontier, INFINITY - 1), come) + 1
        shown_before = max(shown_before, state.shown_before)
        fresh = self._take_fresh(state, delta, frontier)
        due = [*state.waiting.advance(shown_before), *state.closing.advance(frontier)]
        result = Delta.empty(self.schema)
        if fresh.rows or due:
            others = Identity.concat([fresh.key.take(_NO_NUMBERS), *(part.key for part in due)])
            result = self._change(state, fresh, others, shown_before, frontier)
        state.frontier, state.shown_before = frontier, shown_before
        if frontier == INFINITY:
            state.clear()
        elif not self._speculative and frontier > BEGINNING:
            ends = [int(part.time[0]) for part in state.waiting.between(frontier, INFINITY)]
            frontier = min(INFINITY, frontier + self._gap, *ends)
        return Step(result, frontier)

    def _take_fresh(self, state: SessionWindowState, delta: Delta, frontier: int) -> Columns:
        """The rows that take part from now on, with net weights: strong those that became final, else those that came.

        ``until`` is the last instant of a row: its own, or INFINITY for what recurs for ever (``SplitOperator``).
        """
        delta = delta.filter(delta.start >= state.frontier)  # earlier ones cancel each other (legality)
        arrived = columns_of(delta, self._partition)
        parts = [arrived | {"until": np.where(delta.end - delta.start == 1, delta.start, INFINITY)}]
        if not self._speculative:
            now = delta.start < frontier
            if not now.all():
                state.pending.append(arrived.where(~now))
                parts = [parts[0].where(now)]
            parts += [part | {"until": part["time"]} for part in state.pending.advance(frontier)]
        return self._net(Columns.concat([part for part in parts if part.rows] or parts))

    def adopt(self, state: SessionWindowState, before: Operator, store: Store) -> tuple[SessionWindowState, Delta]:
        """The rows that were not final take part from now on; sessions show when time has come to their ends."""
        waiting = [part | {"until": part["time"]} for part in state.pending.advance(INFINITY)]
        if not waiting:
            return state, Delta.empty(self.schema)
        fresh = self._net(Columns.concat(waiting))
        none = fresh.key.take(_NO_NUMBERS)
        return state, self._change(state, fresh, none, state.shown_before, state.frontier)

    def _net(self, rows: Columns) -> Columns:
        """Equal rows of an instant as one, with the sum of their weights; without those that cancel."""
        weight = rows.weight
        if len(weight) == 0 or weight.min() > 0:
            return rows | {"weight": weight}
        identity = identify(rows.payload(len(self._types)), len(weight))
        kept, weight = consolidate_rows(*identity, rows.time, rows["until"], weight)
        return rows.take(kept) | {"weight": weight}

    # -- what changes -----------------------------------------------------------------------------------------------

    def _change(
        self, state: SessionWindowState, fresh: Columns, others: Identity, shown_before: int, frontier: int
    ) -> Delta:
        """Bring the sessions of the touched partitions up to date; what that changes of the sessions shown."""
        points = Points.arrange(fresh, others)
        found = state.sessions.table.find(points.key)
        known = blocks = Blocks.known(state.sessions.table, found)
        results: list[Delta] = []
        revised = np.zeros(len(known.id), np.bool_)
        if (fresh["weight"] < 0).any():
            revised = find_revised(points.groups, points.sorted("time"), points.sorted("weight"), *known[:3])
            assert revised.any(), "only rows that are there are taken away"
            points = self._take_apart(state, points, known.filter(revised), results)
            blocks = known.filter(~revised)
        joined = Joined(
            self._gap,
            points,
            blocks,
            was_shown_before=state.shown_before,
            shown_before=shown_before,
            frontier=frontier,
        )
        if len(joined.crowded):
            joined.choose_heirs(joined.crowded, state.sessions.members.counts(blocks.id[joined.crowded]))
        shown = np.flatnonzero(joined.shown[joined.of_point])
        of = joined.of_point[shown]
        results.append(self._output(points.rows.take(shown), joined.first[of], joined.end[of]))
        moved = self._show_again(state, joined, results)
        self._save(state, joined, points, moved, found, known, revised)
        result = Delta.concat(self.schema, results)
        return result.consolidate() if (result.weight < 0).any() else result

    def _take_apart(self, state: SessionWindowState, points: Points, revised: Blocks, results: list[Delta]) -> Points:
        """Sessions that lose rows: all their rows take part anew, with the others; what was shown of them goes."""
        which, rows = state.sessions.members.load(revised.id)
        ends = saturating_add(revised.last, self._gap)
        gone = np.flatnonzero(ends[which] < state.shown_before)
        of = which[gone]
        results.append(self._output(rows.take(gone), revised.first[of], ends[of]).negate())
        rows = Columns.under(points.key.take(revised.key[which]), rows | {"until": rows.time})
        whole = self._net(Columns.concat([points.rows, rows.only(points.rows)]))
        return Points.arrange(whole, points.key)

    def _show_again(
        self, state: SessionWindowState, joined: Joined, results: list[Delta]
    ) -> tuple[Columns, Int64Array]:
        """Of the sessions of which something else is shown, what goes and what comes.

        Returns the rows that go on under the number of another session, and which one that is.
        """
        loaded = np.flatnonzero(joined.reshown | joined.moves)
        if len(loaded) == 0:
            return Columns(), _NO_NUMBERS
        which, rows = state.sessions.members.load(joined.blocks.id[loaded])
        block = loaded[which]
        session = joined.of_block[block]
        gone = np.flatnonzero((joined.reshown & joined.was_shown)[block])
        was = block[gone]
        results.append(self._output(rows.take(gone), joined.blocks.first[was], joined.block_end[was]).negate())
        come = np.flatnonzero(joined.reshown[block] & joined.shown[session])
        now = session[come]
        results.append(self._output(rows.take(come), joined.first[now], joined.end[now]))
        moved = np.flatnonzero(joined.moves[block])
        return rows.take(moved), session[moved]

    def _output(self, rows: Columns, first: Int64Array, end: Int64Array) -> Delta:
        """The rows with the ends of their sessions, from those ends on."""
        times = instants(first, self._time), instants(end, self._time)
        columns = [*rows.payload(len(self._types)), *times]
        return Delta(self.schema, columns, end, np.full(len(end), INFINITY, np.int64), rows.weight)

    # -- what is kept -----------------------------------------------------------------------------------------------

    def _save(
        self,
        state: SessionWindowState,
        joined: Joined,
        points: Points,
        moved: tuple[Columns, Int64Array],
        found: Found,
        known: Blocks,
        revised: np.ndarray,
    ) -> None:
        """The sessions as they are now; those that are final are forgotten."""
        new = np.flatnonzero((joined.heir < 0) & ~joined.final)
        number = joined.blocks.id[joined.heir] if len(joined.blocks.id) else np.zeros(len(joined.heir), np.int64)
        number[new] = state.sessions.new_ids(len(new))
        self._save_members(state, joined, points, moved, number, known.id[revised])
        changed = np.zeros(len(points.key.low), np.bool_)
        changed[joined.key[~joined.steady & (~joined.final | (joined.parts > 0))]] = True
        changed[known.key[revised]] = True
        self._save_table(state, joined, points.key, np.flatnonzero(changed), number, found)
        for runs, chosen in (
            (state.waiting, joined.begins_to_wait & ~joined.shown),
            (state.closing, joined.begins_to_wait & joined.shown),
        ):
            key = points.key.take(joined.key[chosen])
            runs.append(Columns.under(key, {"time": joined.end[chosen]}))

    def _save_members(
        self,
        state: SessionWindowState,
        joined: Joined,
        points: Points,
        moved: tuple[Columns, Int64Array],
        number: Int64Array,
        taken_apart: Int64Array,
    ) -> None:
        stay = np.flatnonzero(~joined.final[joined.of_point])
        names = ["time", "weight", *self._types]
        parts = [points.rows.only(names).take(stay)]
        session = [joined.of_point[stay]]
        if len(moved[1]):
            parts.append(moved[0].only(names))
            session.append(moved[1])
        over = joined.moves | joined.final[joined.of_block]
        forgotten = np.concatenate([taken_apart, joined.blocks.id[over]])
        state.sessions.members.change(number[np.concatenate(session)], Columns.concat(parts), forgotten)

    @staticmethod
    def _save_table(
        state: SessionWindowState,
        joined: Joined,
        key: Identity,
        changed: Int64Array,
        number: Int64Array,
        found: Found,
    ) -> None:
        place = np.full(len(key.low), -1, np.int64)
        place[changed] = np.arange(len(changed))
        kept = np.flatnonzero((place[joined.key] >= 0) & ~joined.final)
        sizes = np.bincount(place[joined.key[kept]], minlength=len(changed))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        columns = {"first": joined.first[kept], "last": joined.last[kept], "id": number[kept]}
        there = Found(found.segment[changed], found.row[changed])
        state.sessions.table.put(key.take(changed), offsets, columns, {}, sizes == 0, there)
