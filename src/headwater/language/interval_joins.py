"""Interval joins, as Flink and Spark write them: ``a.ts BETWEEN b.ts - INTERVAL … AND b.ts + INTERVAL …``.

Rows meet here while both are valid. With a window of Wa on a and Wb on b that is -Wa < a.ts - b.ts < Wb, so windows that are
a little longer than the two ends of the interval let all of its pairs meet, and the condition itself leaves no others.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from headwater.algebra.nodes import Join
from headwater.expressions.nodes import Call, Column, Expression, Literal
from headwater.expressions.rewrite import conjuncts
from headwater.model.time import MICROSECONDS, unit_of

_INTERVAL = re.compile(r"INTERVAL '(-?\d+)' (\w+)")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_FEW = 10
"""A window is longer than its interval by one of a unit of which it has at least so many."""


def interval_windows(join: Join, left: Collection[str], right: Collection[str]) -> tuple[str, str] | None:
    """The windows of both sides ('': none is needed) if the condition bounds the distance of their times on both ends.

    ``left``, ``right``: the columns that hold the time of the rows.
    """
    if join.residual is None:
        return None
    low: int | None = None
    high: int | None = None
    timed = False
    for comparison in _comparisons(join.residual):
        found = _distance(comparison, left, right)
        if found is None:
            continue
        sign, distance, has_unit = found
        timed |= has_unit
        if sign in (">", ">=", "="):
            low = distance if low is None else max(low, distance)
        if sign in ("<", "<=", "="):
            high = distance if high is None else min(high, distance)
    if low is None or high is None or low > high:
        return None
    return _longer_than(-low, timed=timed), _longer_than(high, timed=timed)


def _comparisons(residual: Expression) -> list[tuple[str, Expression, Expression]]:
    found: list[tuple[str, Expression, Expression]] = []
    for condition in conjuncts(residual):
        match condition:
            case Call("between", (value, low, high)):
                found += [(">=", value, low), ("<=", value, high)]
            case Call(sign, (first, second)) if sign in _MIRRORED:
                found.append((sign, first, second))
    return found


def _distance(
    comparison: tuple[str, Expression, Expression], left: Collection[str], right: Collection[str]
) -> tuple[str, int, bool] | None:
    """``left time - right time <sign> distance``, and whether it was written with a unit."""
    sign, first, second = comparison
    ours, theirs = _moved(first), _moved(second)
    if ours is None or theirs is None:
        return None
    (one, plus), (other, more) = ours, theirs
    parts = (part for side in (first, second) for part in side.walk())
    timed = any(isinstance(part, Literal) and _INTERVAL.match(part.text or "") for part in parts)
    if one.removeprefix("l.") in left and one.startswith("l.") and other.removeprefix("r.") in right:
        return sign, more - plus, timed
    if one.removeprefix("r.") in right and one.startswith("r.") and other.removeprefix("l.") in left:
        return _MIRRORED[sign], plus - more, timed
    return None


def _moved(expression: Expression) -> tuple[str, int] | None:
    """A column and by how much it is moved."""
    match expression:
        case Column(name, _):
            return name, 0
        case Call("+" | "-" as sign, (moved, Literal(text, _))):
            below, length = _moved(moved), _length(text)
            if below is not None and length is not None:
                return below[0], below[1] + (length if sign == "+" else -length)
    return None


def _length(text: str | None) -> int | None:
    if text is None:
        return None
    if written := _INTERVAL.fullmatch(text):
        unit = MICROSECONDS.get(unit_of(written[2]))
        return None if unit is None else int(written[1]) * unit
    return int(text) if text.isdecimal() else None


def _longer_than(length: int, *, timed: bool) -> str:
    """A window that still has a row at this distance; a row without one is valid for its own instant."""
    if length <= 0:
        return ""
    if not timed:
        return f"RANGE {length + 1}"
    units = [(name, size) for name, size in MICROSECONDS.items() if length % size == 0 and length // size >= _FEW]
    name, size = units[-1] if units else ("MICROSECOND", 1)
    return f"RANGE {length // size + 1} {name}S"
