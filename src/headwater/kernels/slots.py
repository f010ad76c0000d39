"""Count times in slots."""

from __future__ import annotations

import numpy as np
from numba import njit

_END = np.int64(2**63 - 1)  # the end of time


@njit(cache=True, nogil=True)
def count_in_slots(bounds, times, step, counts, least):
    """Add the step to the slot of each time (slot i begins at bounds[i]); the end of time is in none.

    Where the step is positive, ``least`` keeps the smallest time of each slot.
    """
    last = len(bounds) - 1
    newest = bounds[last]
    for i in range(len(times)):
        t = times[i]
        if t == _END:
            continue
        a = last
        if t < newest:
            a, b = 0, last
            while b - a > 1:
                m = (a + b) >> 1
                if bounds[m] <= t:
                    a = m
                else:
                    b = m
        counts[a] += step
        if step > 0 and t < least[a]:
            least[a] = t
