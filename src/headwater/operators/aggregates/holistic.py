"""The rows of aggregates that need the rows themselves, also those of users.

A fingerprint among a group's totals cuts its segments where the multiset of values changes, so one instant of a segment
stands for all of it. The rows of the groups that have segments are looked up, and each becomes the range of segments in
which it is valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headwater.kernels.extremes import cover_instants, net_ranges
from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.aggregates.snapshots import Snapshots, ranks_of
from headwater.operators.sweeps.endpoints import Segments
from headwater.state.buckets import ExpiryBuckets
from headwater.state.columns import concat_column, take_column
from headwater.state.manifest import Scalars, State, agreed
from headwater.state.store import Store


class HolisticRows(State):
    """The rows of each measure that needs them, by group, until nothing that is still to come can show them."""

    # The instants that segments are looked at depend on it, so keys that have come unequally far cannot be in one shard.
    scalars: ClassVar[Scalars] = {"_frontier": agreed}
    layouts = ("_kept",)

    def __init__(self, store: Store, measures: Sequence[int]) -> None:
        self._frontier = BEGINNING
        self._kept = {
            measure: ExpiryBuckets(store, constants=("weight",), identity=("start", "value")) for measure in measures
        }

    @property
    def rows(self) -> int:
        return sum(rows.rows for rows in self._kept.values())

    def take_over(self, old: HolisticRows, measures: Mapping[int, int]) -> None:
        """Go on with the rows of another state: by measure, the one that it was there."""
        self._frontier = old._frontier
        self._kept |= {now: old._kept[was] for now, was in measures.items() if was in old._kept}

    def append(
        self, measure: int, key: Identity, start: Int64Array, end: Int64Array, weight: Int64Array, values: pa.Array
    ) -> None:
        self._kept[measure].append(key, end, {"start": start, "weight": weight, "value": values})

    def expire(self, frontier: int) -> None:
        """A segment that is open at the frontier may show rows that end there; those that ended earlier may go."""
        for rows in self._kept.values():
            self._frontier = frontier
            if frontier > BEGINNING:
                rows.expire(frontier if frontier == INFINITY else frontier - 1)

    def snapshots(
        self, measure: int, type_: pa.DataType, key: Identity, segments: Segments, frontier: int
    ) -> Snapshots:
        """The values of each segment; ``frontier``: rows that ended before it may be gone."""
        touched = np.concatenate([[True], segments.key[1:] != segments.key[:-1]])[: len(segments.key)]
        first = np.append(np.flatnonzero(touched), len(segments.key))
        asked = key.take(segments.key[first[:-1]])
        # Any instant of a segment will do. Not the first: its rows may have ended, and others of like value have followed.
        # What is open at the frontier is known to hold just before it.
        instants = np.minimum(np.maximum(segments.start, max(frontier, BEGINNING + 1) - 1), segments.end - 1)
        parts: list[tuple[np.ndarray | pa.Array, ...]] = []
        for segment, query, row in self._kept[measure].matches(asked):
            low, high = cover_instants(
                first, instants, query, segment.array("start")[row], segment.array("expiry")[row]
            )
            valid = np.flatnonzero(low < high)
            if len(valid):
                values = take_column(segment["value"], row[valid])
                parts.append((query[valid], low[valid], high[valid], segment.array("weight")[row[valid]], values))
        if not parts:
            nothing = np.empty(0, np.int64)
            return Snapshots(len(instants), nothing, nothing, nothing, nothing, pa.array([], type_))
        group, *columns = (concat_column(column) for column in zip(*parts, strict=True))
        return Snapshots(len(instants), *_arrange(asked.take(group), *columns))


def _arrange(
    key: Identity, low: Int64Array, high: Int64Array, weight: Int64Array, values: pa.Array
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, pa.Array]:
    """Sort by (group, value), and where some rows take others away keep only what is left."""
    ranks = ranks_of(values)
    order, groups = sort_by_key_time(key.low, key.high, ranks)
    if weight.min() < 0:
        return *net_ranges(order, groups, ranks, low, high, weight), values
    return order, low[order], high[order], weight[order], values
