"""The elements of a physical stream as a user sees them: insert, adjust, stable (LMerge II, CEDR 2.1)."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from headwater.errors import StreamError
from headwater.model.time import INFINITY, render

Row = tuple[Any, ...]


def _check_interval(element: Insert | Adjust) -> None:
    if element.start >= element.end:
        raise StreamError(
            "EMPTY_INTERVAL",
            f"an element must start before it ends, not [{render(element.start)}, {render(element.end)})",
            hint='Intervals are half-open: an element valid at the single instant t is [t, t+1), or "at": t.',
        )


@frozen
class Insert:
    """The row is valid from ``start`` until just before ``end``."""

    row: Row
    start: int
    end: int = INFINITY

    def __attrs_post_init__(self) -> None:
        _check_interval(self)


@frozen
class Adjust:
    """An earlier element ends at ``new_end`` instead; ``new_end == start`` takes it away altogether."""

    row: Row
    start: int
    end: int
    new_end: int = field()

    def __attrs_post_init__(self) -> None:
        _check_interval(self)
        if self.new_end < self.start:
            raise StreamError(
                "EMPTY_INTERVAL",
                f"an element that starts at {render(self.start)} cannot end at {render(self.new_end)}",
                hint="Set the new end to the start to remove the element.",
            )


@frozen
class Stable:
    """A promise: nothing before ``at`` changes any more."""

    at: int


Element = Insert | Adjust | Stable
