"""A radix directory over a sorted column of hashes: where the rows of a hash begin, found in constant time.

One int32 slot for about four rows, indexed by the top bits of the hash. It needs nothing but its own array, so it works
straight on a mapped file. Usage inside a kernel::

    shift = directory_shift(directory)                     # once
    at = first_at(low, directory, shift, value)            # first row whose hash is not below the value
    while at < len(low) and low[at] == value: ...
"""

from __future__ import annotations

import numpy as np
from numba import njit

_ROWS_A_SLOT = 4


@njit(cache=True, nogil=True)
def build_directory(low):
    """For each value of the top bits, the first row that has it or a larger one; the last entry is the number of rows.

    The length is ``2**bits + 1`` with bits >= 1.
    """
    n = len(low)
    bits = 1
    while (np.int64(_ROWS_A_SLOT) << bits) < n:
        bits += 1
    shift = np.uint64(64 - bits)
    slots = np.int64(1) << bits
    directory = np.empty(slots + 1, np.int32)
    slot = np.int64(0)
    for i in range(n):
        top = np.int64(low[i] >> shift)
        while slot <= top:
            directory[slot] = i
            slot += 1
    while slot <= slots:
        directory[slot] = n
        slot += 1
    return directory


@njit(cache=True, inline="always")
def directory_shift(directory):
    """By how many bits a hash is shifted down to be an index of this directory."""
    shift = np.uint64(64)
    slots = len(directory) - 1
    while slots > 1:
        slots >>= 1
        shift -= np.uint64(1)
    return shift


@njit(cache=True, inline="always")
def first_at(low, directory, shift, value):
    """The first row whose hash is not below the value (the number of rows if there is none).

    A few compares; where a frequent key fills a slot, a binary search.
    """
    slot = np.int64(value >> shift)
    at = np.int64(directory[slot])
    stop = np.int64(directory[slot + 1])
    while stop - at > 8:
        middle = (at + stop) >> 1
        if low[middle] < value:
            at = middle + 1
        else:
            stop = middle
    while at < stop and low[at] < value:
        at += 1
    return at


_AHEAD = 128


@njit(cache=True, nogil=True)
def find_first(values, low, directory):
    """Which of the values occur at all, and the first row of each; sorted values are found fastest.

    Looks a block of values ahead in steps without branches, so that the cache misses of many lookups overlap.
    """
    n, rows = len(values), len(low)
    shift = directory_shift(directory)
    which, first = np.empty(n, np.int64), np.empty(n, np.int64)
    begin, seen = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.uint64)
    found = 0
    if rows == 0:
        n = 0
    for block in range(0, n, _AHEAD):
        size = min(_AHEAD, n - block)
        for b in range(size):
            begin[b] = directory[np.int64(values[block + b] >> shift)]
        for b in range(size):
            seen[b] = low[min(begin[b], rows - 1)]
        for b in range(size):
            value = values[block + b]
            at = begin[b] if seen[b] >= value else first_at(low, directory, shift, value)
            if at < rows and low[at] == value:
                which[found] = block + b
                first[found] = at
                found += 1
    return which[:found], first[:found]
