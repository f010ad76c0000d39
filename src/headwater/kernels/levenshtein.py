"""How many letters must be put in, taken out or changed to make one text of another."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def _letters(data, begin, end, out):
    """The code points of UTF-8 bytes; how many there are."""
    count = 0
    at = begin
    while at < end:
        first = np.int32(data[at])
        if first < 0x80:
            size, point = 1, first
        elif first < 0xE0:
            size, point = 2, first & 0x1F
        elif first < 0xF0:
            size, point = 3, first & 0x0F
        else:
            size, point = 4, first & 0x07
        for i in range(1, size):
            point = (point << 6) | (np.int32(data[at + i]) & 0x3F)
        out[count] = point
        count += 1
        at += size
    return count


@njit(cache=True, nogil=True)
def distances(left_data, left_offsets, right_data, right_offsets):
    """The distance of each pair of texts; texts are UTF-8 bytes between offsets."""
    rows = len(left_offsets) - 1
    result = np.empty(rows, np.int32)
    longest = 1
    for i in range(rows):
        longest = max(longest, left_offsets[i + 1] - left_offsets[i], right_offsets[i + 1] - right_offsets[i])
    left, right = np.empty(longest, np.int32), np.empty(longest, np.int32)
    costs = np.empty(longest + 1, np.int32)
    for i in range(rows):
        n = _letters(left_data, left_offsets[i], left_offsets[i + 1], left)
        m = _letters(right_data, right_offsets[i], right_offsets[i + 1], right)
        for j in range(m + 1):
            costs[j] = j
        for k in range(n):
            diagonal, costs[0] = costs[0], k + 1
            for j in range(m):
                changed = diagonal + (0 if left[k] == right[j] else 1)
                diagonal = costs[j + 1]
                costs[j + 1] = min(changed, diagonal + 1, costs[j] + 1)
        result[i] = costs[m]
    return result
