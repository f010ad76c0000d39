"""Show the last N elements of each partition, moving on with every A-th one (Krämer 8.18, 8.19, 17.2, Alg. 19)."""
#  in              a |)  b |)    c |)    d |)
#  ROWS 2          a |-----------)       d |------ …
#                        b |-------------)
#                                c |-------------- …
#  ROWS 2 SLIDE 2        a |-------------)             a waits for b; both leave
#                        b |-------------)             when d brings c and itself
#                                      c |-------- …
#                                      d |-------- …

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.kernels import rows as kernel
from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity, is_recoverable, recover
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Frontiers, Inputs, Operator, Step
from headwater.operators.windows.row_elements import Elements, arrange, check_ends, columns_of
from headwater.state.buckets import ExpiryBuckets
from headwater.state.columns import Columns, concat_column
from headwater.state.heads import Heads
from headwater.state.manifest import Scalars, State
from headwater.state.queues import KeyQueues, Located, Queued
from headwater.state.runs import TimeRuns
from headwater.state.store import Store


class RowWindowState(State):
    """Elements that are not final yet, by time; the final ones that are shown or wait to be, a queue per key."""

    scalars: ClassVar[Scalars] = {"frontier": min}
    layouts = ("pending", "queues", "heads", "recent")

    def __init__(
        self, store: Store, types: dict[str, pa.DataType], size: int, slide: int, *, speculative: bool
    ) -> None:
        self.frontier = BEGINNING
        self.pending = TimeRuns(store, constants=("weight",))
        self.queues = KeyQueues(store, types, lambda counts: kernel.gone_rows(counts, size, slide))
        self.heads = Heads(store)  # the oldest start of each key, where rows are held back
        self.recent = ExpiryBuckets(store) if speculative else None  # the pending rows again, by key

    @property
    def rows(self) -> int:
        return self.pending.rows + self.queues.rows

    def clear(self) -> None:
        self.pending.advance(INFINITY)
        self.queues.clear()
        self.heads.clear()
        if self.recent is not None:
            self.recent.expire(INFINITY)


class _Changes(NamedTuple):
    """Output rows: of which key, from which located or coming row, over which interval, with which weight."""

    key: Int64Array
    source: Int64Array
    start: Int64Array
    end: Int64Array
    weight: Int64Array


class RowWindowOperator(Operator):
    """Elements of a chronon stream, numbered in each partition by (start, canonical order), become valid from the slide
    that shows them until the one that pushes them out.

    Strong: an element goes out when its end is final and is held until then. ``hold=False``: it goes out when its start
    is final, open-ended, and its end is adjusted later: only ends change, and no silent key holds the frontier (E21).
    Speculative: all elements seen count, and what later ones change is repaired. State: up to N + A - 1 elements per key.
    """

    name = "row window"

    def __init__(
        self,
        schema: Schema,
        rows: int,
        slide: int = 1,
        partition: Sequence[str] = (),
        *,
        speculative: bool,
        hold: bool = True,
    ) -> None:
        self.schema, self._size, self._slide = schema, rows, slide
        self._partition = tuple(partition)
        self._speculative, self._hold = speculative, hold and not speculative
        self._keys = [schema.index(name) for name in partition]
        self._payload = [i for i in range(len(schema)) if i not in self._keys]
        self._recoverable = is_recoverable([schema.types[i] for i in self._keys])

    def new_state(self, store: Store) -> RowWindowState:
        types = {f"column.{i}": self.schema.types[i] for i in self._payload}
        return RowWindowState(store, types, self._size, self._slide, speculative=self._speculative)

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self._partition,)

    def describe(self) -> dict[str, object]:
        shown: dict[str, object] = {"rows": self._size, "slide": self._slide, "partition": self._partition}
        return shown | {"speculative": self._speculative, "hold": self._hold}

    @property
    def settles(self) -> bool:
        return not self._speculative

    @property
    def holds_back(self) -> bool:
        return self._hold

    # -- the step ---------------------------------------------------------------------------------------------------

    def step(self, state: RowWindowState, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], max(frontiers[0], state.frontier)
        check_ends(delta)
        arrived = columns_of(delta, self._partition) if len(delta) else None
        results: list[Delta] = []
        if self._speculative and arrived is not None:
            results.append(self._repair(state, arrived, frontier))
        final = self._take_final(state, arrived, frontier)
        if final is not None:
            results.append(self._number(state, final))
        state.frontier, out = frontier, frontier
        if frontier == INFINITY:
            if self._hold:
                results.append(self._flush(state))
            state.clear()
        elif self._hold:
            out = min(frontier, state.heads.least(lambda key: self._shown_since(state, key)))
        elif state.recent is not None and frontier > BEGINNING:
            state.recent.expire(frontier - 1)
        return Step(Delta.concat(self.schema, results), out)

    @staticmethod
    def _take_final(state: RowWindowState, arrived: Columns | None, frontier: int) -> Columns | None:
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

    def _number(self, state: RowWindowState, final: Columns) -> Delta:
        """Final rows get their numbers for good."""
        weight = final.weight
        elements = arrange(final, np.zeros_like(weight), weight)
        queued = state.queues.find(elements.key)
        result = Delta.empty(self.schema)
        if not self._hold and not self._speculative:
            result = self._change(state, elements, queued)
        elements = elements.single()
        if self._hold:
            result = self._close(state, elements, queued)
        self._push(state, elements, queued)
        return result

    # -- strong -----------------------------------------------------------------------------------------------------

    def _close(self, state: RowWindowState, elements: Elements, queued: Queued) -> Delta:
        """The elements that are pushed out by final ones."""
        count = queued.count
        first = kernel.gone_rows(count, self._size, self._slide) + 1
        gone = kernel.gone_rows(count + np.diff(elements.groups), self._size, self._slide)
        needed = -(-gone // self._slide) * self._slide  # their starts may be those of later elements
        located = state.queues.locate(queued, first, np.where(gone < first, first - 1, np.minimum(count, needed)))
        kept = state.queues.times(located)
        closed = kernel.close_rows(
            self._size, self._slide, count, first, located.offsets, kept, elements.groups, elements.time
        )
        weight = np.ones(len(closed[0]), np.int64)
        return self._output(state, elements, located, _Changes(*closed, weight))

    def _push(self, state: RowWindowState, elements: Elements, queued: Queued) -> None:
        """Number the rows: they enter their keys' queues."""
        count = queued.count + np.diff(elements.groups)
        gone = kernel.gone_rows(count, self._size, self._slide)
        left = np.minimum(np.maximum(gone - queued.count, 0), np.diff(elements.groups))  # never needed again
        first = elements.groups[:-1] + left
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(elements.groups[1:] - first)])
        if left.any():
            skipped = np.repeat(np.cumsum(left), np.diff(offsets))
            places = np.arange(offsets[-1]) + skipped
            rows, time = elements.order[places], elements.time[places]
        else:
            rows, time = elements.order, elements.time
        columns = self._kept_columns(elements.rows).take(rows)
        scalars = Columns()
        if not self._recoverable:
            keys = elements.rows.only(f"column.{i}" for i in self._keys)
            scalars = keys.take(elements.order[elements.groups[:-1]])
        state.queues.push(elements.key, queued, count, offsets, time, columns, scalars)
        if self._hold and self._size != INFINITY:
            begun = np.flatnonzero((queued.count < self._slide) & (count >= self._slide))
            state.heads.push(elements.time[elements.groups[begun]], elements.key.take(begun))

    def _shown_since(self, state: RowWindowState, key: Identity) -> Int64Array:
        """The start of the oldest element that each key shows and holds back."""
        queued = state.queues.find(key)
        oldest = kernel.gone_rows(queued.count, self._size, self._slide) // self._slide * self._slide + self._slide
        return state.queues.times(state.queues.locate(queued, oldest, oldest))

    def _flush(self, state: RowWindowState) -> Delta:
        """The end of time: what the windows show now they show for ever; what still waits never appears."""
        key, count, offsets, rows, scalars = state.queues.live()
        if len(count) == 0:
            return Delta.empty(self.schema)
        owner, source, start = kernel.open_rows(self._size, self._slide, count, offsets, rows.time)
        shown = rows.without("time").take(source)
        keys = self._key_columns(key, scalars, owner, owner)
        columns = [keys[i] if i in keys else shown[f"column.{i}"] for i in range(len(self.schema))]
        end, weight = np.full(len(start), INFINITY, np.int64), np.ones(len(start), np.int64)
        return Delta(self.schema, columns, start, end, weight)

    # -- from the strong form to the speculative one ----------------------------------------------------------------

    def adopt(self, state: RowWindowState, before: Operator, store: Store) -> tuple[RowWindowState, Delta]:
        """The elements that were not final count from now on, on top of what the windows showed, or held back."""
        assert isinstance(before, RowWindowOperator)
        shown = [before._flush(state)] if before._hold else []
        state.heads.clear()
        state.recent = ExpiryBuckets(store)
        waiting = state.pending.between(state.frontier, INFINITY)
        if waiting:
            shown.append(self._repair(state, Columns.concat(waiting), state.frontier))
        return state, Delta.concat(self.schema, shown)

    # -- speculative ------------------------------------------------------------------------------------------------

    def _repair(self, state: RowWindowState, arrived: Columns, frontier: int) -> Delta:
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
        before = np.where(np.arange(len(weight)) < known.rows, weight, 0)
        elements = arrange(rows, before, weight)
        result = self._change(state, elements, state.queues.find(elements.key))
        later = arrived.where(arrived.time >= frontier)
        state.recent.append(later.key, later.time, later.without("low", "high"))
        return result

    def _change(self, state: RowWindowState, elements: Elements, queued: Queued) -> Delta:
        """The lifetimes with the rows as they are now, less those with the rows as they were."""
        size, slide, count, groups = self._size, self._slide, queued.count, elements.groups
        first, last = kernel.gone_rows(count, size, slide) + 1, count
        if slide == 1:  # only what is pushed out changes
            before, after = (np.concatenate([[0], np.cumsum(w)]) for w in (elements.before, elements.after))
            most = np.maximum(before[groups[1:]] - before[groups[:-1]], after[groups[1:]] - after[groups[:-1]])
            last = np.minimum(count, kernel.gone_rows(count + most, size, slide))
        located = state.queues.locate(queued, first, last)
        kept = state.queues.times(located)
        changed = kernel.change_rows(
            size, slide, count, first, located.offsets, kept, groups, elements.time, elements.before, elements.after
        )
        return self._output(state, elements, located, _Changes(*changed))

    # -- output -----------------------------------------------------------------------------------------------------

    def _kept_columns(self, rows: Columns) -> Columns:
        """What a queue keeps of a row: the key's own columns are known otherwise."""
        return rows.only(f"column.{i}" for i in self._payload)

    def _output(self, state: RowWindowState, elements: Elements, located: Located, changes: _Changes) -> Delta:
        """The changed rows: those from the queues, segment by segment, then those that came."""
        if len(changes.key) == 0:
            return Delta.empty(self.schema)
        stored = len(located.row)
        from_queue, fresh = np.flatnonzero(changes.source < stored), np.flatnonzero(changes.source >= stored)
        order, parts = state.queues.take(located, changes.source[from_queue])
        if len(fresh):
            rows = elements.order[changes.source[fresh] - stored]
            parts.append(self._kept_columns(elements.rows).take(rows))
        order = np.concatenate([from_queue[order], fresh])
        owner = changes.key[order]
        keys = self._key_columns(elements.key, elements.rows, owner, elements.order[elements.groups[owner]])
        columns = [
            keys[i] if i in keys else concat_column([part[f"column.{i}"] for part in parts])
            for i in range(len(self.schema))
        ]
        return Delta(self.schema, columns, changes.start[order], changes.end[order], changes.weight[order])

    def _key_columns(self, key: Identity, source: Columns, owner: Int64Array, rows: Int64Array) -> dict[int, pa.Array]:
        """The partition columns, from the hash or from rows that have them."""
        if self._keys and self._recoverable:
            return {self._keys[0]: recover(key.low[owner], self.schema.types[self._keys[0]])}
        return {i: source.arrow(f"column.{i}").take(pa.array(rows)) for i in self._keys}
