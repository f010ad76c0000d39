"""Where random shapes come from: one interface, so that seeded campaigns and Hypothesis draw the very same shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np

T = TypeVar("T")

_BLOCK = 512


class Choices(Protocol):
    """A source of decisions. Smaller numbers and earlier options are the simpler ones."""

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        ...

    def chance(self, percent: int) -> bool: ...

    def pick(self, options: Sequence[T]) -> T: ...


class Dice:
    """Choices from a seeded numpy generator; numbers are drawn in blocks, one by one would be slow."""

    def __init__(self, *seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._block: list[int] = []

    def _next(self) -> int:
        if not self._block:
            self._block = self._generator.integers(0, 2**62, _BLOCK).tolist()
        return self._block.pop()

    def integer(self, low: int, high: int) -> int:
        return low + self._next() % (high - low + 1)

    def chance(self, percent: int) -> bool:
        return self._next() % 100 < percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self._next() % len(options)]
