"""What a valid physical stream is, checked as its elements or deltas come (CEDR 2.1, LMerge II)."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.element import Adjust, Element, Insert, Row
from headwater.model.history import freeze, show
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, render

_LEAST_SWEEP = 1024


class StreamValidator:
    """Follows one stream and raises a ``StreamError`` at the first thing that no valid stream may contain.

    ``check_element`` costs O(1) per element (amortised: what a stable point has frozen is forgotten when the table of
    live elements has doubled). ``check_delta`` is LEGAL(d, L) for a whole tick, and then the frontier moves.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.frontier = BEGINNING
        self._live: Counter[tuple[Any, int, int]] = Counter()
        self._sweep_at = _LEAST_SWEEP

    # -- elements ----------------------------------------------------------------------------------------------------

    def check_element(self, element: Element) -> None:
        if isinstance(element, Insert):
            self._check_insert(element)
        elif isinstance(element, Adjust):
            self._check_adjust(element)
        else:
            self.advance(element.at)

    def _check_insert(self, element: Insert) -> None:
        _check_not_empty(element.row, element.start, element.end)
        if element.start < self.frontier:
            raise self._behind(f"an element that starts at {render(element.start)} cannot be inserted any more")
        self._live[freeze(element.row), element.start, element.end] += 1

    def _check_adjust(self, element: Adjust) -> None:
        row, start, end, new_end = element.row, element.start, element.end, element.new_end
        _check_not_empty(row, start, end)
        if new_end < start:
            raise StreamError(
                "EMPTY_INTERVAL", f"an element that starts at {render(start)} cannot end at {render(new_end)}"
            )
        # B.1 of the merge paper: both the old and the new end must still be open; a removal moves the end to the start.
        if end < self.frontier:
            raise self._behind(f"the element {show(row, start, end, 1)} cannot be adjusted any more")
        if new_end < self.frontier:
            raise self._behind(f"the element {show(row, start, end, 1)} cannot end at {render(new_end)} any more")
        key = freeze(row)
        if self._live[key, start, end] < 1:
            raise _missing(row, start, end)
        self._take(key, start, end)
        if new_end > start:
            self._live[key, start, new_end] += 1

    # -- deltas ------------------------------------------------------------------------------------------------------

    def check_delta(self, delta: Delta, frontier: int) -> None:
        """A whole tick: legal at the frontier so far, non-negative with what came before, and then the new frontier."""
        change: Counter[tuple[Any, int, int]] = Counter()
        for row, start, end, weight in delta.rows():
            _check_not_empty(row, start, end)
            change[freeze(row), start, end] += weight
        balance: defaultdict[tuple[Any, int], int] = defaultdict(int)
        for (row, start, end), weight in change.items():
            if weight and start < self.frontier:
                if end < self.frontier:
                    raise self._behind(f"the element {show(row, start, end, weight)} cannot change any more")
                balance[row, start] += weight
        for (row, start), weight in balance.items():
            if weight:
                verb = "begin" if weight > 0 else "vanish"
                raise self._behind(f"an element of {row} that starts at {render(start)} cannot {verb} any more")
        for (row, start, end), weight in change.items():
            if self._live[row, start, end] + weight < 0:
                raise _missing(row, start, end)
            if weight > 0:
                self._live[row, start, end] += weight
            elif weight < 0:
                self._take(row, start, end, -weight)
        self.advance(frontier)

    # -- both --------------------------------------------------------------------------------------------------------

    def advance(self, frontier: int) -> None:
        """A stable point: it never goes back."""
        if frontier < self.frontier:
            raise StreamError(
                "STABLE_BACKWARDS",
                f"the stable point cannot go back from {render(self.frontier)} to {render(frontier)}",
                hint="A stable point is a promise for ever; leave out the smaller one.",
            )
        self.frontier = frontier
        if len(self._live) > self._sweep_at:
            # An end at the frontier itself can still be lengthened, so only smaller ones are frozen.
            self._live = Counter({k: n for k, n in self._live.items() if k[2] >= frontier})
            self._sweep_at = max(2 * len(self._live), _LEAST_SWEEP)

    def _take(self, row: Any, start: int, end: int, count: int = 1) -> None:
        if self._live[row, start, end] == count:
            del self._live[row, start, end]
        else:
            self._live[row, start, end] -= count

    def _behind(self, message: str) -> StreamError:
        return StreamError(
            "BEHIND_STABLE",
            message,
            detail=f"The stream has promised that nothing before {render(self.frontier)} changes.",
            hint="Send the element before the stable point, or make the stable point smaller.",
        )


def _check_not_empty(row: Row, start: int, end: int) -> None:
    if start >= end:
        raise StreamError("EMPTY_INTERVAL", f"the element {show(row, start, end, 1)} must start before it ends")


def _missing(row: Row, start: int, end: int) -> StreamError:
    return StreamError(
        "MISSING_ELEMENT",
        f"there is no element {show(row, start, end, 1)} to adjust",
        hint="An adjust names the row, the start and the present end of an element that was inserted before.",
    )
