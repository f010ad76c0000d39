"""Numbers as people read them."""

from __future__ import annotations

from datetime import datetime, timedelta

from headwater.model.python_values import time_text
from headwater.model.time import BEGINNING, INFINITY, moment_text

_EPOCH = datetime(1970, 1, 1)
_SIZES = ("bytes", "kB", "MB", "GB", "TB")


def size_text(size: float) -> str:
    """
    >>> size_text(999), size_text(3_240_000)
    ('999 bytes', '3.2 MB')
    """
    unit = 0
    while size >= 1000 and unit < len(_SIZES) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_SIZES[unit]}" if unit == 0 else f"{size:.1f} {_SIZES[unit]}"


def seconds_text(seconds: float) -> str:
    """
    >>> seconds_text(0.0834), seconds_text(2.5), seconds_text(75)
    ('83 ms', '2.5 s', '75 s')
    """
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds:.0f} s"


def rate_text(rate: float) -> str:
    """
    >>> rate_text(4612.3), rate_text(0.53), rate_text(0)
    ('4,612/s', '0.5/s', '0/s')
    """
    return f"{rate:.1f}/s" if 0 < rate < 10 else f"{rate:,.0f}/s"


def length_text(length: timedelta | int) -> str:
    """A length of application time.

    >>> length_text(timedelta(seconds=2, microseconds=100_000)), length_text(12)
    ('2.1 s', '12')
    """
    return seconds_text(length.total_seconds()) if isinstance(length, timedelta) else f"{length:,}"


def moment(instant: int, *, timestamps: bool) -> datetime | int | None:
    """An instant as a user holds it; None: before all time or after it. Beyond the years of Python: a number."""
    if instant in (BEGINNING, INFINITY):
        return None
    if not timestamps:
        return instant
    try:
        return _EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        return instant


def instant_text(instant: int, *, timestamps: bool) -> str:
    """
    >>> instant_text(BEGINNING, timestamps=True), instant_text(INFINITY, timestamps=False)
    ('-', 'the end')
    >>> instant_text(1_500_000, timestamps=True), instant_text(7, timestamps=False)
    ('1970-01-01 00:00:01.500', '7')
    >>> instant_text(15_999_999, timestamps=True)
    '1970-01-01 00:00:16 -1µs'
    >>> instant_text(253_402_300_800_000_000, timestamps=True)
    '10000-01-01 00:00:00.000000'
    """
    if instant in (BEGINNING, INFINITY):
        return "-" if instant == BEGINNING else "the end"
    found = moment(instant, timestamps=timestamps)
    if isinstance(found, datetime):
        return moment_text(found, timespec="milliseconds")
    return time_text(instant) if timestamps else str(instant)
