"""The extreme value of each key in time, from a staircase: rows by end, each larger than all that end later."""

from __future__ import annotations

import numpy as np
from numba import njit

_ALL_BUT_SIGN = np.int64(2**63 - 1)
_INFINITE, _NAN = np.int64(0x7FF0000000000000), np.int64(0x7FF8000000000000)  # bits of float64


@njit(cache=True, inline="always")
def _push(ends, steps, head, tail, end, step):
    """Insert (end, step) into the staircase [head, tail) unless a later one is as large; returns the new tail.

    What it makes useless (no later end, no larger value) goes. With ends in order, as windows of one size give them, only
    the last steps are looked at.
    """
    at = tail
    while at > head and ends[at - 1] >= end:
        at -= 1
    if at < tail and steps[at] >= step:
        return tail
    if at < tail and ends[at] == end:  # the same end with a smaller step
        keep = at + 1
    else:
        keep = at
    while at > head and steps[at - 1] <= step:
        at -= 1
    # [head, at) stays, then the new step, then [keep, tail)
    shift = at + 1 - keep
    if shift > 0:
        for k in range(tail - 1, keep - 1, -1):
            ends[k + shift], steps[k + shift] = ends[k], steps[k]
    elif shift < 0:
        for k in range(keep, tail):
            ends[k + shift], steps[k + shift] = ends[k], steps[k]
    ends[at], steps[at] = end, step
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
def sweep_staircases(groups, time, until, valid, values, floats, largest, offsets, old_ends, old_steps):
    """The extreme from each (key, instant) on (0 where there is none), and whether it changes there.

    Endpoints are sorted by (key, time). One before ``until`` is a row's start; one at it is its end, which the staircase
    knows already. Returns also the new staircases: offsets, ends, steps.
    """
    n, keys = len(time), len(groups) - 1
    levels, changed = np.empty(n, np.int64), np.empty(n, np.uint8)
    new_offsets = np.empty(keys + 1, np.int64)
    ends, steps = np.empty(len(old_ends) + n, np.int64), np.empty(len(old_ends) + n, np.int64)
    out = m = 0
    for k in range(keys):
        new_offsets[k] = out
        head = tail = out
        for i in range(offsets[k], offsets[k + 1]):
            ends[tail], steps[tail] = old_ends[i], old_steps[i]
            tail += 1
        level = _to_value(steps[head], floats, largest) if head < tail else np.int64(0)
        at, stop = groups[k], groups[k + 1]
        while at < stop:
            t = time[at]
            while head < tail and ends[head] <= t:
                head += 1
            while at < stop and time[at] == t:
                if valid[at] != 0 and until[at] > t:
                    tail = _push(ends, steps, head, tail, until[at], _to_step(values[at], floats, largest))
                at += 1
            before = level
            level = _to_value(steps[head], floats, largest) if head < tail else np.int64(0)
            levels[m], changed[m] = level, level != before
            m += 1
        for i in range(head, tail):
            ends[out], steps[out] = ends[i], steps[i]
            out += 1
    new_offsets[keys] = out
    return levels[:m], changed[:m], new_offsets, ends[:out].copy(), steps[:out].copy()
