"""Sessions: rows of one key at most a gap apart belong together.

Sessions that are known are blocks [first, last] of a key (key after key by ``offsets``, in time order, more than the gap
apart); rows are points, key after key by ``groups``, in time order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

END_OF_TIME = np.int64(2**63 - 1)


@njit(cache=True, nogil=True)
def find_revised(groups, time, weight, offsets, first, last):
    """For each block: does a point of negative weight lie in it? Then it may fall apart."""
    revised = np.zeros(len(first), np.bool_)
    for k in range(len(groups) - 1):
        block = offsets[k]
        for point in range(groups[k], groups[k + 1]):
            if weight[point] >= 0:
                continue
            while block < offsets[k + 1] and last[block] < time[point]:
                block += 1
            if block < offsets[k + 1] and first[block] <= time[point]:
                revised[block] = True
    return revised


@njit(cache=True, nogil=True)
def join_sessions(gap, groups, time, until, offsets, first, last):
    """Join the blocks and the points of each key that are at most the gap apart.

    Point p is there from time[p] to until[p]. Returns (key, first, last, number of blocks, number of points) of each
    session, in the order of (key, first), and the session of each point and of each block.
    """
    room = len(time) + len(first)
    key, starts, ends = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    blocks, points = np.zeros(room, np.int64), np.zeros(room, np.int64)
    of_point, of_block = np.empty(len(time), np.int64), np.empty(len(first), np.int64)
    session = -1
    for k in range(len(groups) - 1):
        point, block = groups[k], offsets[k]
        begun = False
        reach = np.int64(0)
        while point < groups[k + 1] or block < offsets[k + 1]:
            is_block = point == groups[k + 1] or (block < offsets[k + 1] and first[block] <= time[point])
            low = first[block] if is_block else time[point]
            high = last[block] if is_block else until[point]
            if not begun or low > reach:
                session += 1
                key[session], starts[session], ends[session] = k, low, high
                begun = True
            ends[session] = max(ends[session], high)
            reach = END_OF_TIME if ends[session] > END_OF_TIME - gap else ends[session] + gap
            if is_block:
                of_block[block] = session
                blocks[session] += 1
                block += 1
            else:
                of_point[point] = session
                points[session] += 1
                point += 1
    size = session + 1
    return (key[:size], starts[:size], ends[:size], blocks[:size], points[:size]), of_point, of_block
