"""A checksum of bytes, to find out whether they are still what was written: not against an adversary."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

_ODD = np.uint64(0x9E3779B97F4A7C15)


def checksum(data) -> int:
    """63 bits that any bytes-like object has."""
    content = np.asarray(memoryview(data).cast("B"))
    content.flags.writeable = False  # one compiled form for all
    whole = len(content) // 8 * 8
    return int(_checksum(content[:whole].view(np.uint64), content[whole:])) >> 1


@njit(cache=True, nogil=True, inline="always")
def _mix(lane, word):
    """A bijection of either argument: one word that differs always shows."""
    lane = (lane ^ word) * _ODD
    return (lane << uint64(29)) | (lane >> uint64(35))


@njit(cache=True, nogil=True)
def _checksum(words, rest):
    """Of 64-bit words and the bytes after them; eight lanes, as a multiplication takes longer than to begin the next one."""
    a, b, c, d = uint64(1), uint64(2), uint64(3), uint64(4)
    e, f, g, h = uint64(5), uint64(6), uint64(7), uint64(8)
    whole = len(words) // 8 * 8
    for i in range(0, whole, 8):
        a, b, c, d = _mix(a, words[i]), _mix(b, words[i + 1]), _mix(c, words[i + 2]), _mix(d, words[i + 3])
        e, f, g, h = _mix(e, words[i + 4]), _mix(f, words[i + 5]), _mix(g, words[i + 6]), _mix(h, words[i + 7])
    for i in range(whole, len(words)):
        a = _mix(a, words[i])
    for i in range(len(rest)):
        a = _mix(a, uint64(rest[i]))
    total = uint64(len(words) * 8 + len(rest))
    for lane in (a, b, c, d, e, f, g, h):
        total = _mix(total, lane)
    return total
