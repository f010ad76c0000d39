"""Groups of rows in CSR form: group g has the rows offsets[g] to offsets[g + 1] of every column."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def group_sizes(offsets, groups, places, out):
    """Write the number of rows of each chosen group to its place."""
    for k in range(len(groups)):
        g = groups[k]
        out[places[k]] = offsets[g + 1] - offsets[g]


@njit(cache=True, nogil=True)
def copy_groups(source, offsets, groups, places, out, out_offsets):
    """Copy the chosen groups of one column to their places among the groups of another."""
    for k in range(len(groups)):
        at = out_offsets[places[k]]
        for i in range(offsets[groups[k]], offsets[groups[k] + 1]):
            out[at] = source[i]
            at += 1


@njit(cache=True, nogil=True)
def group_rows(offsets, groups):
    """The rows of the chosen groups, one group after another."""
    total = 0
    for k in range(len(groups)):
        total += offsets[groups[k] + 1] - offsets[groups[k]]
    out = np.empty(total, np.int64)
    at = 0
    for k in range(len(groups)):
        for i in range(offsets[groups[k]], offsets[groups[k] + 1]):
            out[at] = i
            at += 1
    return out


@njit(cache=True, nogil=True)
def merged_offsets(older, newer, order):
    """The offsets of the groups that ``order`` picks from older + newer."""
    n = len(older) - 1
    out = np.empty(len(order) + 1, np.int64)
    out[0] = 0
    for k in range(len(order)):
        g = order[k]
        size = older[g + 1] - older[g] if g < n else newer[g - n + 1] - newer[g - n]
        out[k + 1] = out[k] + size
    return out


@njit(cache=True, nogil=True)
def merge_group_column(older, older_offsets, newer, newer_offsets, order, rows):
    """One column of the groups that ``order`` picks from older + newer; ``rows`` in all."""
    n = len(older_offsets) - 1
    out = np.empty(rows, older.dtype)
    at = 0
    for k in range(len(order)):
        g = order[k]
        if g < n:
            for i in range(older_offsets[g], older_offsets[g + 1]):
                out[at] = older[i]
                at += 1
        else:
            for i in range(newer_offsets[g - n], newer_offsets[g - n + 1]):
                out[at] = newer[i]
                at += 1
    return out


@njit(cache=True, nogil=True)
def merged_group_rows(older_offsets, newer_offsets, order, rows):
    """Where the rows of the picked groups are in the older rows followed by the newer ones."""
    n = len(older_offsets) - 1
    shift = older_offsets[n]
    out = np.empty(rows, np.int64)
    at = 0
    for k in range(len(order)):
        g = order[k]
        if g < n:
            for i in range(older_offsets[g], older_offsets[g + 1]):
                out[at] = i
                at += 1
        else:
            for i in range(newer_offsets[g - n], newer_offsets[g - n + 1]):
                out[at] = shift + i
                at += 1
    return out
