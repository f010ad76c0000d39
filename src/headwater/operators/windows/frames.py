"""Say of each row what functions say of the rows before it in its partition (SQL's OVER with a frame of rows)."""
#  in                     3 |)  4 |)     5 |)
#  SUM, ROWS 1 PRECEDING  3 |)  7 |)     9 |)      each at the row's own instant
#  LAG                    - |)  3 |)     4 |)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.kernels.frames import last_peers
from headwater.kernels.rows import gone_rows
from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.operators.windows.frame_values import FrameCall, Frames, Sequences, computed, kept_columns
from headwater.operators.windows.row_elements import Elements, arrange, check_ends, columns_of
from headwater.state.buckets import ExpiryBuckets
from headwater.state.columns import Column, Columns, concat_column
from headwater.state.groups import LatestGroups
from headwater.state.latest import Found
from headwater.state.manifest import Scalars, State
from headwater.state.queues import KeyQueues, Queued
from headwater.state.retyped import KeptTypes
from headwater.state.runs import TimeRuns
from headwater.state.store import Store


class FramesState(State):
    """Rows that are not final yet, by time; of each partition its last final rows, and totals of those before them."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    layouts = ("pending", "queues", "running", "recent")

    def __init__(
        self,
        store: Store,
        types: dict[str, pa.DataType],
        reach: int,
        running: dict[str, Column],
        *,
        speculative: bool,
    ) -> None:
        self.frontier = BEGINNING
        self.pending = TimeRuns(store, constants=("weight",))
        self.queues = KeyQueues(store, types, lambda counts: gone_rows(counts, reach, 1))
        self.running = LatestGroups(store, scalars=running) if running else None
        self.recent = ExpiryBuckets(store) if speculative else None  # the pending rows again, by partition

    @property
    def rows(self) -> int:
        return self.pending.rows + self.queues.rows + (self.running.keys if self.running is not None else 0)

    def clear(self) -> None:
        self.pending.advance(INFINITY)
        self.queues.clear()
        if self.running is not None:
            self.running.clear()
        if self.recent is not None:
            self.recent.expire(INFINITY)


class _Before(NamedTuple):
    """What the partitions had: how many rows, the last of them (partition after partition), and totals of the others."""

    queued: Queued
    offsets: Int64Array
    columns: list[pa.Array]
    found: Found | None
    running: Columns


class FramesOperator(Operator):
    """Rows of a chronon stream, in each partition in the order of (start, canonical order), each with what the functions
    say of its frame: some rows before it, or all of them.

    Strong: a row goes out when it is final, and so is all that was before it. Speculative: it goes out at once; of rows
    that come late or are taken back, only those are shown again in whose frame they are.

    State: of each partition as many rows as the longest frame has, and totals for frames that begin with the partition.
    """

    name = "frames"

    def __init__(
        self, schema: Schema, calls: Sequence[FrameCall], partition: Sequence[str] = (), *, speculative: bool
    ) -> None:
        self._input, self._partition, self._speculative = schema, tuple(partition), speculative
        self._described = tuple(calls)
        self._calls = [computed(call, schema, i) for i, call in enumerate(calls)]
        self.schema = Schema((*schema.fields, *(Field(c.output, c.type) for c in calls)))
        self._reach = max(1, *(call.reach for call in calls))
        read = {n for call in calls for n in (call.argument, call.filter) if n is not None}
        self._read = [i for i, name in enumerate(schema.names) if name in read]
        self._arguments = Schema(tuple(schema.fields[i] for i in self._read))
        self._running = dict(kept_columns(self._calls))

    def new_state(self, store: Store) -> FramesState:
        types = {f"column.{i}": self._input.types[i] for i in self._read}
        return FramesState(store, types, self._reach, self._running, speculative=self._speculative)

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self._partition,)

    def describe(self) -> dict[str, object]:
        calls = [f"{c.function}({c.argument or '*'}) AS {c.output}" for c in self._described]
        return {"calls": calls, "partition": self._partition, "speculative": self._speculative}

    @property
    def settles(self) -> bool:
        return not self._speculative

    def kept_types(self, inputs: Sequence[Schema]) -> KeptTypes:
        values = {("running.", n): c.type for n, c in self._running.items() if isinstance(c, pa.Array)}
        return super().kept_types(inputs) | values

    def goes_on_from(self, before: Operator) -> bool:
        """Long DECIMALs have other totals than short ones."""
        assert isinstance(before, FramesOperator)
        return [c.encoding for c in before._calls] == [c.encoding for c in self._calls]

    # -- the step ---------------------------------------------------------------------------------------------------

    def step(self, state: FramesState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], max(frontiers[0], state.frontier)
        delta = delta.filter(delta.start >= state.frontier)  # earlier ones cancel each other (legality)
        check_ends(delta)
        arrived = columns_of(delta, self._partition) if len(delta) else None
        results: list[Delta] = []
        if self._speculative and arrived is not None:
            results.append(self._repair(state, arrived, frontier))
        final = self._take_final(state, arrived, frontier)
        if final is not None:
            results += self._settle(state, final)
        state.frontier = frontier
        if frontier == INFINITY:
            state.clear()
        elif state.recent is not None and frontier > BEGINNING:
            state.recent.expire(frontier - 1)
        return Step(Delta.concat(self.schema, results), frontier)

    @staticmethod
    def _take_final(state: FramesState, arrived: Columns | None, frontier: int) -> Columns | None:
        """The rows that became final; the others wait."""
        final = state.pending.advance(frontier)
        if arrived is not None:
            now = arrived.time < frontier
            if now.all():
                final.append(arrived)
            else:
                state.pending.append(arrived.where(~now))
                final += [arrived.where(now)] if now.any() else []
        return Columns.concat(final) if final else None

    def _settle(self, state: FramesState, final: Columns) -> Iterator[Delta]:
        """Final rows get their places for good; strong: they are shown."""
        weight = final.weight
        elements = arrange(final, np.zeros_like(weight), weight).single()
        if len(elements.order) == 0:
            return
        before = self._before(state, elements)
        sequences, fresh = self._sequences(elements, before)
        followed = [call.follow(sequences) for call in self._calls]
        if not self._speculative:
            yield self._shown(elements, sequences, fresh, followed, np.ones(len(fresh), np.bool_))
        self._push(state, elements, before, sequences, followed)

    def adopt(self, state: FramesState, before: Operator, store: Store) -> tuple[FramesState, Delta]:
        """The rows that were not final count from now on."""
        assert isinstance(before, FramesOperator)
        state.recent = ExpiryBuckets(store)
        waiting = state.pending.between(state.frontier, INFINITY)
        if not waiting:
            return state, Delta.empty(self.schema)
        return state, self._repair(state, Columns.concat(waiting), state.frontier)

    def _repair(self, state: FramesState, arrived: Columns, frontier: int) -> Delta:
        """What the arrived rows change, given all that were known."""
        assert state.recent is not None
        key = arrived.key
        order, groups = sort_by_key_time(*key, arrived.time)
        _, known = state.recent.probe(key.take(order[groups[:-1]]))
        rows = arrived
        if known:
            known = known.only(arrived).where(known.time >= state.frontier)
            rows = Columns.concat([known, arrived])
        weight = rows.weight
        was = np.where(np.arange(len(weight)) < known.rows, weight, 0)
        elements = arrange(rows, was, weight)
        before = self._before(state, elements)
        results = []
        for sign, copies in ((-1, elements.before), (1, elements.after)):
            every = elements._replace(after=copies).single()
            if len(every.order):
                sequences, fresh = self._sequences(every, before)
                followed = [call.follow(sequences) for call in self._calls]
                changed = np.repeat(self._is_changed(elements, copies), copies)
                shown = self._shown(every, sequences, fresh, followed, changed)
                results.append(shown.with_weight(sign * shown.weight))
        later = arrived.where(arrived.time >= frontier)
        state.recent.append(later.key, later.time, later.without("low", "high"))
        return Delta.concat(self.schema, results).consolidate()

    def _is_changed(self, elements: Elements, copies: Int64Array) -> BoolArray:
        """May a row that has come or gone be in the frame of an element, where each occurs so often?"""
        groups = elements.groups
        owner = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
        places = np.flatnonzero(elements.before != elements.after)
        first, last = np.full(len(groups) - 1, INFINITY, np.int64), np.full(len(groups) - 1, -1, np.int64)
        np.minimum.at(first, owner[places], elements.time[places])
        np.maximum.at(last, owner[places], places)
        changed = elements.time >= first[owner]  # with all of its instant: peers may be in its frame
        if any(call.running and call.function != "LAST_VALUE" for call in self._described):
            return changed
        stops = np.cumsum(copies)
        return changed & (stops - copies < stops[last[owner]] + self._reach)

    # -- sequences --------------------------------------------------------------------------------------------------

    def _before(self, state: FramesState, elements: Elements) -> _Before:
        queued = state.queues.find(elements.key)
        located = state.queues.locate(queued, gone_rows(queued.count, self._reach, 1) + 1, queued.count)
        order, parts = state.queues.take(located, np.arange(len(located.row)))
        back = np.argsort(order)
        empty = Columns({f"column.{i}": pa.array([], self._input.types[i]) for i in self._read})
        columns = [concat_column([p[n] for p in (parts or [empty])]).take(pa.array(back)) for n in empty]
        if state.running is None:
            return _Before(queued, located.offsets, columns, None, Columns())
        found = state.running.find(elements.key)
        return _Before(queued, located.offsets, columns, found, state.running.gather(found).scalars)

    def _sequences(self, elements: Elements, before: _Before) -> tuple[Sequences, Int64Array]:
        """The rows of each partition, those that are kept first, and where the elements are among them."""
        kept, new = np.diff(before.offsets), np.diff(elements.groups)
        groups = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept + new)])
        old = np.arange(before.offsets[-1]) + np.repeat(groups[:-1] - before.offsets[:-1], kept)
        fresh = np.arange(elements.groups[-1]) + np.repeat(groups[:-1] + kept - elements.groups[:-1], new)
        source = np.empty(groups[-1], np.int64)
        source[old] = np.arange(len(old))
        source[fresh] = len(old) + elements.order
        taken = pa.array(source)
        pairs = zip(before.columns, (elements.rows.arrow(f"column.{i}") for i in self._read), strict=True)
        columns = [concat_column([a, b]).take(taken) for a, b in pairs]
        nothing = np.zeros(len(source), np.int64)
        rows = Delta(self._arguments, columns, nothing, nothing, nothing)
        passed = gone_rows(before.queued.count, self._reach, 1)
        return Sequences(rows, groups, passed, before.running), fresh

    def _shown(
        self, elements: Elements, sequences: Sequences, fresh: Int64Array, followed: list[Int64Array], shown: BoolArray
    ) -> Delta:
        """The shown ones of the elements with the values of all calls."""
        chosen = np.flatnonzero(shown)
        owner = np.repeat(np.arange(len(elements.groups) - 1), np.diff(elements.groups))[chosen]
        begin, place = sequences.groups[owner], fresh[chosen]
        peers = np.empty(0, np.int64)
        if any(call.peers for call in self._described):
            peers = place + (last_peers(elements.groups, elements.time)[chosen] - chosen)
        rows = elements.order[chosen]
        columns = [elements.rows.arrow(f"column.{i}").take(pa.array(rows)) for i in range(len(self._input))]
        for call, found in zip(self._calls, followed, strict=True):
            frame = call.call
            stop = peers if frame.peers else np.maximum(place - frame.last + 1, begin)
            start = begin if frame.running else np.maximum(place - frame.first, begin)
            columns.append(call.value(found, sequences, Frames(owner, np.minimum(start, stop), stop)))
        time = elements.time[chosen]
        return Delta(self.schema, columns, time, time + 1, np.ones(len(time), np.int64))

    def _push(
        self, state: FramesState, elements: Elements, before: _Before, sequences: Sequences, followed: list[Int64Array]
    ) -> None:
        """The rows enter the queues of their partitions; those that leave are kept as totals."""
        new = np.diff(elements.groups)
        count = before.queued.count + new
        gone = gone_rows(count, self._reach, 1)
        first = elements.groups[:-1] + np.minimum(np.maximum(gone - before.queued.count, 0), new)
        sizes = elements.groups[1:] - first
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], sizes)
        columns = elements.rows.only(f"column.{i}" for i in self._read).take(elements.order[places])
        time = elements.time[places]
        state.queues.push(elements.key, before.queued, count, offsets, time, columns, Columns())
        if state.running is not None and before.found is not None:
            owner, begin = np.arange(len(new)), sequences.groups[:-1]
            left = Frames(owner, begin, begin + gone - sequences.passed)
            scalars: dict[str, Column] = {}
            for call, found in zip(self._calls, followed, strict=True):
                scalars |= call.passed(found, sequences, left) if call.call.running else {}
            none, alive = np.zeros(len(new) + 1, np.int64), np.zeros(len(new), np.bool_)
            state.running.put(elements.key, none, {}, scalars, alive, before.found)
