"""Find keys in a sorted segment through its radix directory."""

from __future__ import annotations

import numpy as np
from numba import njit

from headwater.kernels.directory import directory_shift, first_at

_AHEAD = 128


@njit(cache=True, nogil=True)
def find_keys(low, high, directory, dead, asked_low, asked_high, index, segment, row):
    """Where ``segment`` is still -2, set it to the index (-1: found dead) and ``row`` to the place in this segment.

    ``dead`` has an entry per row, or one for all.
    """
    step = 0 if len(dead) == 1 else 1
    n = len(low)
    wide = len(high) > 0
    shift = directory_shift(directory)
    warmed = np.uint64(0)
    for begin in range(0, len(asked_low), _AHEAD):
        end = min(begin + _AHEAD, len(asked_low))
        for k in range(begin, end):  # touch what the loop below reads, so that the cache misses overlap
            warmed ^= low[min(np.int64(directory[np.int64(asked_low[k] >> shift)]), n - 1)]
        for k in range(begin, end):
            if segment[k] != -2:
                continue
            value = asked_low[k]
            at = first_at(low, directory, shift, value)
            while at < n and low[at] == value:
                if not wide or high[at] == asked_high[k]:
                    segment[k] = -1 if dead[at * step] != 0 else np.int64(index)
                    row[k] = at
                    break
                at += 1
    return warmed


@njit(cache=True, nogil=True)
def gather_records(records, index, segment, row, out):
    """Copy the records of the keys found in this segment."""
    width = records.shape[1]
    for k in range(len(segment)):
        if segment[k] == index:
            r = row[k]
            for v in range(width):
                out[k, v] = records[r, v]
