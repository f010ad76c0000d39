"""First-in-first-out queues of many keys in sorted segments: find them, number their rows, merge them.

Entry e of a segment is a stretch of one key's queue: its rows offsets[e] to offsets[e + 1] have running numbers, the
last of them count[e].
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headwater.kernels.directory import directory_shift, first_at


@njit(cache=True, nogil=True)
def find_entries(low, high, directory, count, asked_low, asked_high, entry, counts):
    """The entry of each key asked for (-1: none); where there is one, its count is the key's."""
    n = len(low)
    wide = len(high) > 0
    shift = directory_shift(directory)
    for k in range(len(asked_low)):
        value = asked_low[k]
        at = first_at(low, directory, shift, value)
        entry[k] = -1
        while at < n and low[at] == value:
            if not wide or high[at] == asked_high[k]:
                entry[k] = at
                counts[k] = count[at]
                break
            at += 1


@njit(cache=True, nogil=True)
def locate_rows(index, entry, offsets, count, first, last, out_offsets, segment, row):
    """Where in this segment the rows with numbers first to last of each key are."""
    for k in range(len(entry)):
        e = entry[k]
        if e < 0:
            continue
        shift = offsets[e + 1] - 1 - count[e]  # from a number to a row
        least = max(first[k], count[e] - (offsets[e + 1] - offsets[e]) + 1)
        most = min(last[k], count[e])
        at = out_offsets[k] + least - first[k]
        for number in range(least, most + 1):
            segment[at] = index
            row[at] = number + shift
            at += 1


@njit(cache=True, nogil=True)
def merge_queues(a_low, a_high, a_offsets, a_live, b_low, b_high, b_offsets, b_live, bottom):
    """Plan to join the older a and the newer b: (entries, offsets, a_from, a_to, b_from).

    Entries are indices into a's followed by b's; a joined entry is rows a_from to a_to of a, then those from b_from on
    of b. ``live`` is how many rows the key has left after its newest row here; older ones have gone, and drop out. At
    the bottom so do keys without any row.
    """
    n, m = len(a_low), len(b_low)
    wide = len(a_high) > 0
    entries, offsets = np.empty(n + m, np.int64), np.empty(n + m + 1, np.int64)
    a_from, a_to, b_from = np.empty(n + m, np.int64), np.empty(n + m, np.int64), np.empty(n + m, np.int64)
    offsets[0] = 0
    i = j = k = 0
    while i < n or j < m:
        from_a, from_b = i < n, j < m
        if from_a and from_b:
            if a_low[i] != b_low[j]:
                from_a = a_low[i] < b_low[j]
                from_b = not from_a
            elif wide and a_high[i] != b_high[j]:
                from_a = a_high[i] < b_high[j]
                from_b = not from_a
        left = b_live[j] if from_b else a_live[i]
        size_a = size_b = np.int64(0)
        entries[k] = n + j if from_b else i
        a_from[k] = a_to[k] = b_from[k] = 0
        if from_b:
            j += 1
            size_b = min(b_offsets[j] - b_offsets[j - 1], left)
            b_from[k] = b_offsets[j] - size_b
        if from_a:
            i += 1
            size_a = min(a_offsets[i] - a_offsets[i - 1], left - size_b)
            a_from[k], a_to[k] = a_offsets[i] - size_a, a_offsets[i]
        offsets[k + 1] = offsets[k] + size_a + size_b
        if not (bottom and left == 0):
            k += 1
    return entries[:k].copy(), offsets[: k + 1].copy(), a_from[:k], a_to[:k], b_from[:k]


@njit(cache=True, nogil=True)
def copy_joined(a, b, offsets, a_from, a_to, b_from):
    """One column of the joined entries."""
    out = np.empty(offsets[len(offsets) - 1], a.dtype)
    for k in range(len(a_from)):
        at = offsets[k]
        for r in range(a_from[k], a_to[k]):
            out[at] = a[r]
            at += 1
        r = b_from[k]
        while at < offsets[k + 1]:
            out[at] = b[r]
            at += 1
            r += 1
    return out


@njit(cache=True, nogil=True)
def joined_rows(a_rows, offsets, a_from, a_to, b_from):
    """Where the rows of the joined entries are in a's followed by b's."""
    out = np.empty(offsets[len(offsets) - 1], np.int64)
    for k in range(len(a_from)):
        at = offsets[k]
        for r in range(a_from[k], a_to[k]):
            out[at] = r
            at += 1
        r = a_rows + b_from[k]
        while at < offsets[k + 1]:
            out[at] = r
            at += 1
            r += 1
    return out
