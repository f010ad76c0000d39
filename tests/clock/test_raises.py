"""Staircases hold what a running maximum over all offers would give."""

from __future__ import annotations

import itertools
import random

from headwater.clock.raises import Step, fire, offer


def test_a_staircase_is_the_running_maximum_of_all_offers():
    dice = random.Random(5)
    for _ in range(300):
        stair, offers, frontier = (), [], 0
        for now in range(40):
            for _ in range(dice.randint(0, 3)):
                step = Step(now + dice.randint(0, 9), dice.randint(1, 60), "")
                offers.append(step)
                stair = offer(stair, step)
            assert all(a.due < b.due and a.frontier < b.frontier for a, b in itertools.pairwise(stair))
            stair, step = fire(stair, now)
            frontier = max(frontier, step.frontier if step else 0)
            assert frontier == max((s.frontier for s in offers if s.due <= now), default=0)


def test_equal_dues_keep_the_higher_step():
    stair = offer(offer((), Step(3, 5, "low")), Step(3, 7, "high"))
    assert stair == (Step(3, 7, "high"),)
    assert offer(stair, Step(3, 6, "lower")) is stair
