"""Raises of a frontier that are still to come: a staircase, later steps are higher.

The paper writes them into an array by instant, which goes back when a later slot was written earlier (digest E1).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple


class Step(NamedTuple):
    """From the instant ``due`` on, nothing before ``frontier`` comes any more."""

    due: int
    """Of the wall clock; or a number of rows, in the staircases that wait for rows."""
    frontier: int
    reason: str
    """The bound that says so."""


Stair = tuple[Step, ...]
"""Strictly increasing in ``due`` and in ``frontier``."""


def offer(stair: Stair, step: Step) -> Stair:
    """With another step, unless an earlier one is as high; steps that come later and are not higher fall out."""
    place = bisect_right(stair, step.due, key=lambda s: s.due)
    if place and stair[place - 1].frontier >= step.frontier:
        return stair
    begin = place - 1 if place and stair[place - 1].due == step.due else place
    end = place
    while end < len(stair) and stair[end].frontier <= step.frontier:
        end += 1
    return (*stair[:begin], step, *stair[end:])


def fire(stair: Stair, until: int) -> tuple[Stair, Step | None]:
    """What is left after the steps that are due, and the highest of these."""
    due = bisect_right(stair, until, key=lambda s: s.due)
    return (stair[due:], stair[due - 1]) if due else (stair, None)
