"""Rows of one key and one interval put together: which belong together, their weights, sums and extremes."""

from __future__ import annotations

import numpy as np
from numba import njit

_START = np.uint64(0x9E3779B97F4A7C15)
_END = np.uint64(0xC2B2AE3D27D4EB4F)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)


_PART = 1 << 17
"""Rows that are grouped at once: their table of groups stays in the cache."""


def group_slices(low, high, start, end, pattern, weight):
    """The group of each row by (key, start, end, pattern), each group's first row, and the sum of its weights.

    ``pattern`` (which values are NULL) may be empty, and ``high`` too. Groups have no particular order.
    """
    bits = max(0, (len(low) - 1).bit_length() - (_PART - 1).bit_length())
    return _group(low, high, start, end, pattern, weight, bits)


@njit(cache=True, inline="always")
def _word(low, start, end, pattern):
    return (low ^ (np.uint64(start) * _START) ^ (np.uint64(end) * _END) ^ np.uint64(pattern)) * _SPREAD


@njit(cache=True, nogil=True)
def _group(low, high, start, end, pattern, weight, bits):
    """In 2^bits parts by hash: rows of one group are in one part."""
    n = len(low)
    bounds = np.zeros((1 << bits) + 1, np.int64)
    row, words = np.empty(n, np.int32), np.empty(n, np.uint64)
    keys, starts, ends = np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64)
    patterned = len(pattern) > 0
    for i in range(n):
        word = _word(low[i], start[i], end[i], pattern[i] if patterned else 0)
        bounds[_part(word, bits) + 1] += 1
    for p in range(1 << bits):
        bounds[p + 1] += bounds[p]
    place = bounds[:-1].copy()
    for i in range(n):
        word = _word(low[i], start[i], end[i], pattern[i] if patterned else 0)
        p = _part(word, bits)
        at = place[p]
        place[p] = at + 1
        row[at], words[at], keys[at], starts[at], ends[at] = i, word, low[i], start[i], end[i]
    return _group_parts(bounds, row, words, keys, starts, ends, high, pattern, weight, bits)


@njit(cache=True, inline="always")
def _part(word, bits):
    return np.int64(word >> np.uint64(64 - bits)) if bits else 0


@njit(cache=True, nogil=True)
def _group_parts(bounds, row, words, keys, starts, ends, high, pattern, weight, bits):
    """Groups are packed to the front of ``keys``, ``starts`` and ``ends`` as they are found: they are never ahead of the
    rows that are read."""
    n = len(row)
    wide, patterned = len(high) > 0, len(pattern) > 0
    group, first, total = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64)
    largest = 0
    for p in range(len(bounds) - 1):
        largest = max(largest, bounds[p + 1] - bounds[p])
    table_bits = 4
    while (1 << table_bits) < 2 * largest:
        table_bits += 1
    table = np.empty(1 << table_bits, np.int32)
    shift, mask = np.uint64(64 - table_bits), (1 << table_bits) - 1
    groups = 0
    for p in range(len(bounds) - 1):
        table[:] = -1
        for k in range(bounds[p], bounds[p + 1]):
            i = row[k]
            at = np.int64((words[k] << np.uint64(bits)) >> shift)
            while True:
                g = table[at]
                if g < 0:
                    table[at] = groups
                    group[i], first[groups], total[groups] = groups, i, weight[i]
                    keys[groups], starts[groups], ends[groups] = keys[k], starts[k], ends[k]
                    groups += 1
                    break
                if keys[g] == keys[k] and starts[g] == starts[k] and ends[g] == ends[k]:
                    other = first[g]
                    if (not wide or high[other] == high[i]) and (not patterned or pattern[other] == pattern[i]):
                        group[i] = g
                        total[g] += weight[i]
                        break
                at = (at + 1) & mask
    return group, first[:groups].copy(), total[:groups].copy()


@njit(cache=True, nogil=True)
def sum_slices(group, groups, weight, values, limit):
    """The sum of weight * value of each group, and whether all of them, and every step to them, stay within the limit."""
    sums = np.zeros(groups, np.int64)
    limit_f = np.float64(limit)
    for i in range(len(group)):
        step = weight[i] * values[i]
        # The float tells what the integer cannot: whether the product has overflowed.
        if np.abs(np.float64(weight[i]) * np.float64(values[i])) >= limit_f:
            return sums, False
        total = sums[group[i]] + step
        if total > limit or total < -limit:
            return sums, False
        sums[group[i]] = total
    return sums, True


@njit(cache=True, nogil=True)
def extreme_slices(group, groups, words, largest):
    """The row with the largest (or smallest) word of each group; the first among equals."""
    rows = np.full(groups, -1, np.int64)
    for i in range(len(group)):
        g = group[i]
        best = rows[g]
        if best < 0 or (words[i] > words[best] if largest else words[i] < words[best]):
            rows[g] = i
    return rows
