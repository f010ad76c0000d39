"""Endpoints that other shards have shown by now and this one has not, after the number of shards has changed.

Speculative operators show what they know up to the latest instant that they have seen. Operators below may bring rows of
later instants to one shard and not to another, so shards come unequally far. When their keys are spread anew all go on from
the furthest; what that passes over is kept here, to be shown in the next tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from headwater.model.time import BEGINNING, INFINITY
from headwater.state.columns import Columns
from headwater.state.manifest import Route, rows_by_shard
from headwater.state.runs import TimeRuns
from headwater.state.store import Store


class WaitingNews(TimeRuns):
    """Rows that wait for the next tick, whatever their time."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, constants=("weight", "port", "begins"))

    def take_all(self) -> list[Columns]:
        """Nothing waits any more."""
        if not self.rows:
            return []
        parts = self.advance(INFINITY)
        self.frontier = BEGINNING
        return parts

    @classmethod
    def give(cls, parts: Iterable[Columns], targets: Sequence[Self], route: Route) -> None:
        """To each the rows of its shard."""
        for part in parts:
            for shard, rows in rows_by_shard(route(part)):
                targets[shard].append(part.take(rows))
