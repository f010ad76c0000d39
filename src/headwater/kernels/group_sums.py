"""Exact sums of weight times value of groups of endpoints, in a form that rows of the same column can carry.

Whole numbers: a value, and how often a power of two occurs besides. Floats: three of them, each with the digits that those
before it cannot hold.

``group`` and ``row`` say of each endpoint which group it belongs to and which row's value it has.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headwater.kernels.sweep_totals import add_exactly, add_integer, add_product, add_wide


@njit(cache=True, nogil=True)
def sum_integers(group, row, weight, valid, values, signs, bits, most):
    """The sum of each group times its sign: a value of at most ``most``, and how often 2^bits or -2^bits is in it."""
    groups = len(signs)
    lows, highs = np.zeros(groups, np.uint64), np.zeros(groups, np.uint64)
    for i in range(len(group)):
        if valid[row[i]] != 0:
            g = group[i]
            lows[g], highs[g] = add_integer(lows[g], highs[g], values[row[i]], weight[i] * signs[g])
    left, large, times = np.empty(groups, np.int64), np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    one, none, shift = np.uint64(1), np.uint64(0), np.uint64(bits)
    for g in range(groups):
        low, high = lows[g], highs[g]
        negative = np.int64(high) < 0
        if negative:
            low, high = ~low + one, ~high + (one if low == none else none)
        if high != none or low > np.uint64(most):
            times[g] = np.int64((low >> shift) | (high << np.uint64(64 - bits)))
            large[g] = -(1 << bits) if negative else 1 << bits
            low &= (one << shift) - one
        left[g] = -np.int64(low) if negative else np.int64(low)
    return left, large, times


@njit(cache=True, nogil=True)
def sum_wides(group, row, weight, valid, lowers, uppers, signs, bits):
    """The same of numbers of two words, lower and upper, with 62 < bits < 128: what is left has fewer bits."""
    groups = len(signs)
    lows, highs, tops = np.zeros(groups, np.uint64), np.zeros(groups, np.uint64), np.zeros(groups, np.uint64)
    for i in range(len(group)):
        if valid[row[i]] != 0:
            g, r = group[i], row[i]
            lows[g], highs[g], tops[g] = add_wide(
                lows[g], highs[g], tops[g], lowers[r], uppers[r], weight[i] * signs[g]
            )
    left, large, times = np.empty((groups, 2), np.int64), np.zeros((groups, 2), np.int64), np.zeros(groups, np.int64)
    one, none = np.uint64(1), np.uint64(0)
    for g in range(groups):
        low, high, top = lows[g], highs[g], tops[g]
        negative = np.int64(top) < 0
        if negative:
            low, high, top = ~low + one, ~high, ~top
            if low == none:
                high += one
                top += one if high == none else none
        if bits < 64:
            times[g] = np.int64((low >> np.uint64(bits)) | (high << np.uint64(64 - bits)))
            low, high = low & ((one << np.uint64(bits)) - one), none
            power_low, power_high = one << np.uint64(bits), none
        else:
            over = np.uint64(bits - 64)
            times[g] = np.int64((high >> over) | (top << (np.uint64(64) - over) if over > none else none))
            high &= (one << over) - one
            power_low, power_high = none, one << over
        if negative:
            low, high = ~low + one, ~high + (one if low == none else none)
            power_low, power_high = ~power_low + one, ~power_high + (one if power_low == none else none)
        left[g, 0], left[g, 1] = np.int64(low), np.int64(high)
        large[g, 0], large[g, 1] = np.int64(power_low), np.int64(power_high)
    return left, large, times


@njit(cache=True, nogil=True)
def sum_floats(group, row, weight, valid, values, signs):
    """The sum of each group times its sign as three floats, the largest first; the values must not make it overflow."""
    groups = len(signs)
    sums, rests, tails = np.zeros(groups), np.zeros(groups), np.zeros(groups)
    for i in range(len(group)):
        if valid[row[i]] != 0:
            g, x = group[i], values[row[i]]
            w = weight[i] * signs[g]
            if w == 1 or w == -1:
                sums[g], rests[g], tails[g] = add_exactly(sums[g], rests[g], tails[g], x * w)
            else:
                sums[g], rests[g], tails[g] = add_product(sums[g], rests[g], tails[g], x, np.float64(w))
    return sums, rests, tails
