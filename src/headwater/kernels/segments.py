"""What two versions of the same keys' answers do not share."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def cancel_equal(
    old_key,
    old_start,
    old_end,
    old_weight,
    old_source,
    old_words,
    new_key,
    new_start,
    new_end,
    new_weight,
    new_source,
    new_words,
):
    """The old and the new segments (rows: key, start, end, weight, source) that have no equal on the other side.

    Both sides are sorted by (key, start).
    """
    n, m = len(old_key), len(new_key)
    old, new = np.empty((5, n), np.int64), np.empty((5, m), np.int64)
    i = j = a = b = 0
    while i < n or j < m:
        keep_old, keep_new = False, False
        if i < n and j < m and old_key[i] == new_key[j] and old_start[i] == new_start[j]:
            equal = old_end[i] == new_end[j] and old_weight[i] == new_weight[j]
            for v in range(old_words.shape[0]):
                equal = equal and old_words[v, old_source[i]] == new_words[v, new_source[j]]
            if equal:
                i += 1
                j += 1
            else:
                keep_old = keep_new = True
        elif j >= m or (i < n and (old_key[i], old_start[i]) < (new_key[j], new_start[j])):
            keep_old = True
        else:
            keep_new = True
        if keep_old:
            old[0, a], old[1, a], old[2, a] = old_key[i], old_start[i], old_end[i]
            old[3, a], old[4, a] = old_weight[i], old_source[i]
            a += 1
            i += 1
        if keep_new:
            new[0, b], new[1, b], new[2, b] = new_key[j], new_start[j], new_end[j]
            new[3, b], new[4, b] = new_weight[j], new_source[j]
            b += 1
            j += 1
    return old[:, :a], new[:, :b]


@njit(cache=True, nogil=True)
def merge_endpoints(known_key, known_time, groups, time):
    """Merge known endpoints, sorted by (key index, time), into grouped ones: indices into known + grouped, and groups."""
    n, keys = len(known_key), len(groups) - 1
    order, merged = np.empty(n + len(time), np.int64), np.empty(keys + 1, np.int64)
    i = out = 0
    for k in range(keys):
        merged[k] = out
        for j in range(groups[k], groups[k + 1]):
            while i < n and known_key[i] == k and known_time[i] <= time[j]:
                order[out] = i
                i += 1
                out += 1
            order[out] = n + j
            out += 1
        while i < n and known_key[i] == k:
            order[out] = i
            i += 1
            out += 1
    merged[keys] = out
    return order, merged


@njit(cache=True, nogil=True)
def find_sorted(low, high, asked_low, asked_high):
    """Is each asked key among the keys, which are sorted by (low, high)?"""
    wide = len(high) > 0
    n = len(low)
    out = np.zeros(len(asked_low), np.bool_)
    for q in range(len(asked_low)):
        a, b = np.int64(0), np.int64(n)
        while a < b:
            m = (a + b) >> 1
            if low[m] < asked_low[q] or (wide and low[m] == asked_low[q] and high[m] < asked_high[q]):
                a = m + 1
            else:
                b = m
        out[q] = a < n and low[a] == asked_low[q] and (not wide or high[a] == asked_high[q])
    return out
