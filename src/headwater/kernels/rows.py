"""Row windows: element i of a key lives from its slide to the slide that pushes it out (Krämer 8.18, 17.2).

With N rows and slide A, and s_j the start of the key's j-th element, element i is valid in [s_a, s_b) for
a = ceil(i/A)*A and b = ceil((i+N)/A)*A: n(t) elements have come by t, the window shows numbers K-N+1 to K for
K = floor(n(t)/A)*A, and i <= K is n(t) >= a while K-N+1 <= i is n(t) < b. N = END_OF_TIME: nothing is ever pushed out.

Arrays: ``count`` elements of key k are numbered already; the starts of those that matter, number ``first`` and on, are
in ``kept``, key after key by ``offsets``; more come, in order, with the starts ``time``, key after key by ``groups``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

END_OF_TIME = np.int64(2**63 - 1)


@njit(cache=True, inline="always")
def _shown_from(i, slide):
    return (i + slide - 1) // slide * slide


@njit(cache=True, inline="always")
def _shown_until(i, size, slide):
    if size == END_OF_TIME:
        return END_OF_TIME
    return (i + size + slide - 1) // slide * slide


@njit(cache=True, inline="always")
def _gone(count, size, slide):
    """How many of the first elements have both ends known when so many have come."""
    if size == END_OF_TIME:
        return count // slide * slide
    return max(count // slide * slide - size, np.int64(0))


@njit(cache=True, nogil=True)
def gone_rows(counts, size, slide):
    out = np.empty(len(counts), np.int64)
    for k in range(len(counts)):
        out[k] = _gone(counts[k], size, slide)
    return out


@njit(cache=True, nogil=True)
def find_ties(order, groups, time):
    """Positions in the order whose row has the key and the time of a neighbour."""
    n = len(order)
    tied = np.zeros(n, np.bool_)
    for k in range(len(groups) - 1):
        for p in range(groups[k] + 1, groups[k + 1]):
            if time[order[p]] == time[order[p - 1]]:
                tied[p] = tied[p - 1] = True
    return np.flatnonzero(tied)


@njit(cache=True, nogil=True)
def settle_ties(order, groups, time, tied, rank, old, new):
    """Put tied rows in the order of their ranks, sum the weights of equal ones, and drop what has none left.

    Returns rows, their old and new weights, and the groups of those.
    """
    n = len(order)
    ranks = np.zeros(n, np.int64)
    for j in range(len(tied)):
        ranks[tied[j]] = rank[j]
    rows, olds, news = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    starts = np.zeros(len(groups), np.int64)
    out = 0
    for k in range(len(groups) - 1):
        p = groups[k]
        while p < groups[k + 1]:
            q = p + 1
            while q < groups[k + 1] and time[order[q]] == time[order[p]]:
                q += 1
            places = np.argsort(ranks[p:q], kind="mergesort") if q - p > 1 else np.zeros(1, np.int64)
            j = 0
            while j < q - p:
                at = p + places[j]
                before, after = old[order[at]], new[order[at]]
                j += 1
                while j < q - p and ranks[p + places[j]] == ranks[at]:
                    before += old[order[p + places[j]]]
                    after += new[order[p + places[j]]]
                    j += 1
                if before > 0 or after > 0:
                    rows[out], olds[out], news[out] = order[at], max(before, 0), max(after, 0)
                    out += 1
            p = q
        starts[k + 1] = out
    return rows[:out].copy(), olds[:out].copy(), news[:out].copy(), starts


@njit(cache=True, nogil=True)
def close_rows(size, slide, count, first, offsets, kept, groups, time):
    """The elements whose ends become known: (key, source, start, end).

    ``source`` is a place in kept, or len(kept) + a place in time.
    """
    total = 0
    for k in range(len(count)):
        total += _gone(count[k] + groups[k + 1] - groups[k], size, slide) - _gone(count[k], size, slide)
    owner, source = np.empty(total, np.int64), np.empty(total, np.int64)
    start, end = np.empty(total, np.int64), np.empty(total, np.int64)
    out = 0
    for k in range(len(count)):
        c = count[k]
        old = offsets[k] - first[k]  # from a number to its place in kept
        new = groups[k] - c - 1  # and in time
        for i in range(_gone(c, size, slide) + 1, _gone(c + groups[k + 1] - groups[k], size, slide) + 1):
            a, b = _shown_from(i, slide), _shown_until(i, size, slide)
            begins = kept[old + a] if a <= c else time[new + a]
            ends = END_OF_TIME if b == END_OF_TIME else time[new + b]
            if begins < ends:
                owner[out], start[out], end[out] = k, begins, ends
                source[out] = old + i if i <= c else len(kept) + new + i
                out += 1
    return owner[:out], source[:out], start[:out], end[:out]


@njit(cache=True, nogil=True)
def open_rows(size, slide, count, offsets, kept):
    """What the windows show for ever when nothing more comes: (key, place in kept, start).

    ``kept`` ends with the last element of each key.
    """
    total = 0
    for k in range(len(count)):
        total += count[k] // slide * slide - _gone(count[k], size, slide)
    owner, source, start = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    out = 0
    for k in range(len(count)):
        place = offsets[k + 1] - 1 - count[k]
        for i in range(_gone(count[k], size, slide) + 1, count[k] // slide * slide + 1):
            owner[out], source[out], start[out] = k, place + i, kept[place + _shown_from(i, slide)]
            out += 1
    return owner, source, start


@njit(cache=True, inline="always")
def _life(i, size, slide, c, n, kept, old, time, new):
    """[start, end) of element i when n have come; start END_OF_TIME: not shown."""
    a, b = _shown_from(i, slide), _shown_until(i, size, slide)
    if a > n:
        return END_OF_TIME, END_OF_TIME
    start = kept[old + a] if a <= c else time[new + a]
    if b > n:
        return start, END_OF_TIME
    return start, kept[old + b] if b <= c else time[new + b]


@njit(cache=True, inline="always")
def _put(out, owner, source, start, end, weight, k, row, old, new):
    """Write the change from one lifetime to another; returns where the next one goes."""
    if old == new:
        return out
    if old[0] < old[1]:
        owner[out], source[out], start[out], end[out], weight[out] = k, row, old[0], old[1], -1
        out += 1
    if new[0] < new[1]:
        owner[out], source[out], start[out], end[out], weight[out] = k, row, new[0], new[1], 1
        out += 1
    return out


@njit(cache=True, nogil=True)
def change_rows(size, slide, count, first, offsets, kept, groups, time, before, after):
    """What changes when each coming row occurs ``after`` times and not ``before``: (key, source, start, end, weight).

    ``kept`` may stop short of ``count`` where the elements beyond do not change. ``source`` as in close_rows.
    """
    nowhere = (END_OF_TIME, END_OF_TIME)
    time_old, time_new = np.repeat(time, before), np.repeat(time, after)
    room = 2 * (len(kept) + np.maximum(before, after).sum())
    owner, source = np.empty(room, np.int64), np.empty(room, np.int64)
    start, end, weight = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    out = 0
    at_old = at_new = np.int64(0)
    for k in range(len(count)):
        c = count[k]
        n_old, n_new = c, c
        for x in range(groups[k], groups[k + 1]):
            n_old += before[x]
            n_new += after[x]
        place = offsets[k] - first[k]  # from a number to its place in kept
        old, new = at_old - c - 1, at_new - c - 1  # and in time_old, time_new
        for row in range(offsets[k], offsets[k + 1]):
            then = _life(row - place, size, slide, c, n_old, kept, place, time_old, old)
            now = _life(row - place, size, slide, c, n_new, kept, place, time_new, new)
            out = _put(out, owner, source, start, end, weight, k, row, then, now)
        i, j = c, c
        for x in range(groups[k], groups[k + 1]):
            for copy in range(1, max(before[x], after[x]) + 1):
                then, now = nowhere, nowhere
                if copy <= before[x]:
                    then = _life(i + copy, size, slide, c, n_old, kept, place, time_old, old)
                if copy <= after[x]:
                    now = _life(j + copy, size, slide, c, n_new, kept, place, time_new, new)
                out = _put(out, owner, source, start, end, weight, k, len(kept) + x, then, now)
            i += before[x]
            j += after[x]
        at_old += n_old - c
        at_new += n_new - c
    return owner[:out].copy(), source[:out].copy(), start[:out].copy(), end[:out].copy(), weight[:out].copy()
