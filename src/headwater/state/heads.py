"""The least of many instants, one per key, that only ever grow: without looking at the whole state.

Each key has one entry, which may be out of date: it is then a bound from below. Only when it has come to the head of
the queue is it renewed, so the work is proportional to how far the least has moved, also where many keys have one
instant: of these a few are looked at, and the first that still has it is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Self

import numpy as np

from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.model.time import INFINITY
from headwater.state.columns import Columns
from headwater.state.manifest import Route, SavedState, Scalars, State, rows_by_shard
from headwater.state.runs import TimeRuns
from headwater.state.store import Store

_CHUNK = 64
_MOST_CHUNKS = 13  # each twice the one before: half a million entries, when one key has held back many

Current = Callable[[Identity], Int64Array]
"""The instant of each of the keys now."""


class Heads(State):
    """A queue of (instant, key) that is renewed lazily."""

    scalars: ClassVar[Scalars] = {"_renewed": None}
    layouts = ("_runs",)

    def __init__(self, store: Store) -> None:
        self._store = store
        self.clear()

    def clear(self) -> None:
        self._runs = TimeRuns(self._store)
        self._renewed = 0
        """Of the entries at the frontier of the runs, so many have been renewed: runs merge without changing their order."""

    def push(self, instant: Int64Array, key: Identity) -> None:
        """These keys are new."""
        if len(instant):
            self._runs.append(Columns.under(key, {"time": instant}))

    def least(self, current: Current) -> int:
        """The smallest instant, or a bound below it when that takes too long to find; INFINITY if there is no key."""
        chunk = _CHUNK
        for _ in range(_MOST_CHUNKS):
            parts = self._entries()
            if not parts:
                return INFINITY
            self._advance(min(int(part.time[0]) for part in parts))
            bound = min((int(part.time[chunk - 1]) for part in parts if part.rows >= chunk), default=INFINITY)
            if bound > self._runs.frontier:
                least = self._renew_before(bound, parts, current)
            else:
                least = self._renew_first(chunk, parts, current)
            if least is not None:
                return least
            chunk *= 2
        return self._runs.frontier

    def _entries(self) -> list[Columns]:
        """What has not been renewed: a part per run, each in the order of time."""
        parts: list[Columns] = []
        passed = self._renewed
        for part in self._runs.between(self._runs.frontier, INFINITY):
            count = part.rows
            skip = min(passed, int(np.searchsorted(part.time, self._runs.frontier, side="right")))
            passed -= skip
            if skip < count:
                parts.append(part.slice(skip, count) if skip else part)
        return parts

    def _advance(self, instant: int) -> None:
        if instant > self._runs.frontier:
            self._runs.advance(instant)
            self._renewed = 0

    def _renew_before(self, bound: int, parts: list[Columns], current: Current) -> int | None:
        """Look at the entries before the bound, at most a chunk per run; the smallest instant, if it is there."""
        ends = [int(np.searchsorted(part.time, bound)) for part in parts]
        entries = Columns.concat([part.slice(0, end) for part, end in zip(parts, ends, strict=True) if end])
        key = entries.key
        now = current(key)
        least = int(now.min())
        limit = min(least, bound)
        passed = np.flatnonzero(entries.time < limit)
        self._advance(limit)
        self.push(now[passed], key.take(passed))
        return least if least < bound else None

    def _renew_first(self, chunk: int, parts: list[Columns], current: Current) -> int | None:
        """Look at a chunk of the entries of the first instant, of which there are many; that instant, if it holds."""
        head = self._runs.frontier
        first: list[Columns] = []
        left = chunk
        for part in parts:
            size = min(left, int(np.searchsorted(part.time, head, side="right")))
            first += [part.slice(0, size)] if size else []
            left -= size
        entries = Columns.concat(first)
        key = entries.key
        now = current(key)
        holds = now == head
        passed = np.arange(int(holds.argmax()) if holds.any() else len(holds))
        self._renewed += len(passed)
        self.push(now[passed], key.take(passed))
        return head if len(passed) < len(holds) else None

    def from_manifest(self, manifest: SavedState) -> None:
        super().from_manifest({"renewed": 0} | manifest)

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        """Without what has been renewed: each key has one entry."""
        for part in (part for heads in old for part in heads._entries()):
            for shard, rows in rows_by_shard(route(part)):
                new[shard]._runs.append(part.take(rows))
