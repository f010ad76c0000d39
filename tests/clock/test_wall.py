"""Clocks that stamps are taken from."""

from __future__ import annotations

import pytest

from headwater.clock.wall import SystemClock, VirtualClock


def test_stamps_grow_even_if_the_clock_stands_still_or_is_set_back():
    clock = VirtualClock(10)
    assert [clock.stamp(), clock.stamp(), clock.now()] == [10, 11, 10]
    clock.set(3)
    assert (clock.now(), clock.stamp()) == (3, 12)
    clock.advance(100)
    assert clock.stamp() == 103
    clock.not_before(500)
    assert clock.stamp() == 501


def test_subscribers_are_told_of_every_move():
    clock, told = VirtualClock(), []
    clock.subscribe(lambda: told.append(clock.now()))
    clock.advance(5)
    clock.set(7)
    assert told == [5, 7]
    with pytest.raises(ValueError, match="time goes forwards"):
        clock.advance(-1)


def test_the_system_clock_is_in_microseconds():
    clock = SystemClock()
    first, second = clock.stamp(), clock.stamp()
    assert first < second
    assert abs(clock.now() - second) < 60_000_000
    assert first > 1_600_000_000_000_000
