"""Rows probed by key and forgotten by expiry."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.kernels.directory import build_directory
from headwater.model.identity import Identity, identify
from headwater.model.time import INFINITY
from headwater.state.buckets import ExpiryBuckets
from headwater.state.store import FileStore, MemoryStore

INT, TEXT = pa.int64(), pa.string()


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path)


def keys(values, type_=INT) -> Identity:
    """Hashes of one key column, or wide ones when there are two types."""
    column = pa.array(values, type_)
    return identify([column] if type_ == INT else [column, column], len(column))


def add(buckets: ExpiryBuckets, rows, type_=INT) -> None:
    """Append (key, expiry, value, weight) rows."""
    key, expiry, value, weight = (list(x) for x in zip(*rows, strict=True))
    columns = {"value": pa.array(map(str, value)), "number": np.array(value), "weight": np.array(weight)}
    buckets.append(keys(key, type_), np.array(expiry), columns)


def asked(buckets: ExpiryBuckets, values, type_=INT) -> Counter:
    """What a probe finds: {(key, expiry, value): weight}."""
    query, columns = buckets.probe(keys(values, type_))
    found: Counter = Counter()
    if columns:
        assert columns["value"].to_pylist() == list(map(str, columns["number"].tolist()))
        parts = (query.tolist(), *(columns[n].tolist() for n in ("expiry", "number", "weight")))
        for q, e, v, w in zip(*parts, strict=True):
            found[values[q], e, v] += w
    return Counter({row: n for row, n in found.items() if n})


def test_a_probe_finds_every_row_of_its_keys_and_no_other(store):
    buckets = ExpiryBuckets(store, constants=["weight"])
    add(buckets, [(1, 10, 100, 1), (2, 10, 200, 1), (1, 99, 101, 1), (3, INFINITY, 300, 1)])
    add(buckets, [(1, 50, 102, 1)])
    assert asked(buckets, [1, 3, 7]) == Counter(
        {(1, 10, 100): 1, (1, 99, 101): 1, (1, 50, 102): 1, (3, INFINITY, 300): 1}
    )
    assert asked(buckets, [2, 2]) == Counter({(2, 10, 200): 2})
    assert asked(buckets, [4]) == Counter()


def test_an_empty_store_has_no_rows_and_no_columns(store):
    buckets = ExpiryBuckets(store)
    query, columns = buckets.probe(keys([1, 2]))
    assert (len(query), columns, buckets.all(), buckets.rows, buckets.bytes) == (0, {}, {}, 0, 0)
    buckets.append(keys([]), np.empty(0, np.int64), {"weight": np.empty(0, np.int64)})
    assert list(buckets.segments()) == []


def test_only_the_named_columns_are_gathered(store):
    buckets = ExpiryBuckets(store)
    add(buckets, [(1, 10, 100, 1)])
    _, columns = buckets.probe(keys([1]), ["number"])
    assert {name: column.tolist() for name, column in columns.items()} == {"number": [100]}


def test_expired_rows_go_with_their_bucket_and_everything_goes_at_the_end_of_time(store):
    buckets = ExpiryBuckets(store)
    add(buckets, [(1, 10, 1, 1), (1, 1000, 2, 1), (1, INFINITY, 3, 1)])
    buckets.expire(9)
    assert buckets.rows == 3
    buckets.expire(10)
    assert asked(buckets, [1]) == Counter({(1, 1000, 2): 1, (1, INFINITY, 3): 1})
    add(buckets, [(1, 10, 4, 1)])  # too late to be of any use
    assert buckets.rows == 2
    buckets.expire(INFINITY - 1)
    assert asked(buckets, [1]) == Counter({(1, INFINITY, 3): 1})
    buckets.expire(INFINITY)
    assert (buckets.rows, buckets.bytes, list(buckets.segments())) == (0, 0, [])


def test_constant_columns_take_no_space(store):
    rows = 1000
    plain, packed = ExpiryBuckets(store), ExpiryBuckets(store, constants=["weight", "number"])
    for buckets in (plain, packed):
        add(buckets, [(k, INFINITY, 7, 1) for k in range(rows)])
    assert plain.bytes - packed.bytes == (rows - 1) * 16
    assert asked(packed, [5]) == Counter({(5, INFINITY, 7): 1})
    add(packed, [(5, INFINITY, 8, -1)] * 1000)  # merged with other values, it is a plain column again
    assert asked(packed, [5]) == Counter({(5, INFINITY, 7): 1, (5, INFINITY, 8): -1000})


def test_rows_that_take_each_other_away_vanish_when_segments_merge(store):
    buckets = ExpiryBuckets(store, identity=["value", "number"])
    add(buckets, [(k, 100, k % 3, 1) for k in range(20)] + [(1, 100, 9, 2)])
    add(buckets, [(k, 100, k % 3, -1) for k in range(20)] + [(1, 100, 9, -1), (1, 90, 9, -1)])
    assert asked(buckets, [1]) == Counter({(1, 100, 9): 1, (1, 90, 9): -1})
    assert buckets.rows == 2


def test_without_an_identity_nothing_is_taken_away(store):
    buckets = ExpiryBuckets(store)
    add(buckets, [(1, 100, 9, 1)])
    add(buckets, [(1, 100, 9, -1)])
    assert buckets.rows == 2


def test_more_matches_than_fit_into_a_block(store):
    buckets = ExpiryBuckets(store)
    add(buckets, [(7, 100, v, 1) for v in range(5000)])
    query, columns = buckets.probe(keys([7, 8, 7]), ["number"])
    assert len(query) == 10_000
    for asked_for in (0, 2):
        assert sorted(columns["number"][query == asked_for].tolist()) == list(range(5000))


def test_all_returns_every_row(store):
    buckets = ExpiryBuckets(store)
    add(buckets, [(k, k + 1, k, 1) for k in range(50)])
    add(buckets, [(1, INFINITY, 77, 1)])
    columns = buckets.all()
    assert sorted(columns["number"].tolist()) == sorted([*range(50), 77])
    assert set(columns) == {"low", "expiry", "value", "number", "weight"}


def test_a_manifest_brings_everything_back(tmp_path: Path):
    store = FileStore(tmp_path)
    buckets = ExpiryBuckets(store)
    add(buckets, [(k % 5, 10 * k, k, 1) for k in range(1, 200)])
    buckets.expire(300)
    back = ExpiryBuckets(FileStore(tmp_path))
    back.from_manifest(buckets.to_manifest())
    assert (back.rows, back.bytes, back.frontier) == (buckets.rows, buckets.bytes, 300)
    assert asked(back, list(range(5))) == asked(buckets, list(range(5)))
    for state in (back, buckets):
        add(state, [(1, 5000, 1, 1)])
    assert asked(back, [1]) == asked(buckets, [1])


@pytest.mark.parametrize(
    "lifetime",
    [
        lambda r, n: np.full(n, 60),
        lambda r, n: r.integers(1, 60, n),
        lambda r, n: np.where(r.random(n) < 0.01, 10**12, 60),  # few that live almost for ever
        lambda r, n: np.exp(r.random(n) * 20).astype(np.int64) + 1,
    ],
    ids=["fixed", "uniform", "outliers", "exponential"],
)
def test_a_handful_of_segments_whatever_the_lifetimes(lifetime):
    r = np.random.default_rng(1)
    buckets = ExpiryBuckets(MemoryStore())
    live = np.empty(0, np.int64)
    for tick in range(400):
        now = 10_000 + 5 * tick
        expiry = now + lifetime(r, 100) + r.integers(0, 5, 100)
        live = np.concatenate([live, expiry])
        add(buckets, [(int(k), int(e), 0, 1) for k, e in zip(r.integers(0, 50, 100), expiry, strict=True)])
        buckets.expire(now)
        live = live[live > now]
        assert len(list(buckets.segments())) <= 40
        assert len(live) <= buckets.rows <= 2 * len(live) + 1000
    assert len(buckets.to_manifest()["buckets"]) <= 9


def test_buckets_stay_few_while_the_frontier_stands_still():
    buckets = ExpiryBuckets(MemoryStore())
    for tick in range(300):
        add(buckets, [(k, 10 * tick + k, 0, 1) for k in range(10)])
    assert buckets.rows == 3000
    assert len(list(buckets.segments())) <= 20


@pytest.mark.parametrize("type_", [INT, TEXT], ids=["narrow", "wide"])
@pytest.mark.parametrize("seed", range(8))
def test_random_histories_agree_with_a_plain_table(seed: int, type_, store):
    r = np.random.default_rng(seed)
    buckets = ExpiryBuckets(store, constants=["weight"], identity=["value", "number"])
    table: Counter = Counter()
    frontier = 0
    for _ in range(25):
        rows = []
        for _ in range(int(r.integers(0, 12))):
            expiry = INFINITY if r.random() < 0.1 else frontier + int(r.integers(1, 40))
            rows.append((int(r.integers(0, 6)), expiry, int(r.integers(0, 3)), 1))
        for (k, e, v), n in table.items():
            if e > frontier and n > 0 and r.random() < 0.3:
                rows.append((k, e, v, -1))
        if rows:
            named = [(k if type_ == INT else str(k), e, v, w) for k, e, v, w in rows]
            add(buckets, named, type_)
        for k, e, v, w in rows:
            table[k, e, v] += w
        frontier += int(r.integers(0, 6))
        buckets.expire(frontier)
        values = list(range(6)) if type_ == INT else [str(k) for k in range(6)]
        found = {(int(k), e, v): n for (k, e, v), n in asked(buckets, values, type_).items() if e > frontier}
        assert found == {(k, e, v): n for (k, e, v), n in table.items() if n and e > frontier}
    buckets.expire(INFINITY)
    assert buckets.rows == 0


def test_a_directory_has_a_slot_for_about_four_rows():
    assert [len(build_directory(np.zeros(n, np.uint64))) - 1 for n in (0, 1, 8, 9, 1000)] == [2, 2, 2, 4, 256]


def test_unsorted_and_repeated_keys_probe_alike(store):
    buckets = ExpiryBuckets(store)
    add(buckets, [(k, 100, k, 1) for k in range(30)])
    shuffled = np.random.default_rng(3).integers(0, 40, 200)
    query, columns = buckets.probe(keys(shuffled))
    assert Counter(shuffled[query].tolist()) == Counter(k for k in shuffled.tolist() if k < 30)
    assert (shuffled[query] == columns["number"]).all()
    assert columns.rows == len(query)
