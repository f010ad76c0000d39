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
    """Indices of the old and of the new segments that have no equal on the other side; both sorted by (key, start)."""
    n, m = len(old_key), len(new_key)
    keep_old, keep_new = np.empty(n, np.int64), np.empty(m, np.int64)
    i = j = a = b = 0
    while i < n or j < m:
        if i < n and j < m and old_key[i] == new_key[j] and old_start[i] == new_start[j]:
            equal = old_end[i] == new_end[j] and old_weight[i] == new_weight[j]
            for v in range(old_words.shape[0]):
                equal = equal and old_words[v, old_source[i]] == new_words[v, new_source[j]]
            if not equal:
                keep_old[a], keep_new[b] = i, j
                a += 1
                b += 1
            i += 1
            j += 1
        elif j >= m or (i < n and (old_key[i], old_start[i]) < (new_key[j], new_start[j])):
            keep_old[a] = i
            a += 1
            i += 1
        else:
            keep_new[b] = j
            b += 1
            j += 1
    return keep_old[:a], keep_new[:b]


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
