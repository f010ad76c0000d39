"""The rows of open sessions, each under its session's number.

A session only takes rows in, until it is forgotten as a whole. So it is a queue that nobody leaves (``queues.py``): a tick
writes the rows that came, and one mark for each session that is forgotten, whose rows drop out when segments merge.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headwater.kernels.hash import mix_all
from headwater.kernels.sort import sort_by_key
from headwater.model.arrays import Int64Array, int64_values
from headwater.model.identity import Identity
from headwater.state.columns import Columns
from headwater.state.manifest import State
from headwater.state.queues import KeyQueues
from headwater.state.store import Store

_FORGOTTEN = 1 << 62  # as a count: more rows than a session ever has
_SLACK = 65_536


class _Queues(KeyQueues):
    """Queues of which only whole ones go."""

    def tidy(self) -> None:
        """Forgotten rows take little room: a few marks may forget very many rows, and would wait long for a merge."""
        if sum(segment.most for segment in self._segments) > 2 * self.rows + _SLACK:
            while len(self._segments) > 1:
                self._merge_last()


class SessionRows(State):
    """Rows with a ``time``, a ``weight`` and columns of the given types, by the number of their session."""

    layouts = ("_queues",)

    def __init__(self, store: Store, types: Mapping[str, pa.DataType]) -> None:
        self._types = {"weight": pa.int64(), **types}
        self._queues = _Queues(store, self._types, lambda counts: np.where(counts >= _FORGOTTEN, counts, 0))

    @property
    def rows(self) -> int:
        return self._queues.rows

    def clear(self) -> None:
        self._queues.clear()

    def counts(self, sessions: Int64Array) -> Int64Array:
        """How many rows each of the sessions has."""
        return self._queues.find(_key(sessions)).count

    def load(self, sessions: Int64Array) -> tuple[Int64Array, Columns]:
        """All rows of the sessions, and to which of them each belongs."""
        queued = self._queues.find(_key(sessions))
        located = self._queues.locate(queued, np.ones_like(queued.count), queued.count)
        owner = np.repeat(np.arange(len(sessions)), queued.count)
        order, parts = self._queues.take(located, np.arange(len(owner)))
        assert parts, "a session that is kept has rows"
        columns = Columns.concat(parts)
        weight = int64_values(columns.arrow("weight"))
        return owner[order], columns | {"time": self._queues.times(located)[order], "weight": weight}

    def change(self, session: Int64Array, rows: Columns, forgotten: Int64Array) -> None:
        """Add rows to the sessions, which may be new, and forget others."""
        if len(session) + len(forgotten) == 0:
            return
        low = mix_all(session.view(np.uint64))
        order = sort_by_key(*Identity(low))
        rows, low = rows.take(order), low[order]
        begins = np.flatnonzero(np.append(True, low[1:] != low[:-1])) if len(low) else np.empty(0, np.int64)
        sizes = np.diff(np.append(begins, len(low)))
        keys = np.concatenate([low[begins], mix_all(forgotten.view(np.uint64))])
        by_key = np.argsort(keys, kind="stable")
        sizes = np.concatenate([sizes, np.zeros(len(forgotten), np.int64)])[by_key]
        key = Identity(keys[by_key])
        queued = self._queues.find(key)
        count = np.where(by_key < len(begins), queued.count + sizes, _FORGOTTEN)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        columns = rows.only(self._types) | {"weight": pa.array(rows["weight"])}
        self._queues.push(key, queued, count, offsets, rows.time, columns, Columns())
        self._queues.tidy()


def _key(sessions: Int64Array) -> Identity:
    return Identity(mix_all(sessions.view(np.uint64)))
