"""Queues of rows, a key each."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.model.identity import Identity, identify
from headwater.state.queues import KeyQueues, to_arrow, to_numpy
from headwater.state.store import FileStore, MemoryStore

TYPES = {"v": pa.int64(), "t": pa.string()}


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path)


def sorted_keys(values: list[int], *, wide: bool) -> tuple[Identity, list[int]]:
    columns = [pa.array(values, pa.int64())] * (2 if wide else 1)
    key = identify(columns, len(values))
    order = np.lexsort((key.high, key.low)) if wide else np.argsort(key.low)
    return key.take(order), [values[i] for i in order]


def push(queues: KeyQueues, news: dict[int, list[tuple[int, int | None, str]]], *, wide: bool) -> None:
    key, values = sorted_keys(list(news), wide=wide)
    queued = queues.find(key)
    sizes = np.array([len(news[v]) for v in values])
    rows = [row for v in values for row in news[v]]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    columns = {"v": pa.array([r[1] for r in rows], pa.int64()), "t": pa.array([r[2] for r in rows])}
    time = np.array([r[0] for r in rows])
    queues.push(key, queued, queued.count + sizes, offsets, time, columns, {"name": pa.array(map(str, values))})


@pytest.mark.parametrize("wide", [False, True])
def test_rows_are_found_by_number_until_they_have_left(store, wide):
    rng = random.Random(3)
    queues = KeyQueues(store, TYPES, lambda counts: np.maximum(counts - 4, 0))
    expected: dict[int, list[tuple[int, int | None, str]]] = {k: [] for k in range(40)}
    for tick in range(60):
        news = {k: [(tick, rng.choice([1, 2, 3, None] if tick % 3 else [7]), str(rng.random()))
                    for _ in range(rng.randint(1, 6))] for k in rng.sample(range(40), rng.randint(1, 20))}  # fmt: skip
        push(queues, news, wide=wide)
        for k, rows in news.items():
            expected[k] += rows
        asked = rng.sample(range(45), 20)
        key, values = sorted_keys(asked, wide=wide)
        queued = queues.find(key)
        counts = np.array([len(expected.get(v, [])) for v in values])
        assert queued.count.tolist() == counts.tolist()
        first = np.maximum(counts - 3, 1)
        located = queues.locate(queued, first, counts)
        want = [row for v in values for row in expected.get(v, [])[-4:]]
        assert queues.times(located).tolist() == [r[0] for r in want]
        chosen = np.arange(0, len(want), 2)
        order, parts = queues.take(located, chosen)
        got = [(v, t) for part in parts for v, t in zip(part["v"].to_pylist(), part["t"].to_pylist(), strict=True)]
        assert got == [want[2 * i][1:] for i in order.tolist()]
        assert queues.rows == sum(min(len(rows), 4) for rows in expected.values())
        assert queues.keys == sum(map(bool, expected.values()))
        assert sum(s.most for s in queues.segments()) <= 3 * queues.rows + 120
        assert len(queues.segments()) < 6
    key, count, offsets, rows, scalars = queues.live()
    names = [int(n) for n in scalars["name"].to_pylist()]
    texts = rows["t"].to_pylist()
    for i, k in enumerate(names):
        assert count[i] == len(expected[k])
        assert texts[offsets[i + 1] - min(4, count[i]) : offsets[i + 1]] == [r[2] for r in expected[k][-4:]]
    queues.clear()
    assert (queues.rows, queues.keys, queues.bytes) == (0, 0, 0)


def test_keys_without_rows_are_forgotten(store):
    queues = KeyQueues(store, TYPES, lambda counts: counts // 2 * 2)
    for _ in range(4):
        push(queues, {k: [(0, k, "x")] for k in range(20)}, wide=False)
    assert queues.rows == 0
    assert queues.segments() == []


@pytest.mark.parametrize(
    "type_",
    [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.time64("us")],
    ids=str,
)
def test_fixed_width_columns_are_numpy_and_come_back(type_):
    column = pa.array([0, 1, 100]).cast(pa.int32() if type_ == pa.date32() else pa.int64()).cast(type_)[1:]
    packed = to_numpy(column)
    assert isinstance(packed, np.ndarray)
    assert to_arrow(packed, type_).equals(column)
    assert isinstance(to_numpy(pa.array([None], type_)), pa.Array)
