"""Lengths of time as users of Python write them, and as people read them."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from headwater.errors import InputError
from headwater.model.time import INFINITY, MICROSECONDS, unit_of

_LENGTH = re.compile(r"(\d+)\s*([a-z]+?)s?(?:\s+|$)")
_WALL = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_SHORT = {"S": "SECOND", "M": "MINUTE", "H": "HOUR", "D": "DAY"}
_UNITS = [(name, length) for name, length in reversed(MICROSECONDS.items()) if name != "WEEK"]


def instants_in(length: str | timedelta | int, *, timestamps: bool, what: str) -> int:
    """A length of time in instants; ``what`` is it for, in an error?

    >>> instants_in("1 minute 30 seconds", timestamps=True, what="the disorder")
    90000000
    >>> instants_in(5, timestamps=False, what="the disorder")
    5
    """
    found: object = length
    if isinstance(length, timedelta) and timestamps:
        found = length // timedelta(microseconds=1)
    elif isinstance(length, str) and timestamps:
        text = length.strip().lower()
        parts = list(_LENGTH.finditer(text))
        whole = parts and "".join(part.group() for part in parts) == text
        known = whole and all(part[2].upper() in MICROSECONDS for part in parts)
        found = sum(int(part[1]) * MICROSECONDS[part[2].upper()] for part in parts) if known else None
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        hint = 'Write it as "10 minutes", or as a timedelta.' if timestamps else "Instants are plain numbers here."
        raise InputError("BAD_DURATION", f'"{length}" is no length of time for {what}', hint=hint)
    return found


def wall_time_in(length: str | float | timedelta, *, what: str) -> int:
    """A length of wall-clock time in microseconds: a text, a number of seconds, or a timedelta; ``what`` is it for?

    >>> wall_time_in("500ms", what="a tick"), wall_time_in("1 minute 30s", what="a tick"), wall_time_in(0.5, what="a tick")
    (500000, 90000000, 500000)
    """
    found: Decimal | None = None
    if isinstance(length, timedelta):
        found = Decimal(length // timedelta(microseconds=1))
    elif isinstance(length, int | float) and not isinstance(length, bool) and length == length:  # noqa: PLR0124 - NaN
        found = Decimal(str(length)) * MICROSECONDS["SECOND"]
    elif isinstance(length, str) and length.strip() == "0":
        found = Decimal(0)
    elif isinstance(length, str):
        parts = list(_WALL.finditer(length))
        units = [MICROSECONDS.get(unit_of(part[2], _SHORT)) for part in parts]
        if parts and "".join(part.group() for part in parts) == length and None not in units:
            found = sum((Decimal(p[1]) * (u or 0) for p, u in zip(parts, units, strict=True)), Decimal(0))
    if found is None or not 0 <= found < INFINITY or found != int(found):
        raise InputError(
            "BAD_DURATION",
            f'"{length}" is no length of time for {what}',
            hint='Write it with its unit, as "1s", "500ms" or "1 minute"; in Python also as a number of seconds.',
        )
    return int(found)


def length(instants: int, *, timed: bool) -> str:
    """A length of time: ``10 MINUTES`` where instants are microseconds, else the number of instants."""
    if instants == INFINITY:
        return "UNBOUNDED"
    if timed:
        for name, unit in _UNITS:
            if instants % unit == 0:
                return f"{instants // unit:,} {name}{'' if instants == unit else 'S'}"
    return f"{instants:,}"
