"""What two versions of the same keys' answers do not share."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def cancel_equal(
    old_key, old_start, old_end, old_weight, old_source, old_words,
    new_key, new_start, new_end, new_weight, new_source, new_words,
):
    """Indices of the old and of the new segments that have no equal on the other side; both sorted by (key, start)."""
    n, m = len(old_key), len(new_key)
    keep_old, keep_new = np.empty(n, np.int64), np.empty(m, np.int64)
    i = j = a = b = 0
    while i < n or j < m:
        if i < n and j < m and old_key[i] == new_key[j] and old_start[i] == new_start[j]:
            equal = old_end[i] == new_end[j] and old_weight[i] == new_weight[j]
            for v in range(old_words.shape[0]):
                equal = equal and old_words[v, old_source[i]] == new_words[v, new_source[j]]
            if not equal:
                keep_old[a], keep_new[b] = i, j
                a += 1
                b += 1
            i += 1
            j += 1
        elif j >= m or (i < n and (old_key[i], old_start[i]) < (new_key[j], new_start[j])):
            keep_old[a] = i
            a += 1
            i += 1
        else:
            keep_new[b] = j
            b += 1
            j += 1
    return keep_old[:a], keep_new[:b]
