"""Sweep the endpoints of each key in time and turn two counts into a multiplicity.

The family of operators whose answer for a row depends only on how often the row occurs in each input: DISTINCT,
differences, intersections, max-union, coalesce, semi- and anti-join by row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_END = np.int64(2**63 - 1)  # the end of time

DISTINCT, BAG, EXCEPT_ALL, EXCEPT, STRICT_DIFFERENCE, INTERSECT_ALL, INTERSECT, MAX_UNION, SEMI = range(9)


@njit(cache=True, inline="always")
def multiplicity(kind, a, b):
    """How many copies of a row that occurs a times on the left and b times on the right (Krämer 8.5, 8.6, 8.12-8.14)."""
    if kind == DISTINCT:
        return np.int64(1) if a > 0 else np.int64(0)
    if kind == BAG:
        return a
    if kind == EXCEPT_ALL:
        return max(a - b, np.int64(0))
    if kind == EXCEPT:
        return np.int64(1) if a > 0 and b <= 0 else np.int64(0)
    if kind == STRICT_DIFFERENCE:
        return a if b <= 0 else np.int64(0)
    if kind == INTERSECT_ALL:
        return min(a, b)
    if kind == INTERSECT:
        return np.int64(1) if a > 0 and b > 0 else np.int64(0)
    if kind == MAX_UNION:
        return max(a, b)
    return a if b > 0 else np.int64(0)  # SEMI


@njit(cache=True, nogil=True)
def sweep_counts(kind, groups, time, port, weight, left, right, since, horizon, show_open):
    """Segments (key index, start, end, multiplicity) of every key, by (key, start).

    A segment is closed by the next endpoint at which the multiplicity changes; the last one is shown until the end of
    time, or not at all. left, right and since become those after the last endpoint before the horizon.
    """
    n, keys_n = len(time), len(groups) - 1
    room = n + keys_n if show_open else n
    keys, starts, ends, counts = (
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )
    out = 0
    for k in range(keys_n):
        a, b, begun = left[k], right[k], since[k]
        m = multiplicity(kind, a, b)
        at, last = groups[k], groups[k + 1]
        while at < last:
            t = time[at]
            while at < last and time[at] == t:
                if port[at] == 0:
                    a += weight[at]
                else:
                    b += weight[at]
                at += 1
            changed = multiplicity(kind, a, b)
            if changed != m:
                if m > 0:
                    keys[out], starts[out], ends[out], counts[out] = k, begun, t, m
                    out += 1
                begun, m = t, changed
            if t < horizon:
                left[k], right[k], since[k] = a, b, begun
        if show_open and m > 0:
            keys[out], starts[out], ends[out], counts[out] = k, begun, _END, m
            out += 1
    return keys[:out], starts[:out], ends[:out], counts[:out]


@njit(cache=True, nogil=True)
def all_multiplicities(kind, left, right):
    out = np.empty(len(left), np.int64)
    for k in range(len(left)):
        out[k] = multiplicity(kind, left[k], right[k])
    return out


@njit(cache=True, nogil=True)
def sweep_changes(groups, time, weight):
    """Where the count of each key changes, and by how much: (key index, instant, change). Istream and Dstream read this."""
    n = len(time)
    keys, instants, changes = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    out = 0
    for k in range(len(groups) - 1):
        at, last = groups[k], groups[k + 1]
        while at < last:
            t = time[at]
            change = np.int64(0)
            while at < last and time[at] == t:
                change += weight[at]
                at += 1
            if change != 0:
                keys[out], instants[out], changes[out] = k, t, change
                out += 1
    return keys[:out], instants[:out], changes[:out]


@njit(cache=True, nogil=True)
def first_marked(groups, mark):
    """For each key the first mark >= 0 among its endpoints, or -1."""
    out = np.full(len(groups) - 1, -1, np.int64)
    for k in range(len(groups) - 1):
        for at in range(groups[k], groups[k + 1]):
            if mark[at] >= 0:
                out[k] = mark[at]
                break
    return out
