"""Rows sorted by key hash: sort them, merge them, and pair query rows with the stored rows of the same key.

A pairing kernel fills its output arrays and says where it stopped, so that the caller can go on
with the next block: nothing is counted beforehand and memory stays bounded however many pairs there are.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def match_keys(which, first, q_low, q_high, low, high, at, offset, out_query, out_row):
    """Pairs (query row, stored row) of equal keys; ``which`` queries have rows, beginning at ``first``.

    Goes on from entry ``at`` of these, ``offset`` rows after its first one; returns where to go on next time (``at`` ==
    number of entries: done) and how many pairs were written.
    """
    wide = len(high) > 0
    rows, room = len(low), len(out_query)
    filled = 0
    while at < len(which):
        query, row = which[at], first[at] + offset
        key = q_low[query]
        while row < rows and low[row] == key:
            if not wide or high[row] == q_high[query]:
                if filled == room:
                    return at, row - first[at], filled
                out_query[filled], out_row[filled] = query, row
                filled += 1
            row += 1
        offset = np.int64(0)
        at += 1
    return at, offset, filled


@njit(cache=True, nogil=True)
def match_overlapping(
    which,
    first,
    q_low,
    q_high,
    q_start,
    q_end,
    low,
    high,
    end,
    lifetime,
    at,
    offset,
    out_query,
    out_row,
    out_start,
    out_end,
):
    """As ``match_keys``, but only pairs whose intervals meet, with the interval in which they do.

    Stored rows are [end - lifetime, end); what all of them have in common is an array of one.
    """
    wide = len(high) > 0
    rows, room = len(low), len(out_query)
    end_step = np.int64(0) if len(end) == 1 else np.int64(1)
    lifetime_step = np.int64(0) if len(lifetime) == 1 else np.int64(1)
    filled = 0
    while at < len(which):
        query, row = which[at], first[at] + offset
        key = q_low[query]
        while row < rows and low[row] == key:
            if not wide or high[row] == q_high[query]:
                stops = end[row * end_step]
                starts = max(stops - lifetime[row * lifetime_step], q_start[query])
                stops = min(stops, q_end[query])
                if starts < stops:
                    if filled == room:
                        return at, row - first[at], filled
                    out_query[filled], out_row[filled] = query, row
                    out_start[filled], out_end[filled] = starts, stops
                    filled += 1
            row += 1
        offset = np.int64(0)
        at += 1
    return at, offset, filled


@njit(cache=True, nogil=True)
def merge_keys(a_low, a_high, a_expiry, b_low, b_high, b_expiry, frontier):
    """Indices into a + b that put the rows that expire after the frontier in order of (low, high); a first on ties."""
    n, m = len(a_low), len(b_low)
    wide = len(a_high) > 0
    out = np.empty(n + m, np.int64)
    i = j = k = 0
    while i < n or j < m:
        take_b = i >= n
        if not take_b and j < m:
            if b_low[j] != a_low[i]:
                take_b = b_low[j] < a_low[i]
            else:
                take_b = wide and b_high[j] < a_high[i]
        if take_b:
            if b_expiry[j] > frontier:
                out[k] = n + j
                k += 1
            j += 1
        else:
            if a_expiry[i] > frontier:
                out[k] = i
                k += 1
            i += 1
    return out[:k]


@njit(cache=True, nogil=True)
def sum_equal_rows(order, low, high, print_1, print_2, weight):
    """Sum the weights of neighbours (in ``order``) equal in key and in the row's fingerprint; drop what comes to zero.

    Returns the kept rows, in order, and their sums. Equal rows that a collision has separated stay: only space is lost.
    """
    n = len(order)
    wide = len(high) > 0
    kept, sums = np.empty(n, np.int64), np.empty(n, np.int64)
    size = at = 0
    while at < n:
        i = order[at]
        total = weight[i]
        at += 1
        while at < n:
            j = order[at]
            if low[j] != low[i] or print_1[j] != print_1[i] or print_2[j] != print_2[i]:
                break
            if wide and high[j] != high[i]:
                break
            total += weight[j]
            at += 1
        if total != 0:
            kept[size], sums[size] = i, total
            size += 1
    return kept[:size], sums[:size]
