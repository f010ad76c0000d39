"""What one task saw of one partition of a stream in one tick: all that the clock needs to know of its rows."""

from __future__ import annotations

from typing import NamedTuple

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
    own_promise: int = BEGINNING
    """The same of this partition alone."""
    sent: int = BEGINNING
    """The largest send time of a row (wall clock), where it is known."""
    late_newest: int = BEGINNING
    """Late rows were sent like others: bounds learn from them, and those of other streams may follow from them."""
    late_oldest: int = INFINITY
    counted: tuple[tuple[int, int, int], ...] = ()
    """(start, end, number): so many events have their sync time in the interval, says the source (CEDR A.1)."""
    syncs: tuple[tuple[int, int], ...] = ()
    """(sync time, number) of the events that came, where the source counts them."""

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
            max(self.own_promise, other.own_promise),
            max(self.sent, other.sent),
            max(self.late_newest, other.late_newest),
            min(self.late_oldest, other.late_oldest),
            self.counted + other.counted,
            self.syncs + other.syncs,
        )

    @property
    def newest_of_all(self) -> int:
        """Of rows in time and late ones."""
        return max(self.newest, self.late_newest)

    @property
    def oldest_of_all(self) -> int:
        return min(self.oldest, self.late_oldest)
