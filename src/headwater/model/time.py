"""The time domain: discrete int64 instants with an end of time (Krämer 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import numpy as np

from headwater.model.arrays import Int64Array

INFINITY = 2**63 - 1
"""The end of time: an interval ``[s, INFINITY)`` never expires."""

BEGINNING = -(2**63)
"""Before all time: the frontier of a stream that has promised nothing yet."""

MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
"""Length of each SQL time unit in instants of a TIMESTAMP time domain."""

_SHORT = {"US": "MICROSECOND", "MS": "MILLISECOND", "SEC": "SECOND", "MIN": "MINUTE", "HR": "HOUR"}


def unit_of(word: str, shorter: Mapping[str, str] = _SHORT) -> str:
    """The unit of time that a word stands for: in the plural too, and short as Golab writes them (``RANGE 1 min``).

    ``shorter``: further abbreviations. Whether there is such a unit is another question.

    >>> unit_of("mins"), unit_of("Hours"), unit_of("fortnight")
    ('MINUTE', 'HOUR', 'FORTNIGHT')
    """
    word, short = word.upper(), {**_SHORT, **shorter}
    singular = word.removesuffix("S")
    return short.get(word) or short.get(singular) or singular


def saturating_add(instants: Int64Array, amount: int) -> Int64Array:
    """Add a non-negative amount; what would pass the end of time stops there."""
    if amount >= INFINITY:
        return np.full(len(instants), INFINITY, np.int64)
    return np.where(instants > INFINITY - amount, INFINITY, instants + np.int64(amount))


def round_up(instants: Int64Array, step: int, offset: int = 0) -> Int64Array:
    """The first k*step + offset that is not before each instant; the end of time if that would come after it."""
    room = (offset % step - instants % step) % step
    return np.where(instants > INFINITY - room, INFINITY, instants + room)


_EPOCH = datetime(1970, 1, 1)
_INSTANT = timedelta(microseconds=1)


def render(instant: int, *, timestamps: bool = False) -> str:
    """The instant as a person reads it; ``timestamps``: it counts microseconds since 1970.

    >>> render(7), render(BEGINNING), render(1_500_000, timestamps=True), render(15_999_999, timestamps=True)
    ('7', 'the beginning', '1970-01-01 00:00:01.500000', '1970-01-01 00:00:16 -1µs')
    """
    if instant in (INFINITY, BEGINNING):
        return "infinity" if instant == INFINITY else "the beginning"
    if not timestamps:
        return str(instant)
    try:
        return moment_text(_EPOCH + instant * _INSTANT)
    except OverflowError:  # beyond the years of Python
        return str(np.datetime64(instant, "us")).replace("T", " ")


def moment_text(moment: datetime, *, timespec: str = "auto") -> str:
    """A time as a person reads it.

    What holds at the last instant of a second (SLIDE shows a window there) is told by the second after it.

    >>> moment_text(datetime(2026, 1, 1, 12, 0, 15, 999_999)), moment_text(datetime(2026, 1, 1, 12, 0, 16))
    ('2026-01-01 12:00:16 -1µs', '2026-01-01 12:00:16')
    """
    if moment.microsecond == 999_999 and moment < datetime.max:
        return f"{(moment + _INSTANT).isoformat(sep=' ')} -1µs"
    return moment.isoformat(sep=" ", timespec=timespec)
