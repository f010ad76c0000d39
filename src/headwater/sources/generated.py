"""Sources that make up their rows from a running number, at a pace or as fast as they are read."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from headwater.sources.base import Polled, Source, Split

SPLIT_NUMBERS = 250_000
"""A task makes up to so many at once."""


class GeneratedSource(Source):
    """Numbers from 0 on; a split is a range of them, so everything can be made again after a crash.

    Paced, number n is due n / ``rate`` seconds after the source was first read; what was missed while nothing ran is made
    up for, in ticks of bounded size. Unpaced, everything is due at once.
    """

    rate: int
    paced: bool
    rows_per_tick: int
    wall_clock: Callable[[], int] | None = None
    """Microseconds since the epoch; None: the real one."""
    since: int | None = None
    """Paced, as if it had been running since then: it begins with what is due when it is first read. So several sources keep
    pace with each other, whenever each of them starts. None: number 0 is due when the source is first read."""

    @property
    @abstractmethod
    def numbers(self) -> int | None:
        """How many numbers there are; None: no end."""

    def rows_of(self, first: int, last: int) -> int:
        """How many rows a range of numbers has."""
        return last - first

    def poll(self, offset: Any, rows: int) -> Polled:
        now = time.time_ns() // 1000 if self.wall_clock is None else self.wall_clock()
        next_, began = (offset["next"], offset["began"]) if offset is not None else self._beginning(now)
        last = next_ + self._numbers_for(rows)
        if self.paced:
            last = min(last, self._due(now, began))
        if self.numbers is not None:
            last = min(last, self.numbers)
        last = max(last, next_)
        cuts = [*range(next_, last, SPLIT_NUMBERS), last]
        splits: list[Split] = [{"from": a, "to": b, **self._known(began)} for a, b in pairwise(cuts)]
        return Polled(
            splits, {"next": last, "began": began}, finished=self.numbers is not None and last >= self.numbers
        )

    def total_rows(self) -> int | None:
        return None if self.numbers is None else self.rows_of(0, self.numbers)

    def split_rows(self, split: Split) -> int:
        return self.rows_of(split["from"], split["to"])

    def _beginning(self, now: int) -> tuple[int, int]:
        if self.since is None or not self.paced:
            return 0, now
        return max(self._due(now, self.since), 0), self.since

    def _due(self, now: int, began: int) -> int:
        return (now - began) * self.rate // 1_000_000

    def _known(self, began: int) -> Split:
        """What else a split must say."""
        return {}

    def _numbers_for(self, rows: int) -> int:
        """A range of numbers with about so many rows."""
        sample = 1_000_000
        return -(-rows * sample // max(self.rows_of(0, sample), 1))
