"""The view ``heartbeats``: how far each partition is, what raises it next, and who holds it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headwater.clock.progress import Progress
from headwater.clock.raises import Step
from headwater.model.time import BEGINNING, INFINITY


class Heartbeat(NamedTuple):
    """One row of the view. Instants are those of the stream, but for ``next_due``: microseconds of the wall clock."""

    stream: str
    partition: str
    heartbeat: int | None
    """All rows that still come are newer; None: nothing is promised yet, or the stream has ended."""
    max_ts: int | None
    next_due: int | None
    next_value: int | None
    """What the heartbeat becomes then if no row comes."""
    blocked_by: str
    """Who holds this one, or a query over it, back: streams, or partitions as ``stream/partition``."""
    late_rows: int
    """Of the stream."""
    estimated_delta: int | None


def heartbeats(stream: str, progress: Progress, upcoming: Step | None, slowest: Sequence[str]) -> list[Heartbeat]:
    """A row for each partition; ``upcoming``: what raises it next; ``slowest``: who holds the stream's domain back."""
    frontier = progress.frontier
    parts = progress.parts or (("", progress.floor),)
    behind = [f"{stream}/{name}" for name, track in parts if track.frontier <= frontier < _furthest(progress)]
    found = []
    for name, track in parts:
        own = max(track.frontier, progress.floor.frontier)
        blockers = [b for b in behind if b != f"{stream}/{name}"] if own > frontier else []
        found.append(
            Heartbeat(
                stream,
                name,
                None if progress.ended or own == BEGINNING else own - 1,
                _known(track.newest),
                None if upcoming is None else upcoming.due,
                None if upcoming is None else upcoming.frontier - 1,
                ", ".join(blockers or [s for s in slowest if s != stream]),
                sum(rows for _, rows in progress.late),
                None if progress.estimator is None else progress.estimator.delta,
            )
        )
    return found


def _furthest(progress: Progress) -> int:
    return max((track.frontier for _, track in progress.parts), default=BEGINNING)


def _known(instant: int) -> int | None:
    return None if instant in (BEGINNING, INFINITY) else instant
