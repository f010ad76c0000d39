"""Intervals of one key that meet or overlap, as one."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def cover_intervals(order, groups, start, end):
    """The longest intervals at all of whose instants a key has a row: one of the rows, start and end of each.

    ``order`` sorts the rows by (key, start); ``groups`` says where each key begins.
    """
    rows, starts, ends = np.empty(len(order), np.int64), np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    out = -1
    for k in range(len(groups) - 1):
        for at in range(groups[k], groups[k + 1]):
            i = order[at]
            if at > groups[k] and start[i] <= ends[out]:
                ends[out] = max(ends[out], end[i])
            else:
                out += 1
                rows[out], starts[out], ends[out] = i, start[i], end[i]
    return rows[: out + 1], starts[: out + 1], ends[: out + 1]
