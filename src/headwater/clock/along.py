"""The engine's own clock as a member of the skew matrix: it goes on when everything is silent.

At every instant it has just said that instant, so what it says of the streams that go along with it needs no staircase.
It counts from when all that had arrived was taken: a backlog, or a restart after an hour, makes no row late (digest 12.3).
"""

from __future__ import annotations

from headwater.clock.raises import Step
from headwater.clock.relations import WALL
from headwater.clock.rules import Rules, StreamRules
from headwater.model.time import BEGINNING

BREATH = 1_000_000
"""Time passes always; a tick per second shows it often enough."""
_LONGEST_BREATH = 10 * BREATH
_BREATHS = 60
"""The longer nothing has come, the less a moment matters: a minute of silence shows within a second, an hour within ten."""


def breath(silence: int) -> int:
    """How long an engine rests before a tick without rows, when nothing has come for so long."""
    return min(max(BREATH, silence // _BREATHS), _LONGEST_BREATH)


def by_wall_clock(rules: Rules, stream: str, taken_until: int) -> Step | None:
    """How far a stream is because of the time alone, once all that had arrived by an instant was taken."""
    latency = rules.streams[stream].latency
    if latency is None or taken_until <= BEGINNING:
        return None
    found = [
        Step(taken_until, taken_until - bound.after - latency - bound.lag + 1, rules.reason(WALL, stream, bound))
        for bound in rules.bounds.get((WALL, stream), ())
    ]
    return max(found, key=lambda step: step.frontier, default=None)


def goes_along(rules: Rules, stream: str) -> bool:
    """Does the frontier of a stream rise with the wall clock, whatever comes? Or do rows teach how?"""
    return bool(rules.usable(WALL, stream))


def credible(rules: StreamRules, newest: int, now: int) -> int:
    """A time that is further ahead of the wall clock than declared is a mistake, and says nothing of other rows."""
    return newest if rules.ahead is None else min(newest, now + rules.ahead)
