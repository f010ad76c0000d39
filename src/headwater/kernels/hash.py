"""Hashes that serve as key identity: a bijective mixer for one integer, two independent lanes otherwise."""

from __future__ import annotations

import numpy as np
from numba import njit

_LANE_1 = np.uint64(0x9E3779B97F4A7C15)
_LANE_2 = np.uint64(0xC2B2AE3D27D4EB4F)


@njit(cache=True, inline="always")
def mix(x):
    """The finalizer of splitmix64: a bijection on 64 bits (inverse: ``unmix``)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, inline="always")
def unmix(x):
    x = (x ^ (x >> np.uint64(31)) ^ (x >> np.uint64(62))) * np.uint64(0x319642B2D24D8EC3)
    x = (x ^ (x >> np.uint64(27)) ^ (x >> np.uint64(54))) * np.uint64(0x96DE1B173F119089)
    return x ^ (x >> np.uint64(30)) ^ (x >> np.uint64(60))


@njit(cache=True, nogil=True)
def mix_all(words):
    out = np.empty(len(words), np.uint64)
    for i in range(len(words)):
        out[i] = mix(words[i])
    return out


@njit(cache=True, nogil=True)
def unmix_all(hashes):
    out = np.empty(len(hashes), np.uint64)
    for i in range(len(hashes)):
        out[i] = unmix(hashes[i])
    return out


@njit(cache=True, nogil=True)
def hash_words(words, lane_1, lane_2):
    """Fold one 64-bit word per row into the two lanes, in place."""
    for i in range(len(words)):
        lane_1[i] = mix((lane_1[i] ^ words[i]) + _LANE_1)
        lane_2[i] = mix((lane_2[i] + words[i]) * _LANE_2 + np.uint64(1))


@njit(cache=True, nogil=True)
def hash_bytes(offsets, data, lane_1, lane_2):
    """Fold one byte string per row (Arrow offsets and bytes) into the two lanes, in place."""
    for i in range(len(offsets) - 1):
        at, end = offsets[i], offsets[i + 1]
        a, b = lane_1[i], lane_2[i]
        length = np.uint64(end - at)
        while at < end:
            word = np.uint64(0)
            for k in range(min(8, end - at)):
                word |= np.uint64(data[at + k]) << np.uint64(8 * k)
            a = mix((a ^ word) + _LANE_1)
            b = mix((b + word) * _LANE_2 + np.uint64(1))
            at += 8
        lane_1[i] = mix(a ^ length)
        lane_2[i] = mix(b + length * _LANE_2)


@njit(cache=True, nogil=True)
def hash_lists(offsets, item_1, item_2, lane_1, lane_2):
    """Fold the hashed items of one list per row into the two lanes, in place (order matters)."""
    for i in range(len(offsets) - 1):
        a, b = lane_1[i], lane_2[i]
        for k in range(offsets[i], offsets[i + 1]):
            a = mix((a ^ item_1[k]) + _LANE_1)
            b = mix((b + item_2[k]) * _LANE_2 + np.uint64(1))
        length = np.uint64(offsets[i + 1] - offsets[i])
        lane_1[i] = mix(a ^ length)
        lane_2[i] = mix(b + length * _LANE_2)
