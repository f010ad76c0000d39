"""Frontiers from counts: a source says how many events there are in an interval of time (external CTIs, CEDR A.1, A.12).

Once so many have come, nothing before the end of the interval comes any more: as long as that is true of every interval
before it. Events and counts may come in any order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from attrs import frozen

from headwater.errors import StreamError
from headwater.model.time import BEGINNING


class Interval(NamedTuple):
    """[start, end), with how many events it has, and how many of them have come."""

    start: int
    end: int
    expected: int
    received: int


@frozen
class Counted:
    """What is known of the counts of one stream. Immutable: ``after`` gives the next one."""

    intervals: tuple[Interval, ...] = ()
    """Those that are not complete, or not next; in their order, without overlap."""
    received: tuple[tuple[int, int], ...] = ()
    """(sync time, number) of the events that no interval of these holds, from ``last`` on; sorted."""
    last: int = 0
    """Where the next interval must begin: at first the origin of time, as in the paper."""
    begun: bool = False
    """Has any interval been complete?"""

    @property
    def frontier(self) -> int:
        """Nothing before it comes any more."""
        return self.last if self.begun else BEGINNING

    def after(self, counted: Iterable[Sequence[int]], syncs: Iterable[Sequence[int]]) -> Counted:
        """With more counts, as (start, end, number), and more events, as (sync time, number).

        An event that comes after its interval was complete is late, and not counted.
        """
        waiting = dict(self.received)
        for sync, number in syncs:
            if sync >= self.last or not self.begun:
                waiting[sync] = waiting.get(sync, 0) + number
        intervals = _with(self.intervals, counted, self.frontier)
        intervals, waiting = _filled(intervals, waiting)
        return Counted(tuple(intervals), tuple(sorted(waiting.items())), self.last, self.begun)._advanced()

    def _advanced(self) -> Counted:
        """Over all intervals that are complete, one after another without a gap (CEDR erratum 14)."""
        last, passed = self.last, 0
        for interval in self.intervals:
            if interval.start > last or interval.received < interval.expected:
                break
            last, passed = interval.end, passed + 1
        if not passed:
            return self
        kept = tuple((sync, number) for sync, number in self.received if sync >= last)
        return Counted(self.intervals[passed:], kept, last, True)

    def to_manifest(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "intervals": [list(interval) for interval in self.intervals],
            "received": [list(pair) for pair in self.received],
            "last": self.last,
            "begun": self.begun,
        }

    @classmethod
    def from_manifest(cls, kept: Mapping[str, Any]) -> Counted:
        intervals = tuple(Interval(*interval) for interval in kept["intervals"])
        return cls(intervals, tuple((s, n) for s, n in kept["received"]), kept["last"], kept["begun"])


def _with(known: Sequence[Interval], counted: Iterable[Sequence[int]], frontier: int) -> list[Interval]:
    """The intervals with new ones, in their order. One that is told again says nothing new."""
    told = {(i.start, i.end, i.expected) for i in known}
    new = {(start, end, number) for start, end, number in counted if end > frontier} - told
    found = sorted([*known, *(Interval(*interval, 0) for interval in new)])
    for before, next_ in pairwise(found):
        if next_.start < before.end:
            raise StreamError(
                "OVERLAPPING_COUNTS",
                f"the counts of [{before.start}, {before.end}) and [{next_.start}, {next_.end}) overlap",
                detail=f"They are {before.expected} and {next_.expected}.",
                hint="An instant belongs to one interval only: [_start, _end).",
            )
    return found


def _filled(intervals: Sequence[Interval], waiting: dict[int, int]) -> tuple[list[Interval], dict[int, int]]:
    """The events that belong to an interval are counted there."""
    filled, rest, starts = list(intervals), {}, [i.start for i in intervals]
    for sync, number in waiting.items():
        place = bisect_right(starts, sync) - 1
        if place < 0 or sync >= filled[place].end:
            rest[sync] = number
            continue
        filled[place] = filled[place]._replace(received=filled[place].received + number)
    for interval in filled:
        if interval.received > interval.expected:
            raise StreamError(
                "MISCOUNTED",
                f"more events came than there are in [{interval.start}, {interval.end})",
                detail=f"The source has counted {interval.expected}, and {interval.received} have come.",
                hint="A source that repeats events cannot count them.",
            )
    return filled, rest
