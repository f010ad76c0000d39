"""Merge sorted segments: which row comes from where."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def merge_times(older, newer):
    """Indices into older + newer (concatenated) that put both time-sorted columns in one order; older first on ties."""
    n, m = len(older), len(newer)
    out = np.empty(n + m, np.int64)
    i = j = k = 0
    while i < n and j < m:
        if newer[j] < older[i]:
            out[k] = n + j
            j += 1
        else:
            out[k] = i
            i += 1
        k += 1
    while i < n:
        out[k] = i
        i += 1
        k += 1
    while j < m:
        out[k] = n + j
        j += 1
        k += 1
    return out


@njit(cache=True, nogil=True)
def merge_latest(older, older_high, newer, newer_high, older_dead, newer_dead, bottom):
    """Indices into older + newer, sorted by key; the newer row wins; at the bottom the dead fall out."""
    n, m = len(older), len(newer)
    wide = len(older_high) > 0
    out = np.empty(n + m, np.int64)
    i = j = k = 0
    while i < n or j < m:
        take_new = False
        if i >= n:
            take_new = True
        elif j < m:
            if newer[j] != older[i]:
                take_new = newer[j] < older[i]
            elif wide and newer_high[j] != older_high[i]:
                take_new = newer_high[j] < older_high[i]
            else:
                i += 1
                take_new = True
        if take_new:
            if not (bottom and newer_dead[j] != 0):
                out[k] = n + j
                k += 1
            j += 1
        else:
            if not (bottom and older_dead[i] != 0):
                out[k] = i
                k += 1
            i += 1
    return out[:k]


def take_two(older, newer, indices):
    """Gather from two columns as if they were concatenated; the result has a type that both fit."""
    if older.dtype != newer.dtype:
        wider = np.promote_types(older.dtype, newer.dtype)
        older, newer = older.astype(wider), newer.astype(wider)
    return _take_two(older, newer, indices)


@njit(cache=True, nogil=True)
def _take_two(older, newer, indices):
    n = len(older)
    out = np.empty(len(indices), older.dtype)
    for k in range(len(indices)):
        i = indices[k]
        out[k] = older[i] if i < n else newer[i - n]
    return out


@njit(cache=True, nogil=True)
def take_two_records(older, newer, indices):
    """Gather rows from two tables as if they were concatenated."""
    n, width = len(older), older.shape[1]
    out = np.empty((len(indices), width), older.dtype)
    for k in range(len(indices)):
        i = indices[k]
        if i < n:
            for v in range(width):
                out[k, v] = older[i, v]
        else:
            for v in range(width):
                out[k, v] = newer[i - n, v]
    return out
