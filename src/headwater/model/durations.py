"""Lengths of time as users of Python write them, and as people read them."""

from __future__ import annotations

import re
from datetime import timedelta

from headwater.errors import InputError
from headwater.model.time import INFINITY, MICROSECONDS

_LENGTH = re.compile(r"(\d+)\s*([a-z]+?)s?(?:\s+|$)")
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


def length(instants: int, *, timed: bool) -> str:
    """A length of time: ``10 MINUTES`` where instants are microseconds, else the number of instants."""
    if instants == INFINITY:
        return "UNBOUNDED"
    if timed:
        for name, unit in _UNITS:
            if instants % unit == 0:
                return f"{instants // unit:,} {name}{'' if instants == unit else 'S'}"
    return f"{instants:,}"
