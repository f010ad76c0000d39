"""How far a stream lags what goes on without it: the wall clock, or the streams that are read with it. Learned.

Both let time pass while the stream is silent. They are learned as the stream's own bounds are, from its rows alone: of a
stream that has sent hardly any nothing is known, and it holds the others up (Srivastava & Widom 6, digest 9.1c).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from headwater.clock.estimate import Learner, new_learner
from headwater.clock.learners import ForgettingMaximum, ForgettingQuantile
from headwater.clock.ring import Ring, newest_at
from headwater.clock.rules import StreamRules
from headwater.language.time_clauses import HeartbeatEstimated
from headwater.model.time import BEGINNING

ENOUGH_ROWS = 20
"""Every record costs a row, and most come early: after so many rows and with a margin, none was late (digest 9.1c)."""
_MEMORY = 86_400_000_000
"""Of wall-clock time: outages are rare, and one that is forgotten costs rows again."""
ALONG = "HEARTBEAT ESTIMATED (WALL CLOCK)"
ACROSS = "HEARTBEAT ESTIMATED from other streams"


@frozen
class LearnedLag:
    """Immutable: ``learn`` gives the next one."""

    learner: Learner
    margin: float
    least: int
    """It is never taken to be less: silence is given so much time before it is thought to be one."""
    needed: int
    """Nothing is promised before so many rows have come."""
    rows: int = 0
    against: tuple[str, ...] = ()
    """What it lags; with others than these one begins anew."""

    @classmethod
    def of(cls, clause: HeartbeatEstimated, *, has_unit: bool) -> LearnedLag:
        """Nothing learned yet. Where time is plain numbers, nothing says how much of it is a long while."""
        least = clause.silence if has_unit else 0
        margin = clause.margin if clause.late_budget is None else 0.0
        slowly = evolve(clause, window_time=_MEMORY, window_rows=None)
        learner = new_learner(slowly, 0, has_unit=has_unit)
        return cls(learner, margin, least, needed=max(ENOUGH_ROWS, clause.warmup_rows))

    def learn(self, age: int, rows: int, now: int, *, only_more: bool = False) -> LearnedLag:
        """With the rows of one more tick, the oldest of which is so much behind; ``only_more``: at least so much."""
        if only_more and age <= self.learner.lag:
            return self
        return evolve(self, learner=self.learner.after(max(age, 0), rows, now), rows=self.rows + rows)

    @property
    def lag(self) -> int | None:
        """Strict, as that of a bound; None: not enough is known."""
        if self.rows < self.needed:
            return None
        return max(math.ceil(self.learner.lag * (1 + self.margin)), self.least, 1)

    def anew(self, against: tuple[str, ...]) -> LearnedLag:
        """Nothing is known of these."""
        return evolve(self, learner=self.learner.forgotten(), rows=0, against=against)

    def to_manifest(self) -> dict[str, Any]:
        return {
            "learner": self.learner.to_manifest(),
            "margin": self.margin,
            "least": self.least,
            "needed": self.needed,
            "rows": self.rows,
            "against": list(self.against),
        }

    @classmethod
    def from_manifest(cls, kept: Mapping[str, Any]) -> LearnedLag:
        kind = ForgettingQuantile if "share" in kept["learner"] else ForgettingMaximum
        known: dict[str, Any] = dict(kept, learner=kind.from_manifest(kept["learner"]), against=tuple(kept["against"]))
        return cls(**known)


class Pack:
    """Streams of one domain and one kind of time, each of which may lag the newest row of the others.

    The others count as one stream: the weakest bound between any two of them, at no more cost if they are many (digest 8).
    """

    def __init__(self, begun: Mapping[str, tuple[int, Ring]]) -> None:
        """``begun``: of those of which rows have come, the newest and those before."""
        self.names = tuple(sorted(begun))
        self._begun = begun
        self._first = sorted(begun, key=lambda name: begun[name][0], reverse=True)[:2]

    def leader(self, name: str) -> str | None:
        """Of the others the one with the newest row."""
        return next((other for other in self._first if other != name), None)

    def newest(self, leader: str) -> int:
        return self._begun[leader][0]

    def newest_at(self, leader: str, wall: int) -> int:
        """As it was at an instant of the wall clock."""
        return newest_at(self._begun[leader][1], wall)


def packs(rules: Mapping[str, StreamRules], domain: Iterable[str], progress: Mapping[str, Any]) -> Sequence[Pack]:
    """The streams of a domain that can be compared."""
    begun = {name: (progress[name].newest, progress[name].ring) for name in domain if progress[name].newest > BEGINNING}
    found = [{n: b for n, b in begun.items() if rules[n].has_unit == unit} for unit in (True, False)]
    return [Pack(members) for members in found if len(members) > 1]
