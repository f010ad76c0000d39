"""Sort endpoints by (key, time): partition by the top bits of the hash, then finish inside each small part."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def _before(low, high, time, wide, a, b):
    """Is row a before row b by (low, high, time)?"""
    if low[a] != low[b]:
        return low[a] < low[b]
    if wide and high[a] != high[b]:
        return high[a] < high[b]
    return time[a] < time[b]


@njit(cache=True, nogil=True)
def _merge_sort(order, spare, lo, hi, low, high, time, wide):
    """Bottom-up and stable; short runs by insertion; neighbours that are in order already are left alone."""
    run = 16
    for at in range(lo, hi, run):
        for i in range(at + 1, min(at + run, hi)):
            x = order[i]
            j = i
            while j > at and _before(low, high, time, wide, x, order[j - 1]):
                order[j] = order[j - 1]
                j -= 1
            order[j] = x
    while run < hi - lo:
        for at in range(lo, hi - run, 2 * run):
            mid = at + run
            end = min(mid + run, hi)
            if not _before(low, high, time, wide, order[mid], order[mid - 1]):
                continue
            for k in range(at, mid):
                spare[k] = order[k]
            i, j, k = at, mid, at
            while i < mid:
                if j < end and _before(low, high, time, wide, order[j], spare[i]):
                    order[k] = order[j]
                    j += 1
                else:
                    order[k] = spare[i]
                    i += 1
                k += 1
        run *= 2


@njit(cache=True, nogil=True)
def sort_by_key_time(low, high, time):
    """The stable permutation that sorts by (low, high, time), and where each distinct key begins in it (plus the end).

    Cost: one counting pass on about log2(n) top bits of the hash, then tiny sorts; hot keys, already nearly in time
    order, cost few passes. (Moving the keys along instead of indices was a third slower.)
    """
    n = len(low)
    wide = len(high) > 0
    bits = 1
    while (2 << bits) < n and bits < 16:
        bits += 1
    shift = np.uint64(64 - bits)
    ends = np.zeros((1 << bits) + 1, np.int64)
    for i in range(n):
        ends[np.int64(low[i] >> shift) + 1] += 1
    for b in range(1 << bits):
        ends[b + 1] += ends[b]
    order, place = np.empty(n, np.int64), ends.copy()
    for i in range(n):
        b = np.int64(low[i] >> shift)
        order[place[b]] = i
        place[b] += 1
    spare = np.empty(n, np.int64)
    for b in range(1 << bits):
        if ends[b + 1] - ends[b] > 1:
            _merge_sort(order, spare, ends[b], ends[b + 1], low, high, time, wide)
    starts = np.empty(n + 1, np.int64)
    groups = 0
    for k in range(n):
        i = order[k]
        if k == 0 or low[i] != low[order[k - 1]] or (wide and high[i] != high[order[k - 1]]):
            starts[groups] = k
            groups += 1
    starts[groups] = n
    return order, starts[: groups + 1].copy()


@njit(cache=True, nogil=True)
def sort_by_time(time):
    """The stable permutation that sorts by time: radix passes over the range that occurs; sorted input costs one look."""
    n = len(time)
    order = np.arange(n)
    if n < 2:
        return order
    least, most, ordered = time[0], time[0], True
    for i in range(1, n):
        t = time[i]
        if t < time[i - 1]:
            ordered = False
        least, most = min(least, t), max(most, t)
    if ordered:
        return order
    span = np.uint64(most) - np.uint64(least)  # wraps like the subtraction on unsigned words should
    other = np.empty(n, np.int64)
    counts = np.zeros(2049, np.int64)
    shift = np.uint64(0)
    while span >> shift > 0:
        counts[:] = 0
        for i in range(n):
            counts[((np.uint64(time[i]) - np.uint64(least)) >> shift & np.uint64(2047)) + np.uint64(1)] += 1
        for b in range(2048):
            counts[b + 1] += counts[b]
        for k in range(n):
            i = order[k]
            b = (np.uint64(time[i]) - np.uint64(least)) >> shift & np.uint64(2047)
            other[counts[b]] = i
            counts[b] += 1
        order, other = other, order
        shift += np.uint64(11)
        if shift >= np.uint64(64):
            break
    return order
