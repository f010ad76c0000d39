"""The commonest sweep in one pass: the number of rows and the sum of one column of finite floats, each row once."""

from __future__ import annotations

import numpy as np
from numba import njit

from headwater.kernels.sweep_totals import LARGE, add_double

_END = np.int64(2**63 - 1)  # the end of time


@njit(cache=True, nogil=True)
def sweep_sum(groups, time, weight, values, rows, sums, rests, since, horizon, show_open):
    """Segments (key index, start, end, rows, sum, rest) by (key, start); rows, sums, rests and since as at the horizon.

    The same segments as the passes of ``sweep_totals`` give: cut where the rows or the sum change.
    """
    keys, room = len(groups) - 1, len(time)
    room += keys if show_open else 0
    key, start, end = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    shown_rows, shown = np.empty(room, np.int64), np.empty((2, room), np.float64)
    out = 0
    for k in range(keys):
        count, total, rest, begun = rows[k], sums[k], rests[k], since[k]
        at, last = groups[k], groups[k + 1]
        while at < last:
            t = time[at]
            was, was_total, was_rest = count, total, rest
            while at < last and time[at] == t:
                w = weight[at]
                total, rest = add_double(total, rest, values[at] * w)
                count += w
                at += 1
            if count == 0:  # nothing left: exactly zero
                total, rest = 0.0, 0.0
            if count != was or total != was_total or rest != was_rest:
                if was > 0:
                    key[out], start[out], end[out], shown_rows[out] = k, begun, t, was
                    shown[0, out], shown[1, out] = was_total, was_rest
                    out += 1
                begun = t
            if t < horizon:
                rows[k], sums[k], rests[k], since[k] = count, total, rest, begun
        if show_open and count > 0:
            key[out], start[out], end[out], shown_rows[out] = k, begun, _END, count
            shown[0, out], shown[1, out] = total, rest
            out += 1
    return key[:out], start[:out], end[:out], shown_rows[:out], shown[:, :out]


@njit(cache=True, nogil=True)
def is_plain(valid, weight, values):
    """Does every endpoint bring one row with a value that sums do not overflow with?"""
    for i in range(len(values)):
        if valid[i] == 0 or not (weight[i] == 1 or weight[i] == -1) or not abs(values[i]) < LARGE:
            return False
    return True


@njit(cache=True, nogil=True)
def has_ties(groups, time):
    """Are there two endpoints of a key at one instant?"""
    for k in range(len(groups) - 1):
        for at in range(groups[k] + 1, groups[k + 1]):
            if time[at] == time[at - 1]:
                return True
    return False
