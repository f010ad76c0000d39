"""Groups of rows per key, the newest wins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.model.identity import Identity, identify
from headwater.state.columns import take_column
from headwater.state.groups import LatestGroups
from headwater.state.store import FileStore, MemoryStore

Rows = list[tuple[int, str | None]]


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path)


def keys_of(values: list[str], *, wide: bool) -> tuple[Identity, list[int]]:
    """Hashes of the values, and the order that sorts them."""
    columns = [pa.array(values)] if wide else [pa.array([int(v) for v in values], pa.int64())]
    key = identify(columns, len(values))
    order = np.lexsort((key.high, key.low)) if len(key.high) else np.argsort(key.low)
    return key.take(order), order.tolist()


def put(groups: LatestGroups, new: dict[str, tuple[Rows, int] | None], *, wide: bool) -> None:
    """Put (rows, scalar) for each key; None is a dead group."""
    key, order = keys_of(list(new), wide=wide)
    chosen = [list(new.values())[i] for i in order]
    sizes = [len(c[0]) if c else 0 for c in chosen]
    flat = [row for c in chosen if c for row in c[0]]
    groups.put(
        key,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        {"number": np.array([r[0] for r in flat], np.int64), "text": pa.array([r[1] for r in flat], pa.string())},
        {
            "total": np.array([c[1] if c else 0 for c in chosen]),
            "name": pa.array([str(c[1]) if c else None for c in chosen], pa.string()),
        },
        np.array([c is None for c in chosen]),
        groups.find(key),
    )


def asked(groups: LatestGroups, values: list[str], *, wide: bool) -> dict[str, tuple[Rows, int] | None]:
    key, order = keys_of(values, wide=wide)
    found = groups.find(key)
    offsets, columns, scalars = groups.gather(found)
    number, text = columns["number"].tolist(), columns["text"].to_pylist()
    out: dict[str, tuple[Rows, int] | None] = {}
    for k, i in enumerate(order):
        rows = list(zip(number, text, strict=True))[offsets[k] : offsets[k + 1]]
        alive = found.segment[k] >= 0
        assert scalars["name"][k].as_py() == (str(scalars["total"][k]) if alive else None)
        out[values[i]] = (rows, int(scalars["total"][k])) if alive else None
        assert alive or rows == []
    return out


@pytest.mark.parametrize("wide", [False, True])
def test_the_newest_group_of_each_key_is_found(store, wide):
    random = np.random.default_rng(7)
    groups = LatestGroups(store, columns={"number": np.empty(0, np.int64), "text": pa.array([], pa.string())},
                          scalars={"total": np.empty(0, np.int64), "name": pa.array([], pa.string())})  # fmt: skip
    expected: dict[str, tuple[Rows, int] | None] = {str(i): None for i in range(60)}
    assert asked(groups, list(expected), wide=wide) == expected
    for _ in range(80):
        chosen = random.choice(60, random.integers(1, 25), replace=False)
        new: dict[str, tuple[Rows, int] | None] = {}
        for k in chosen.tolist():
            rows = [(int(random.integers(100)), random.choice(["a", "bb", None])) for _ in range(random.integers(4))]
            new[str(k)] = None if random.random() < 0.3 else (rows, int(random.integers(1000)))
        put(groups, new, wide=wide)
        expected |= new
        assert asked(groups, list(expected), wide=wide) == expected
        alive = [g for g in expected.values() if g is not None]
        assert (groups.keys, groups.rows) == (len(alive), sum(len(g[0]) for g in alive))
        assert len(groups.segments()) < 5
    key, live = groups.live()
    assert len(key.low) == groups.keys == len(live.offsets) - 1
    assert sorted(live.scalars["total"].tolist()) == sorted(g[1] for g in expected.values() if g)
    groups.clear()
    assert (groups.rows, groups.keys, groups.bytes) == (0, 0, 0)


def test_dead_groups_leave_nothing_behind(store):
    groups = LatestGroups(store)
    put(groups, {str(i): ([(i, "x")], i) for i in range(100)}, wide=False)
    put(groups, {str(i): None for i in range(100)}, wide=False)
    assert groups.segments() == []
    assert (groups.rows, groups.keys) == (0, 0)
    put(groups, {"1": None, "2": ([(2, None)], 2)}, wide=False)
    assert asked(groups, ["1", "2", "3"], wide=False) == {"1": None, "2": ([(2, None)], 2), "3": None}


def test_numpy_rows_alone_come_back_in_the_order_asked_for(store):
    groups = LatestGroups(store)
    key, _ = keys_of([str(i) for i in range(1000)], wide=False)
    offsets = np.arange(0, 3001, 3)
    groups.put(key, offsets, {"v": np.arange(3000)}, {}, np.zeros(1000, np.bool_), groups.find(key))
    back = np.arange(999, -1, -7)
    found = groups.find(key.take(back))
    got = groups.gather(found)
    assert got.offsets.tolist() == list(range(0, 3 * len(back) + 1, 3))
    assert got.columns["v"].tolist() == [3 * int(k) + j for k in back for j in range(3)]
    assert take_column(got.columns["v"], np.array([0])).tolist() == [2997]
