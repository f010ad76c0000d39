"""What a tick takes: all that was handed over, and what is new where somebody must ask. Told without an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from headwater.runtime.delivery import Delivery
from headwater.runtime.loop import Loop


def loop(poll: Callable[[], Sequence[Delivery]]) -> Loop:
    wall, times = SimpleNamespace(now=lambda: 0), SimpleNamespace(clock=SimpleNamespace(now=0))
    core: Any = SimpleNamespace(awaited=(), wall=wall, times=times)
    return Loop(core, poll)


def test_who_must_be_asked_is_asked_while_others_hand_over_again_and_again():
    handed, found = Delivery("frame", 1), Delivery("files", 1)
    ticks = loop(lambda: [found])
    ticks.submit(handed)
    assert ticks._next() == [handed, found]


def test_a_source_that_fails_fails_what_was_handed_over():
    handed = Delivery("frame", 1)

    def fail() -> Sequence[Delivery]:
        raise ValueError("the disk is gone")

    ticks = loop(fail)
    ticks.submit(handed)
    assert ticks._next() is None
    assert handed.done.is_set()
    assert handed.error is ticks.error
    assert "the disk is gone" in str(ticks.error)
