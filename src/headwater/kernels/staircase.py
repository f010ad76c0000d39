"""The extreme value of each key in time, from a staircase: rows by end, each larger than all that end later."""

from __future__ import annotations

import numpy as np
from numba import njit

_ALL_BUT_SIGN = np.int64(2**63 - 1)
_INFINITE, _NAN = np.int64(0x7FF0000000000000), np.int64(0x7FF8000000000000)  # bits of float64


@njit(cache=True, inline="always")
def _push(stairs, head, tail, end, step):
    """Insert (end, step) into the staircase [head, tail) unless a later one is as large; returns the new tail.

    What it makes useless (no later end, no larger step) goes. With ends in order, as windows of one size give them, only
    the last steps are looked at.
    """
    at = tail
    while at > head and stairs[at - 2] >= end:
        at -= 2
    keep = at
    if at < tail:
        if stairs[at + 1] >= step:
            return tail
        if stairs[at] == end:  # the same end with a smaller step
            keep += 2
    while at > head and stairs[at - 1] <= step:
        at -= 2
    # [head, at) stays, then the new step, then [keep, tail)
    shift = at + 2 - keep
    if shift > 0:
        for k in range(tail - 1, keep - 1, -1):
            stairs[k + shift] = stairs[k]
    elif shift < 0:
        for k in range(keep, tail):
            stairs[k + shift] = stairs[k]
    stairs[at], stairs[at + 1] = end, step
    return tail + shift


@njit(cache=True, inline="always")
def _to_step(value, floats, largest):
    """The value as a word of which the largest is wanted; float bits are put in order, one NaN above all, no -0.0."""
    if floats:
        size = value & _ALL_BUT_SIGN
        if size > _INFINITE:
            value = _NAN
        elif size == 0:
            value = np.int64(0)
        elif value < 0:
            value ^= _ALL_BUT_SIGN
    return value if largest else ~value


@njit(cache=True, inline="always")
def _to_value(step, floats, largest):
    value = step if largest else ~step
    return value ^ _ALL_BUT_SIGN if floats and value < 0 else value


@njit(cache=True, nogil=True)
def sweep_staircases(groups, time, until, valid, values, floats, largest, offsets, old):
    """The extreme from each (key, instant) on (0 where there is none), and whether it changes there.

    Endpoints are sorted by (key, time). One before ``until`` is a row's start; one at it is its end, which the staircase
    knows already. Returns also the new staircases, as the old ones: offsets, and end and step in turn.
    """
    n, keys = len(time), len(groups) - 1
    levels, changed = np.empty(n, np.int64), np.empty(n, np.uint8)
    new_offsets = np.empty(keys + 1, np.int64)
    stairs = np.empty(len(old) + 2 * n, np.int64)
    out = m = 0
    for k in range(keys):
        new_offsets[k] = out
        head = tail = out
        for i in range(offsets[k], offsets[k + 1]):
            stairs[tail] = old[i]
            tail += 1
        level = _to_value(stairs[head + 1], floats, largest) if head < tail else np.int64(0)
        at, stop = groups[k], groups[k + 1]
        while at < stop:
            t = time[at]
            while head < tail and stairs[head] <= t:
                head += 2
            while at < stop and time[at] == t:
                if valid[at] != 0 and until[at] > t:
                    tail = _push(stairs, head, tail, until[at], _to_step(values[at], floats, largest))
                at += 1
            before = level
            level = _to_value(stairs[head + 1], floats, largest) if head < tail else np.int64(0)
            levels[m], changed[m] = level, level != before
            m += 1
        for i in range(head, tail):
            stairs[out] = stairs[i]
            out += 1
    new_offsets[keys] = out
    return levels[:m], changed[:m], new_offsets, stairs[:out].copy()
