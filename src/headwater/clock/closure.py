"""Bounds between streams as a matrix, and chains of them (Srivastava & Widom 3.2, 5).

Chains are sound only where bounds relate the clocks of sources. A bound between rows says nothing of a row that was never
sent, so nothing follows from it for a third stream (digest E2). Bounds that count rows do not add up (digest E10).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from headwater.clock.bounds import Bounds, composed, united

Name = TypeVar("Name", bound=Hashable)
Matrix = Mapping[tuple[Name, Name], Bounds]
"""By (leading stream, lagging stream); what is missing promises nothing."""


def product(first: Matrix[Name], second: Matrix[Name]) -> dict[tuple[Name, Name], Bounds]:
    """What follows from either matrix, or from a step of the first and one of the second."""
    found: dict[tuple[Name, Name], Bounds] = dict(first)
    for entry, bounds in second.items():
        found[entry] = united(found.get(entry, ()), bounds)
    steps: dict[Name, list[tuple[Name, Bounds]]] = {}
    for (middle, last), bounds in second.items():
        steps.setdefault(middle, []).append((last, bounds))
    for (start, middle), bounds in first.items():
        for last, further in steps.get(middle, ()):
            found[start, last] = united(found.get((start, last), ()), composed(bounds, further))
    return {entry: bounds for entry, bounds in found.items() if bounds}


def closure(matrix: Matrix[Name]) -> dict[tuple[Name, Name], Bounds]:
    """What follows along all paths. Cycles never help within a path, but they do on the diagonal (digest E5)."""
    found = {entry: bounds for entry, bounds in matrix.items() if bounds}
    while (further := product(found, found)) != found:
        found = further
    return found
