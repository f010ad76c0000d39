"""Slots: the distinct rows at hand of some partitions, numbered in the order of their partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.operators.ranking.sort_order import SortColumn, sort_ranks
from headwater.state.columns import concat_column


class Rows(NamedTuple):
    """Rows that are known in full: the number of their partition, their identity and their columns."""

    partition: Int64Array
    identity: Identity
    columns: Sequence[pa.Array]


class Slots(NamedTuple):
    """The slots of partition k are first[k] to first[k + 1]; of each the row's identity and columns."""

    first: Int64Array
    identity: Identity
    columns: list[pa.Array]

    @property
    def partition(self) -> Int64Array:
        """The partition of each slot."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


def assign_slots(
    partitions: int, known: Sequence[Rows], others: Identity, order: Sequence[tuple[int, SortColumn]]
) -> tuple[Slots, list[Int64Array]]:
    """Slots of the known rows, and the slots of each part of them and of the others; -1: not among the known rows.

    Equal rows share a slot. ``order``: the sort columns with their places among the columns.
    """
    sizes = [len(part.partition) for part in known]
    count = sum(sizes)
    identity = Identity.concat([*(part.identity for part in known), others])
    unknown = np.arange(len(identity.low)) >= count  # sorts behind the known rows of the same identity
    by_row, groups = sort_by_key_time(*identity, unknown.astype(np.int64))
    first_of = by_row[groups[:-1]]
    distinct = np.flatnonzero(first_of < count)
    chosen = first_of[distinct]
    where = pa.array(chosen)
    columns = [concat_column([part.columns[i] for part in known]).take(where) for i in range(len(known[0].columns))]
    partition = np.concatenate([part.partition for part in known])[chosen]
    arranged = np.lexsort((sort_ranks(columns, [(columns[i], how) for i, how in order]), partition))
    slot_of = np.full(len(first_of), -1, np.int64)
    slot_of[distinct[arranged]] = np.arange(len(arranged))
    slots = np.empty(len(by_row), np.int64)
    slots[by_row] = np.repeat(slot_of, np.diff(groups))
    where = pa.array(arranged)
    first = np.searchsorted(partition[arranged], np.arange(partitions + 1))
    whole = Slots(first, identity.take(chosen[arranged]), [column.take(where) for column in columns])
    return whole, np.split(slots, np.cumsum(sizes))
