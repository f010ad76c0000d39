"""The rows of a key that are valid at chosen instants: extreme, middle and most frequent ones, or all of them in order.

The instants asked for are numbered through, sorted by (key, instant); ``first`` says where each key's begin. A row is then a
range of them, [low, high), and its time is not needed any more.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def _first_not_before(instants, at, stop, time):
    while at < stop:
        middle = (at + stop) >> 1
        if instants[middle] < time:
            at = middle + 1
        else:
            stop = middle
    return at


@njit(cache=True, nogil=True)
def cover_instants(first, instants, key, start, end):
    """For each row the range of its key's instants in [start, end); (0, 0) where there is none."""
    n = len(key)
    low, high = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for i in range(n):
        at, stop = first[key[i]], first[key[i] + 1]
        a = _first_not_before(instants, at, stop, start[i])
        b = _first_not_before(instants, a, stop, end[i])
        if a < b:
            low[i], high[i] = a, b
    return low, high


@njit(cache=True, nogil=True)
def net_ranges(order, groups, rank, low, high, weight):
    """Where the weights of a key's equal values add up to more than zero: (row, low, high, sum), in ``order``.

    For rows of which some take others away; ``order`` sorts them by (key, rank).
    """
    n = len(order)
    rows, lows, highs = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    sums = np.empty(2 * n, np.int64)
    out = 0
    for k in range(len(groups) - 1):
        at = groups[k]
        while at < groups[k + 1]:
            row = order[at]
            to = at
            while to < groups[k + 1] and rank[order[to]] == rank[row]:
                to += 1
            places, changes = np.empty(2 * (to - at), np.int64), np.empty(2 * (to - at), np.int64)
            for j in range(at, to):
                i = order[j]
                places[2 * (j - at)], changes[2 * (j - at)] = low[i], weight[i]
                places[2 * (j - at) + 1], changes[2 * (j - at) + 1] = high[i], -weight[i]
            sorted_ = np.argsort(places, kind="mergesort")
            level, begun = np.int64(0), np.int64(0)
            for j in range(len(sorted_)):
                place = places[sorted_[j]]
                if level > 0 and place > begun:
                    rows[out], lows[out], highs[out], sums[out] = row, begun, place, level
                    out += 1
                level += changes[sorted_[j]]
                begun = place
            at = to
    return rows[:out].copy(), lows[:out].copy(), highs[:out].copy(), sums[:out].copy()


@njit(cache=True, nogil=True)
def extreme_rows(low, high, instants, largest):
    """For each instant the last (or first) row that is valid; -1 where there is none.

    Rows are sorted by (key, value). From the extreme one on, each takes the instants that are still free: nearly linear.
    """
    n = len(low)
    found = np.full(instants, -1, np.int64)
    free = np.arange(instants + 1)  # the next free instant, where one is taken; paths are halved as they are walked
    for k in range(n):
        i = n - 1 - k if largest else k
        at = low[i]
        while True:
            while free[at] != at:
                free[at] = free[free[at]]
                at = free[at]
            if at >= high[i]:
                break
            found[at] = i
            free[at] = at + 1
    return found


@njit(cache=True, nogil=True)
def count_rows(low, high, instants):
    """How many rows are valid at each instant."""
    counts = np.zeros(instants + 1, np.int64)
    for i in range(len(low)):
        counts[low[i]] += 1
        counts[high[i]] -= 1
    for q in range(instants):
        counts[q + 1] += counts[q]
    return counts[:instants]


@njit(cache=True, nogil=True)
def list_rows(low, high, counts, begin, stop):
    """The rows valid at the instants from begin to stop, in order: offsets (one per instant and the end) and rows."""
    offsets = np.empty(stop - begin + 1, np.int64)
    offsets[0] = 0
    for q in range(begin, stop):
        offsets[q - begin + 1] = offsets[q - begin] + counts[q]
    place = offsets[:-1].copy()
    rows = np.empty(offsets[-1], np.int64)
    for i in range(len(low)):
        for q in range(max(low[i], begin), min(high[i], stop)):
            rows[place[q - begin]] = i
            place[q - begin] += 1
    return offsets, rows


@njit(cache=True, nogil=True)
def middle_values(offsets, rows, weight, values, out):
    """The mean of the two middle ones of each list of rows with weights; lists of none are left out."""
    for q in range(len(offsets) - 1):
        total = np.int64(0)
        for k in range(offsets[q], offsets[q + 1]):
            total += weight[rows[k]]
        seen = np.int64(0)
        below = 0.0
        for k in range(offsets[q], offsets[q + 1]):
            i = rows[k]
            if seen <= (total - 1) // 2 < seen + weight[i]:
                below = values[i]
            if seen <= total // 2 < seen + weight[i]:
                out[q] = values[i] if values[i] == below else 0.5 * below + 0.5 * values[i]
                break
            seen += weight[i]


@njit(cache=True, nogil=True)
def rows_at(offsets, rows, weight, places, out):
    """Of each list of rows with weights the one at its place, counted in copies from 0; lists of none are left out."""
    for q in range(len(offsets) - 1):
        seen = np.int64(0)
        for k in range(offsets[q], offsets[q + 1]):
            seen += weight[rows[k]]
            if seen > places[q]:
                out[q] = rows[k]
                break


@njit(cache=True, nogil=True)
def central_moments(offsets, rows, weight, values, out):
    """Of each list of rows with weights: the means of the second, third and fourth power of the distance from the mean.

    Distances are taken from the first value before, so that equal values have none, however they round.
    """
    for q in range(len(offsets) - 1):
        if offsets[q] == offsets[q + 1]:
            continue
        origin = values[rows[offsets[q]]]
        count, mean = 0.0, 0.0
        for k in range(offsets[q], offsets[q + 1]):
            count += weight[rows[k]]
            mean += weight[rows[k]] * (values[rows[k]] - origin)
        mean /= count
        second, third, fourth = 0.0, 0.0, 0.0
        for k in range(offsets[q], offsets[q + 1]):
            distance = (values[rows[k]] - origin) - mean
            square = distance * distance
            second += weight[rows[k]] * square
            third += weight[rows[k]] * square * distance
            fourth += weight[rows[k]] * square * square
        out[0, q], out[1, q], out[2, q] = second / count, third / count, fourth / count


@njit(cache=True, nogil=True)
def most_frequent(offsets, rows, weight, rank, out):
    """Of each list of rows, sorted by rank, the first one of the rank that has the most weight; the lowest of several.

    Lists of none are left out.
    """
    for q in range(len(offsets) - 1):
        most = np.int64(0)
        k = offsets[q]
        while k < offsets[q + 1]:
            first, copies = rows[k], np.int64(0)
            while k < offsets[q + 1] and rank[rows[k]] == rank[first]:
                copies += weight[rows[k]]
                k += 1
            if copies > most:
                out[q], most = first, copies
