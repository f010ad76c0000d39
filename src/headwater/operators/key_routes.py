"""Where the rows of a key go when its operator is part of another one, which is routed by fewer columns than the key has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.delta import shard_of
from headwater.model.identity import identify, is_recoverable, recover
from headwater.state.columns import Columns
from headwater.state.latest import LatestWins
from headwater.state.manifest import Route
from headwater.state.store import MemoryStore


def route_by_part(
    places: Sequence[int], types: Sequence[pa.DataType], shards: int, known: Iterable[Iterable[Columns]]
) -> Route:
    """By the columns at these places of a key of these types. ``known``: rows of each state that have them as ``key.i``.

    Not every row has: only where a row begins are its columns kept. So they are looked up by the key. A key of which none
    are known has only endpoints that cancel each other; any shard will do, as long as it is one.
    """
    if is_recoverable(types):
        return lambda columns: _shards([recover(columns.key.low, types[0])] * len(places), columns.rows, shards)
    table = LatestWins(MemoryStore())
    for rows in (rows for state in known for rows in state if rows.rows):
        shard = _shards([rows[f"key.{i}"] for i in places], rows.rows, shards)
        key = rows.key
        order, groups = sort_by_key_time(*key, np.zeros(len(shard), np.int64))
        first = order[groups[:-1]]
        key, found = key.take(first), table.find(key.take(first))
        table.put(key, shard[first][:, None], {}, np.zeros(len(first), np.bool_), found)

    return lambda columns: table.records(table.find(columns.key), 1)[:, 0]


def _shards(columns: Sequence[pa.Array], rows: int, shards: int) -> Int64Array:
    return shard_of(identify(columns, rows), shards)
