"""The least of many growing instants."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa

from headwater.model.identity import Identity, identify, recover
from headwater.model.time import INFINITY
from headwater.state.heads import Heads
from headwater.state.starts import StartCounts
from headwater.state.store import FileStore, MemoryStore


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


class Instants:
    """What keys have now, and how many of them were asked for."""

    def __init__(self, count: int) -> None:
        self.now = np.zeros(count, np.int64)
        self.asked = 0

    def __call__(self, key: Identity) -> np.ndarray:
        self.asked += len(key.low)
        return self.now[recover(key.low, pa.int64()).to_numpy()]


def test_of_many_keys_with_one_instant_a_few_are_looked_at():
    """All were, at every tick: two million keys took a second each time."""
    count, rng = 20_000, np.random.default_rng(1)
    heads, now = Heads(MemoryStore()), Instants(count)
    heads.push(now.now.copy(), identify([pa.array(np.arange(count))], count))
    for tick in range(1, 400):
        now.now[50 * tick : 50 * tick + 50] = tick
        assert heads.least(now) == 0
    assert now.asked < 400 * 64
    now.now[:] = rng.permutation(np.repeat([400, 401], count // 2))
    assert heads.least(now) == 400
    assert now.asked < 400 * 64 + 4 * count
    for tick in range(402, 500):
        now.now[rng.integers(0, count, 1_000)] = tick
        now.asked = 0
        assert heads.least(now) == now.now.min()
        assert now.asked < 12_000


def test_what_is_left_of_one_instant_survives_a_restart_and_a_change_of_shards(tmp_path: Path):
    count, store = 1_000, FileStore(tmp_path)
    heads, now = Heads(store), Instants(count)
    heads.push(now.now.copy(), identify([pa.array(np.arange(count))], count))
    now.now[:] = 7
    now.now[[77, 901]] = 0
    assert heads.least(now) == 0
    manifest = heads.to_manifest()
    assert manifest["renewed"] > 0
    restored = Heads(store)
    restored.from_manifest(json.loads(json.dumps(manifest)))
    new = [Heads(store), Heads(store)]
    Heads.hand_over([heads], new, lambda columns: (columns["low"] & 1).astype(np.int64))
    assert sum(part._runs.rows for part in new) == count
    assert min(part.least(now) for part in new) == 0
    now.now[[77, 901]] = 9
    assert [restored.least(now), *(part.least(now) for part in new)] == [7, 7, 7]


def test_starts_are_counted_once_an_instant():
    starts = StartCounts(MemoryStore())
    starts.add(np.repeat([5, 3], 1_000), np.ones(2_000, np.int64))
    assert (starts.least(2_000, 0), sum(s.rows for s in starts.segments())) == (3, 2)
    starts.add(np.full(1_000, 3), np.full(1_000, -1))
    assert starts.least(1_000, 0) == 5
