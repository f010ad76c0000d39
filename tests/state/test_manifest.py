"""Layouts written as manifests, read back, and handed over to another number of shards."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import StateError
from headwater.model.delta import shard_of
from headwater.model.identity import Identity, identify
from headwater.model.time import INFINITY
from headwater.state.buckets import ExpiryBuckets
from headwater.state.groups import LatestGroups
from headwater.state.heads import Heads
from headwater.state.hold_counts import HoldCounts
from headwater.state.latest import LatestWins
from headwater.state.manifest import State, StateLayout, agreed, route_by_key, rows_by_shard, state_segments
from headwater.state.queues import KeyQueues
from headwater.state.runs import TimeRuns
from headwater.state.store import FileStore

KEYS = np.arange(500)
NONE = np.empty(0, np.uint64)


def identity(keys: np.ndarray, *, wide: bool) -> Identity:
    columns = [pa.array(keys), pa.array([f"key {k}" for k in keys])] if wide else [pa.array(keys)]
    return identify(columns, len(keys))


def sorted_keys(keys: np.ndarray, *, wide: bool) -> tuple[Identity, np.ndarray]:
    key = identity(keys, wide=wide)
    order = np.lexsort((key.high, key.low)) if wide else np.argsort(key.low)
    return key.take(order), keys[order]


def time_runs(store, *, wide):
    runs = TimeRuns(store, constants=("weight",))
    for i in range(5):
        key = identity(KEYS[i::5], wide=wide)
        columns = {
            "time": KEYS[i::5] * 10,
            "weight": np.ones(100, np.int64),
            "low": key.low,
            "text": pa.array(["x"] * 100),
        }
        runs.append(columns | ({"high": key.high} if wide else {}))
    runs.advance(1000)
    return runs


def content_of_runs(runs):
    return sorted(t for part in runs.between(0, INFINITY) for t in part["time"].tolist())


def latest_wins(store, *, wide):
    table = LatestWins(store)
    for i in range(6):
        key, keys = sorted_keys(KEYS[i * 50 : i * 50 + 200], wide=wide)
        record = np.stack([keys, np.full(200, i)], axis=1)
        table.put(key, record, {"text": pa.array([str(k) for k in keys])}, (keys + i) % 7 == 0, table.find(key))
    return table


def content_of_latest(table):
    _, columns = table.live()
    return sorted(map(tuple, columns["record"].tolist())) if columns else []


def latest_groups(store, *, wide):
    groups = LatestGroups(
        store, columns={"x": np.empty(0, np.int64), "t": pa.array([], pa.string())}, scalars={"n": KEYS}
    )
    for i in range(4):
        key, keys = sorted_keys(KEYS[i * 80 : i * 80 + 200], wide=wide)
        sizes = (keys + i) % 4
        x = np.repeat(keys, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        columns = {"x": x, "t": pa.array(x.astype(str))}
        groups.put(key, offsets, columns, {"n": keys * 2}, sizes == 0, groups.find(key))
    return groups


def content_of_groups(groups):
    _, (offsets, columns, scalars) = groups.live()
    return sorted(columns["x"].tolist()), sorted(zip(np.diff(offsets).tolist(), scalars["n"].tolist(), strict=True))


def key_queues(store, *, wide):
    queues = KeyQueues(store, {"x": pa.int64(), "t": pa.string()}, lambda counts: np.maximum(counts - 3, 0))
    for i in range(4):
        key, keys = sorted_keys(KEYS[i * 80 : i * 80 + 200], wide=wide)
        sizes = (keys + i) % 3
        x = np.repeat(keys, sizes) * 10 + i
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        queued = queues.find(key)
        columns = {"x": pa.array(x), "t": pa.array(x.astype(str))}
        queues.push(key, queued, queued.count + sizes, offsets, x, columns, {})
    return queues


def content_of_queues(queues):
    """The last rows of every key."""
    key, _keys = sorted_keys(
        KEYS, wide=len(next(iter(queues.segments()), {"high": NONE}).columns.get("high", NONE)) > 0
    )
    queued = queues.find(key)
    located = queues.locate(queued, np.maximum(queued.count - 2, 1), queued.count)
    _, parts = queues.take(located, np.arange(len(located.row)))
    return sorted(text for part in parts for text in part["t"].to_pylist()), int(queued.count.sum())


def buckets(store, *, wide):
    kept = ExpiryBuckets(store, constants=("weight",), identity=("x",))
    for i in range(5):
        keys = KEYS[i::5]
        kept.append(identity(keys, wide=wide), keys * 10 + 5, {"x": keys, "weight": np.ones(100, np.int64)})
        kept.expire(i * 200)
    return kept


def content_of_buckets(kept):
    columns = kept.all()
    alive = columns["expiry"] > kept.frontier
    return sorted(zip(columns["x"][alive].tolist(), columns["expiry"][alive].tolist(), strict=True))


LAYOUTS = {
    "runs": (time_runs, content_of_runs),
    "latest": (latest_wins, content_of_latest),
    "groups": (latest_groups, content_of_groups),
    "queues": (key_queues, content_of_queues),
    "buckets": (buckets, content_of_buckets),
}


def empty_like(layout: StateLayout, name: str, store: FileStore) -> StateLayout:
    if name == "queues":
        return KeyQueues(store, layout._types, layout._gone)
    if name == "buckets":
        return ExpiryBuckets(store, constants=("weight",), identity=("x",))
    if name == "groups":
        return LatestGroups(store, columns={"x": KEYS, "t": pa.array([], pa.string())}, scalars={"n": KEYS})
    return type(layout)(store)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_read_back(name, wide, tmp_path):
    make, content = LAYOUTS[name]
    layout = make(FileStore(tmp_path), wide=wide)
    manifest = json.loads(json.dumps(layout.to_manifest()))
    back = empty_like(layout, name, FileStore(tmp_path))
    back.from_manifest(manifest)
    assert (back.bytes, back.to_manifest()) == (layout.bytes, manifest)
    assert content(back) == content(layout)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_goes_to_other_shards_and_back(name, wide, tmp_path):
    make, content = LAYOUTS[name]
    store = FileStore(tmp_path)
    layout = make(store, wide=wide)
    rows = layout.rows
    three = [empty_like(layout, name, store) for _ in range(3)]
    type(layout).hand_over([layout], three, route_by_key(3))
    for shard, part in enumerate(three):
        for segment in part.segments():
            assert set(shard_of(Identity(segment.array("low"), NONE), 3).tolist()) == {shard}
    assert sum(part.rows for part in three) <= rows
    two = [empty_like(layout, name, store) for _ in range(2)]
    type(layout).hand_over(three, two, route_by_key(2))
    one = empty_like(layout, name, store)
    type(layout).hand_over(two, [one], route_by_key(1))
    assert content(one) == content(layout)


def test_heads_know_the_least_after_a_move(tmp_path):
    store = FileStore(tmp_path)
    heads = Heads(store)
    instants = {int(low): k + 100 for k, low in zip(KEYS, identity(KEYS, wide=False).low, strict=True)}
    heads.push(np.array(list(instants.values())), identity(KEYS, wide=False))
    parts = [Heads(store) for _ in range(4)]
    Heads.hand_over([heads], parts, route_by_key(4))
    now = [part.least(lambda key: np.array([instants[int(low)] for low in key.low])) for part in parts]
    assert min(now) == 100
    assert len(set(now)) == 4


def test_hold_counts_are_small_and_read_back():
    rng = np.random.default_rng(1)
    counts, held = HoldCounts(), np.full(3000, INFINITY)
    for i in range(100):
        moved = rng.permutation(3000)[:300]
        new = np.where(rng.random(300) < 0.2, INFINITY, i * 1000 + rng.integers(0, 1000, 300))
        counts.move(held[moved], new)
        held[moved] = new
    text = json.dumps(counts.to_manifest())
    assert len(text) < 6000
    back = HoldCounts()
    back.from_manifest(json.loads(text))
    assert back.least() == counts.least() <= held.min()
    back.move(held, np.full(3000, INFINITY))
    assert back.least() == INFINITY
    back.fill(held)
    assert back.least() == held.min()


def test_segments_are_found_wherever_they_are():
    manifest = {
        "records": [{"state": {"a": [{"segments": [{"name": "x", "rows": 1}]}]}}, None],
        "name": "query",
        "n": 3,
    }
    assert list(state_segments(manifest)) == ["x"]
    assert list(state_segments({})) == []


def test_parts_may_be_none_or_many(tmp_path):
    class Both(State):
        scalars = {"n": max}  # noqa: RUF012
        layouts = ("left", "none", "many", "named")

        def __init__(self) -> None:
            store, self.n = FileStore(tmp_path), 0
            self.left, self.none = TimeRuns(store), None
            self.many, self.named = (TimeRuns(store), TimeRuns(store)), {3: TimeRuns(store)}

    state = Both()
    state.n = np.int64(2**62)
    for i, runs in enumerate((state.left, *state.many, *state.named.values())):
        runs.append({"time": np.arange(i + 1), "low": np.arange(i + 1, dtype=np.uint64)})
    back = Both()
    back.from_manifest(json.loads(json.dumps(state.to_manifest())))
    assert back.n == 2**62
    assert [runs.rows for runs in (back.left, *back.many, *back.named.values())] == [1, 2, 3, 4]
    assert len(list(back.segments())) == 4


def test_rows_by_shard_keep_their_order():
    parts = dict(rows_by_shard(np.array([2, 0, 2, 2, 0])))
    assert {shard: rows.tolist() for shard, rows in parts.items()} == {0: [1, 4], 2: [0, 2, 3]}
    assert dict(rows_by_shard(np.empty(0, np.int64))) == {}


def test_shards_agree_or_it_is_an_error():
    assert agreed([4, 4]) == 4
    with pytest.raises(StateError, match="unequally far"):
        agreed([4, 5])
