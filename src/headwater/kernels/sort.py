"""Sort rows by key hash, by time, or by both."""

from __future__ import annotations

import numpy as np
from numba import njit

_FEW = 4_096
_DIGIT = 10  # bits a pass


def sort_by_key(low, high):
    """The stable permutation that sorts by (low, high).

    The top bits of the hash and the row number share a word. Few words go to numpy's sort; many are sorted by their first
    20 or 30 bits in two or three passes, which leaves little to mend.
    """
    bits = max(len(low) - 1, 1).bit_length()
    if len(low) <= _FEW:
        packed = _pack(low, bits)
        packed.sort()
        return _unpack(packed, bits, low, high)
    passes = 2 if bits < 2 * _DIGIT else 3
    return _unpack(_radix_sort(low, bits, passes), 64 - _DIGIT * passes, low, high, bits)


@njit(cache=True, nogil=True)
def _pack(low, bits):
    numbers = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    packed = np.empty(len(low), np.uint64)
    for i in range(len(low)):
        packed[i] = (low[i] & ~numbers) | np.uint64(i)
    return packed


@njit(cache=True, nogil=True)
def _radix_sort(low, bits, passes):
    """The packed words, sorted by their first bits only."""
    n, digits = len(low), 1 << _DIGIT
    mask, lowest = np.uint64(digits - 1), np.uint64(64 - _DIGIT * passes)
    words, spare = _pack(low, bits), np.empty(n, np.uint64)
    counts = np.zeros((passes, digits + 1), np.int64)
    for i in range(n):
        for p in range(passes):
            counts[p, np.int64((low[i] >> (lowest + np.uint64(_DIGIT * p))) & mask) + 1] += 1
    for p in range(passes):
        for d in range(digits):
            counts[p, d + 1] += counts[p, d]
        shift = lowest + np.uint64(_DIGIT * p)
        source, target = (words, spare) if p % 2 == 0 else (spare, words)
        for k in range(n):
            word = source[k]
            d = np.int64((word >> shift) & mask)
            target[counts[p, d]] = word
            counts[p, d] += 1
    return words if passes % 2 == 0 else spare


@njit(cache=True, nogil=True)
def _unpack(packed, shift, low, high, bits=0):
    """The row numbers (the lower ``bits`` of a word, else those below the shift), after mending what was not compared.

    Words that agree above the shift are put in the order of (low, high) by insertion, stably.
    """
    numbers = (np.uint64(1) << np.uint64(bits if bits else shift)) - np.uint64(1)
    wide = len(high) > 0
    order = np.empty(len(packed), np.int64)
    for k in range(len(packed)):
        i = np.int64(packed[k] & numbers)
        j = k
        if k > 0 and (packed[k] ^ packed[k - 1]) >> np.uint64(shift) == np.uint64(0):
            while j > 0:
                other = order[j - 1]
                if low[other] < low[i] or (low[other] == low[i] and (not wide or high[other] <= high[i])):
                    break
                order[j] = other
                j -= 1
        order[j] = i
    return order


def sort_by_key_time(low, high, time):
    """The stable permutation that sorts by (low, high, time), and where each distinct key begins in it (plus the end)."""
    order = sort_by_key(low, high)
    return order, _sort_groups(order, low.take(order), high.take(order) if len(high) else high, time.take(order))


@njit(cache=True, nogil=True)
def _sort_groups(order, low, high, time):
    """Sort each key's rows by time, where they are not in order already, and say where each key begins.

    ``low``, ``high`` and ``time`` are those of the rows in order; time is sorted along.
    """
    n = len(order)
    wide = len(high) > 0
    starts = np.empty(n + 1, np.int64)
    spare_time, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    groups = 0
    at = 0
    while at < n:
        starts[groups] = at
        groups += 1
        falls, fall = 0, at
        end = at + 1
        while end < n and low[end] == low[at] and (not wide or high[end] == high[at]):
            if time[end] < time[end - 1]:
                falls += 1
                fall = end
            end += 1
        if falls == 1:  # usual: first what begins, then what ends
            _merge(time, order, spare_time, spare, at, fall, end)
        elif falls > 1:
            _sort_by_insertion_and_merge(time, order, spare_time, spare, at, end)
        at = end
    starts[groups] = n
    return starts[: groups + 1]


@njit(cache=True, nogil=True)
def _merge(time, order, spare_time, spare, lo, mid, hi):
    """Merge [lo, mid) and [mid, hi), each in order, stably."""
    for k in range(lo, mid):
        spare_time[k], spare[k] = time[k], order[k]
    i, j, k = lo, mid, lo
    while i < mid:
        if j < hi and time[j] < spare_time[i]:
            time[k], order[k] = time[j], order[j]
            j += 1
        else:
            time[k], order[k] = spare_time[i], spare[i]
            i += 1
        k += 1


@njit(cache=True, nogil=True)
def _sort_by_insertion_and_merge(time, order, spare_time, spare, lo, hi):
    """Bottom-up and stable; short runs by insertion; neighbours that are in order already are left alone."""
    run = 16
    for at in range(lo, hi, run):
        for i in range(at + 1, min(at + run, hi)):
            t, x = time[i], order[i]
            j = i
            while j > at and t < time[j - 1]:
                time[j], order[j] = time[j - 1], order[j - 1]
                j -= 1
            time[j], order[j] = t, x
    while run < hi - lo:
        for at in range(lo, hi - run, 2 * run):
            if time[at + run] < time[at + run - 1]:
                _merge(time, order, spare_time, spare, at, at + run, min(at + 2 * run, hi))
        run *= 2


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
