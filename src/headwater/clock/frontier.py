"""The frontier of a stream from the times of its rows: a pure function, so that every task and the driver agree on it.

A row may be ``disorder`` older than the newest one that came before it in its partition, so nothing before
(newest - disorder) comes any more. Of several partitions the slowest counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from attrs import field, frozen

from headwater.model.time import BEGINNING, INFINITY


class Seen(NamedTuple):
    """What one task saw of one partition of a stream in one tick."""

    partition: str
    """"" where the source has no partitions of its own."""
    newest: int
    oldest: int
    rows: int
    late: int = 0
    """Rows that came too late; they are not among ``rows``."""
    bad: int = 0
    """Rows that are not what the stream declares; not among ``rows`` either."""
    promise: int = BEGINNING
    """The source's own word: nothing before this instant comes any more, in any partition."""

    def plus(self, other: Seen) -> Seen:
        """Both sightings of one partition as one."""
        return Seen(
            self.partition,
            max(self.newest, other.newest),
            min(self.oldest, other.oldest),
            self.rows + other.rows,
            self.late + other.late,
            self.bad + other.bad,
            max(self.promise, other.promise),
        )


@frozen
class StreamClock:
    """How far one stream has come. Immutable: ``after`` gives the next one."""

    disorder: int | None = 0
    """None: the times of rows say nothing of those to come, only the source's own promises do."""
    newest: tuple[tuple[str, int], ...] = ()
    """The newest time of each partition, sorted by partition."""
    frontier: int = field(default=BEGINNING)
    """Rows before it are late."""

    def after(self, seen: Iterable[Seen]) -> StreamClock:
        """The clock once these rows have come; it never goes back."""
        newest = dict(self.newest)
        frontier = self.frontier
        for part in seen:
            frontier = max(frontier, part.promise)
            if part.rows:
                newest[part.partition] = max(newest.get(part.partition, BEGINNING), part.newest)
        if self.disorder is not None and newest:
            slowest = min(newest.values())
            frontier = max(frontier, slowest - self.disorder if slowest > BEGINNING + self.disorder else BEGINNING)
        return StreamClock(self.disorder, tuple(sorted(newest.items())), frontier)

    def ended(self) -> StreamClock:
        """Nothing more comes."""
        return StreamClock(self.disorder, self.newest, INFINITY)

    def to_manifest(self) -> dict[str, object]:
        return {"disorder": self.disorder, "newest": [list(n) for n in self.newest], "frontier": self.frontier}

    @classmethod
    def from_manifest(cls, kept: dict) -> StreamClock:
        return cls(kept["disorder"], tuple((p, n) for p, n in kept["newest"]), kept["frontier"])
