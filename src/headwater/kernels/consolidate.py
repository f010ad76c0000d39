"""Sum the weights of equal rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from headwater.kernels.hash import mix
from headwater.kernels.sort import sort_by_key


def consolidate_rows(low, high, start, end, weight):
    """Indices of one representative of each distinct (key, start, end) with a non-zero sum, in input order, and the sums."""
    # Only neighbourhood matters here, so one hash of everything is sorted, several times faster than a sort by columns.
    order = sort_by_key(_hash_all(low, high, start, end), low)
    return _sum_equal(order, low, high, start, end, weight)


@njit(cache=True, nogil=True)
def _hash_all(low, high, start, end):
    out = np.empty(len(low), np.uint64)
    wide = len(high) > 0
    for i in range(len(low)):
        word = mix(mix(low[i] + np.uint64(start[i])) ^ np.uint64(end[i]))
        out[i] = mix(word + high[i]) if wide else word
    return out


@njit(cache=True, nogil=True)
def _sum_equal(order, low, high, start, end, weight):
    n = len(order)
    wide = len(high) > 0
    total = np.zeros(n, np.int64)
    at = 0
    while at < n:
        first = order[at]
        sum_ = np.int64(0)
        while at < n:
            i = order[at]
            same = low[i] == low[first] and start[i] == start[first] and end[i] == end[first]
            if not same or (wide and high[i] != high[first]):
                break
            sum_ += weight[i]
            at += 1
        total[first] = sum_
    kept = np.flatnonzero(total)
    return kept, total[kept]
