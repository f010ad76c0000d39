"""The newest time of a stream as it was at earlier instants of the wall clock: a short memory, coarser the older it is."""

from __future__ import annotations

from bisect import bisect_right

from headwater.model.time import BEGINNING

Ring = tuple[tuple[int, int], ...]
"""(wall clock, largest time seen by then), both strictly increasing."""

_MOST = 256


def remembered(ring: Ring, wall: int, newest: int) -> Ring:
    """With the newest time at an instant that is not before the last one."""
    if ring and ring[-1][1] >= newest:
        return ring
    ring = (*(ring[:-1] if ring and ring[-1][0] == wall else ring), (wall, newest))
    # Of the older half every second entry goes: what is asked of it is answered by the entry before, never too new.
    return ring if len(ring) <= _MOST else (*ring[: _MOST // 2 : 2], *ring[_MOST // 2 :])


def newest_at(ring: Ring, wall: int) -> int:
    """The largest time seen by an instant of the wall clock, or one a little smaller."""
    place = bisect_right(ring, wall, key=lambda entry: entry[0])
    return ring[place - 1][1] if place else BEGINNING
