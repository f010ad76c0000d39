"""What is known of the first rows of each partition, and how endpoints change it.

Of each partition the first rows are kept, more of them than are in sight. They suffice until more have left than there are
to spare; then they are chosen anew among all rows of the partition, which are kept too (Yi et al., Efficient Maintenance
of Materialized Top-k Views, ICDE 2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.kernels.consolidate import consolidate_rows
from headwater.kernels.groups import group_rows
from headwater.kernels.top_k import sweep_top
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity, identify, is_recoverable
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.ranking.sort_order import SortColumn
from headwater.operators.ranking.sort_slots import Rows, Slots, assign_slots
from headwater.operators.sweeps.row_endpoints import RowEndpoints, identity_columns
from headwater.state.buckets import ExpiryBuckets
from headwater.state.columns import Columns
from headwater.state.groups import Groups, LatestGroups
from headwater.state.latest import Found
from headwater.state.manifest import State
from headwater.state.store import Store

_LEAST_SPARE = 32
_GROWTH = 4


class Shown(NamedTuple):
    """Pieces of answer: the slot (a row of ``columns``), the number of the row or 0, the interval, and how many copies."""

    columns: Sequence[pa.Array]
    slot: Int64Array
    number: Int64Array
    start: Int64Array
    end: Int64Array
    weight: Int64Array


class Changed(NamedTuple):
    """What a sweep brought: pieces of answer, and since when rows were in sight that were kept before, and are kept now."""

    shown: list[Shown]
    since_before: list[Int64Array]
    since_after: list[Int64Array]


class _Touched(NamedTuple):
    """Partitions with endpoints: what is kept of each, and their endpoints."""

    key: Identity
    found: Found
    base: Groups
    endpoints: RowEndpoints
    fresh: BoolArray  # which endpoints count only from now on
    order: Int64Array  # the endpoints by (partition, time)
    groups: Int64Array

    @property
    def owner(self) -> Int64Array:
        """The partition of each endpoint."""
        owner = np.empty(len(self.order), np.int64)
        owner[self.order] = np.repeat(np.arange(len(self.groups) - 1), np.diff(self.groups))
        return owner


class _Base(NamedTuple):
    """The kernel's first arguments: the rows as they are before the first endpoint."""

    first: Int64Array
    copies: Int64Array
    entries: Int64Array
    entry_slot: Int64Array
    entry_copies: Int64Array
    entry_since: Int64Array
    partial: BoolArray
    bound: Int64Array
    spare: Int64Array


class TopRows(State):
    """The first rows of each partition, as of the frontier; with a limit all rows as well, until they have ended.

    ``window``: rows number window[0] + 1 to window[1] are in sight.
    """

    layouts = ("_first", "_all")

    def __init__(
        self,
        store: Store,
        schema: Schema,
        order: Sequence[tuple[int, SortColumn]],
        window: tuple[int, int],
        *,
        ranked: bool,
    ) -> None:
        self._order, self._window, self._ranked = order, window, ranked
        self._names = [f"column.{i}" for i in range(len(schema))]
        number, word = np.empty(0, np.int64), np.empty(0, np.uint64)
        self._wide = not is_recoverable(schema.types)
        columns = Columns.numbered(pa.array([], type_) for type_ in schema.types) | {"copies": number, "since": number}
        columns |= identity_columns("row.", Identity(word, word), wide=self._wide)
        self._first = LatestGroups(store, columns=columns, scalars={"partial": np.empty(0, np.uint8), "spare": number})
        self._all: ExpiryBuckets | None = None
        if window[1] < INFINITY:
            self._all = ExpiryBuckets(store, constants=("weight",), identity=("start", *self._names))

    @property
    def rows(self) -> int:
        return self._first.rows + (self._all.rows if self._all is not None else 0)

    # -- all rows ---------------------------------------------------------------------------------------------------

    def append(self, delta: Delta, partition: Sequence[str], frontier: int) -> None:
        """Remember the rows that do not end before the frontier: later on, no others will be asked for."""
        if self._all is not None and len(delta):
            later = delta.filter(delta.end >= frontier)
            columns = Columns.numbered(later.columns) | {"start": later.start, "weight": later.weight}
            self._all.append(later.key(partition), later.end, columns)

    def expire(self, frontier: int) -> None:
        """Forget rows that end before the frontier; one that ends there may still be lengthened."""
        if self._all is not None:
            self._all.expire(frontier - 1)

    def clear(self) -> None:
        self._first.clear()
        if self._all is not None:
            self._all.expire(INFINITY)

    def _rows_at(self, key: Identity, frontier: int) -> tuple[Rows, Int64Array]:
        """Every row that is valid just before the frontier, with its weight; rows that take others away among them."""
        assert self._all is not None
        owner, rows = self._all.probe(key)
        valid = np.flatnonzero((rows["start"] < frontier) & (rows["expiry"] >= frontier))
        columns = rows.only(self._names).take(valid).payload(len(self._names))
        return Rows(owner[valid], identify(columns, len(valid)), columns), rows.weight[valid]

    # -- sweeping ---------------------------------------------------------------------------------------------------

    def sweep(
        self, endpoints: RowEndpoints, fresh: BoolArray, frontier: int, horizon: int, *, show_open: bool
    ) -> Changed:
        """Go through the endpoints, all of the same partitions, from the frontier on; keep the first rows at the horizon.

        ``fresh``: which endpoints are new. With ``show_open`` what is open at the end is shown for ever, and what was
        shown without the fresh endpoints is taken back; without it only what they close is shown.
        """
        touched = self._touch(endpoints, fresh)
        changed = Changed([], [], [])
        short = self._sweep(touched, frontier, horizon, changed, show_open=show_open, whole=False)
        if short.any():
            mine = short[touched.owner]
            starts = endpoints.starts.rows
            parts = zip(endpoints, (mine[:starts], mine[starts:]), strict=True)
            rest = RowEndpoints(*(part.where(mask) for part, mask in parts))
            touched = self._touch(rest, fresh[mine])
            self._sweep(touched, frontier, horizon, changed, show_open=show_open, whole=True)
        return changed

    def _touch(self, endpoints: RowEndpoints, fresh: BoolArray) -> _Touched:
        key, order, groups = endpoints.partitions()
        found = self._first.find(key)
        return _Touched(key, found, self._first.gather(found), endpoints, fresh, order, groups)

    def _sweep(
        self, touched: _Touched, frontier: int, horizon: int, changed: Changed, *, show_open: bool, whole: bool
    ) -> BoolArray:
        """One pass, from the rows that are kept or from all of them; returns for which partitions they were too few."""
        slots, base, slot = self._arrange(touched, frontier, whole=whole)
        order, groups = touched.order, touched.groups
        time, weight = touched.endpoints.column("time")[order], touched.endpoints.column("weight")[order]
        fresh = touched.fresh[order]
        quiet = np.minimum.reduceat(np.where(fresh, time, INFINITY), groups[:-1])
        window = (*self._window, self._ranked)
        segments, offsets, kept, partial, short = sweep_top(
            *base, groups, time, slot, weight, quiet, *window, horizon, True, show_open
        )
        if show_open:
            weight = np.where(fresh, 0, weight)
            old, _, _, _, too = sweep_top(*base, groups, time, slot, weight, quiet, *window, INFINITY, False, True)
            short = short | too
            segments = self._difference(old, segments)
        segments = segments[:, ~short[slots.partition[segments[0]]]]
        changed.shown.append(Shown(slots.columns, *segments))
        done = np.flatnonzero(~short & (whole | (time[groups[:-1]] < horizon)))
        changed.since_before.append(touched.base.columns.array("since")[group_rows(touched.base.offsets, done)])
        self._keep(touched, slots, done, offsets, kept, partial, base.spare)
        changed.since_after.append(kept[2][group_rows(offsets, done)])
        return short

    def _arrange(self, touched: _Touched, frontier: int, *, whole: bool) -> tuple[Slots, _Base, Int64Array]:
        """Slots for all rows at hand, the partitions as they were at the frontier, and the slot of each endpoint."""
        starts, ends = touched.endpoints
        entries, count = touched.base, len(touched.groups) - 1
        width = len(self._names)
        kept = entries.columns.payload(width)
        known = [
            Rows(np.repeat(np.arange(count), np.diff(entries.offsets)), entries.columns.identity("row."), kept),
            Rows(touched.owner[: starts.rows], starts.identity("row."), starts.payload(width)),
        ]
        entry_copies = entries.columns.array("copies")
        weight = entry_copies
        if whole:
            rows, weight = self._rows_at(touched.key, frontier)
            known.append(rows)
        slots, places = assign_slots(count, known, ends.identity("row."), self._order)
        copies = np.zeros(len(slots.identity.low), np.int64)
        np.add.at(copies, places[2] if whole else places[0], weight)
        partial = (entries.scalars["partial"] != 0) & (not whole)
        bound = slots.first[1:] - 1
        bound[partial] = places[0][entries.offsets[1:][partial] - 1]
        spare = self._spare(entries.scalars.array("spare"), slots, copies, np.diff(touched.groups), whole=whole)
        since = entries.columns.array("since")
        base = _Base(slots.first, copies, entries.offsets, places[0], entry_copies, since, partial, bound, spare)
        return slots, base, np.concatenate([places[1], places[-1]])[touched.order]

    def _spare(
        self, now: Int64Array, slots: Slots, copies: Int64Array, endpoints: Int64Array, *, whole: bool
    ) -> Int64Array:
        """How many rows to keep besides those in sight: few, and more where these were too few.

        With n rows and d endpoints per tick, keeping s costs s per tick, and choosing anew n, at worst every s / d ticks:
        the sum is least for s = sqrt(n * d), so there is no point in more.
        """
        least = max(_LEAST_SPARE, self._window[1] // 4 if self._all is not None else 0)
        if not whole:
            return np.maximum(now, least)
        rows = np.bincount(slots.partition, np.maximum(copies, 0), len(endpoints)) + endpoints
        most = np.maximum(np.sqrt(rows * endpoints).astype(np.int64), 2 * endpoints)
        return np.maximum(np.minimum(_GROWTH * now, most), least)

    def _difference(self, old: Int64Array, new: Int64Array) -> Int64Array:
        """The new segments less the old ones."""
        both = np.concatenate([old, new], axis=1)
        both[4, : old.shape[1]] *= -1
        words = both.view(np.uint64)
        kept, weight = consolidate_rows(words[0], words[1, : None if self._ranked else 0], both[2], both[3], both[4])
        both = both[:, kept]
        both[4] = weight
        return both

    def _keep(
        self,
        touched: _Touched,
        slots: Slots,
        done: Int64Array,
        offsets: Int64Array,
        kept: Int64Array,
        partial: BoolArray,
        spare: Int64Array,
    ) -> None:
        sizes = np.diff(offsets)[done]
        chosen = kept[:, group_rows(offsets, done)]
        columns = Columns.numbered(slots.columns).take(chosen[0]) | {"copies": chosen[1], "since": chosen[2]}
        columns |= identity_columns("row.", slots.identity.take(chosen[0]), wide=self._wide)
        scalars = {"partial": partial[done].astype(np.uint8), "spare": spare[done]}
        found = Found(touched.found.segment[done], touched.found.row[done])
        places = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        self._first.put(touched.key.take(done), places, columns, scalars, sizes == 0, found)

    # -- the end of time --------------------------------------------------------------------------------------------

    def all_since(self) -> Int64Array:
        """Since when each row is in sight that is kept as one of the first."""
        return self._first.live()[1].columns.array("since")

    def still_open(self) -> Shown:
        """What is in sight of all partitions, shown for ever."""
        _, (offsets, columns, _) = self._first.live()
        copies = columns.array("copies")
        total = np.concatenate([np.zeros(1, np.int64), np.cumsum(copies)])
        before = total[:-1] - np.repeat(total[offsets[:-1]], np.diff(offsets))
        low, high = self._window
        weight = np.minimum(before + copies, high) - np.maximum(before, low)
        seen = np.flatnonzero(weight > 0)
        end = np.full(len(seen), INFINITY, np.int64)
        since, rows = columns.array("since")[seen], columns.payload(len(self._names))
        return Shown(rows, seen, before[seen] + 1, since, end, weight[seen])
