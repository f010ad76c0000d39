"""The least of many growing instants."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from headwater.model.identity import identify, recover
from headwater.model.time import INFINITY
from headwater.state.heads import Heads
from headwater.state.store import MemoryStore


def test_the_least_is_exact_and_each_key_has_one_entry():
    rng = random.Random(1)
    heads, now, looked_at = Heads(MemoryStore()), {}, []

    def current(key):
        looked_at.append(len(key.low))
        return np.array([now[k] for k in recover(key.low, pa.int64()).to_pylist()])

    assert heads.least(current) == INFINITY
    for tick in range(300):
        new = [k for k in {rng.randint(0, 2000) for _ in range(10)} if k not in now]
        for k in new:
            now[k] = 10 * tick + rng.randint(0, 9)
        key = identify([pa.array(new, pa.int64())], len(new))
        heads.push(np.array([now[k] - rng.randint(0, now[k] - 10 * tick) for k in new], np.int64), key)
        for k in rng.sample(sorted(now), len(now) // 2):
            now[k] = max(now[k], 10 * tick + rng.randint(0, 9))
        looked_at.clear()
        assert heads.least(current) == min(now.values())
        assert sum(s.rows for s in heads.segments()) <= 3 * len(now) + 64
    heads.clear()
    assert heads.bytes == 0
