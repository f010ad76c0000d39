"""Frames of rows: what totals, extremes and places are, row by row, in sequences of the rows of partitions.

A frame is [start, stop), places in a sequence; from row to row neither end goes back, so that extremes take one pass.
Float sums add the values of each frame in their order, never taking one away: a frame has the same sum to the last bit
whatever came before it, so that what was shown can be taken back.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headwater.kernels.sweep_totals import (
    _HUGE,
    _MINUS,
    _NAN,
    _PLUS,
    DOWN,
    LARGE,
    SCALED,
    add_double,
    add_product,
    product_error,
)


@njit(cache=True, nogil=True)
def fold_floats(starts, stops, valid, values, sums, rests, specials):
    """Double-double sums of the valid values of each frame, as ``sweep_totals.follow_float`` keeps them."""
    for i in range(len(starts)):
        total, rest, special, scaled = 0.0, 0.0, np.int64(0), False
        for p in range(starts[i], stops[i]):
            if valid[p] == 0:
                continue
            x = values[p]
            if scaled or not abs(x) < LARGE:
                if np.isnan(x):
                    special += _NAN
                    continue
                if np.isinf(x):
                    special += _PLUS if x > 0 else _MINUS
                    continue
                if not scaled:
                    total, rest, special, scaled = total * DOWN, rest * DOWN, special + SCALED, True
                x *= DOWN
            total, rest = add_double(total, rest, x)
        sums[i], rests[i], specials[i] = total, rest, special


@njit(cache=True, nogil=True)
def fold_squares(starts, stops, valid, values, sums, rests, tails, huge):
    """Triple-float sums of the squares of the valid values of each frame, as ``sweep_totals.follow_squares`` keeps them."""
    for i in range(len(starts)):
        total, rest, tail, over = 0.0, 0.0, 0.0, np.int64(0)
        for p in range(starts[i], stops[i]):
            if valid[p] == 0:
                continue
            x = values[p]
            if not abs(x) < _HUGE:
                over += 1
                continue
            square = x * x
            total, rest, tail = add_product(total, rest, tail, square, 1.0)
            total, rest, tail = add_product(total, rest, tail, product_error(x, x, square), 1.0)
        sums[i], rests[i], tails[i], huge[i] = total, rest, tail, over


@njit(cache=True, nogil=True)
def find_extremes(starts, stops, codes, valid, most, out):
    """The place of the least (or most) of the codes that are valid in each frame; -1: none is."""
    queue = np.empty(len(codes), np.int64)  # places of values that no later one beats, the best first
    head = tail = pushed = 0
    for i in range(len(starts)):
        pushed = max(pushed, starts[i])
        while pushed < stops[i]:
            if valid[pushed] != 0:
                while tail > head and (
                    (most and codes[queue[tail - 1]] < codes[pushed])
                    or (not most and codes[queue[tail - 1]] > codes[pushed])
                ):
                    tail -= 1
                queue[tail] = pushed
                tail += 1
            pushed += 1
        while head < tail and queue[head] < starts[i]:
            head += 1
        out[i] = queue[head] if head < tail else -1


@njit(cache=True, nogil=True)
def follow_extremes(groups, codes, valid, most, out):
    """Of the codes so far in each group, where the least (or most) is; ``out`` begins with one of each group.

    Behind the rows of all groups, codes has one more for each group: what it begins with, if that is valid.
    """
    keys, rows = len(groups) - 1, groups[-1]
    for k in range(keys):
        best = rows + k if valid[rows + k] != 0 else np.int64(-1)
        out[k] = best
        for p in range(groups[k], groups[k + 1]):
            if valid[p] != 0 and (
                best < 0 or (most and codes[p] > codes[best]) or (not most and codes[p] < codes[best])
            ):
                best = p
            out[keys + p] = best


@njit(cache=True, nogil=True)
def last_peers(groups, time):
    """For each row the place after the last one of its group and instant."""
    out = np.empty(len(time), np.int64)
    for k in range(len(groups) - 1):
        stop = groups[k + 1]
        for p in range(groups[k + 1] - 1, groups[k] - 1, -1):
            if p + 1 < groups[k + 1] and time[p + 1] != time[p]:
                stop = p + 1
            out[p] = stop
    return out
