"""The engine's own clock: the system's, or one that tests move by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class WallClock(Protocol):
    """Microseconds; ``stamp`` never gives the same instant twice and never an earlier one."""

    def now(self) -> int: ...

    def stamp(self) -> int: ...

    def not_before(self, instant: int) -> None: ...


class _Stamps:
    """Strictly increasing: the system's clock may be set back (digest 12.7)."""

    def __init__(self) -> None:
        self._last: int | None = None

    def now(self) -> int:
        raise NotImplementedError

    def stamp(self) -> int:
        """The instant of a tick."""
        now = self.now()
        self._last = now if self._last is None else max(now, self._last + 1)
        return self._last

    def not_before(self, instant: int) -> None:
        """Stamps come after this instant: the last one of an earlier run."""
        self._last = instant if self._last is None else max(instant, self._last)


class SystemClock(_Stamps):
    """Microseconds since 1970."""

    def now(self) -> int:
        return time.time_ns() // 1_000


class VirtualClock(_Stamps):
    """Stands still until it is moved.

    >>> clock = VirtualClock()
    >>> clock.subscribe(lambda: print("it is", clock.now()))
    >>> clock.advance(5)
    it is 5
    """

    def __init__(self, now: int = 0) -> None:
        super().__init__()
        self._now = now
        self._subscribers: list[Callable[[], None]] = []

    def now(self) -> int:
        return self._now

    def advance(self, microseconds: int) -> None:
        """Move it forwards and tell all subscribers."""
        if microseconds < 0:
            raise ValueError(f"time goes forwards, not by {microseconds}")
        self.set(self._now + microseconds)

    def set(self, now: int) -> None:
        """Move it to an instant, also an earlier one, as a system's clock may be; tell all subscribers."""
        self._now = now
        for subscriber in list(self._subscribers):
            subscriber()

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call it after each move."""
        self._subscribers.append(callback)
