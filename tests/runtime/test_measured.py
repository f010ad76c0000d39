"""What ticks tell of streams, and what the cost model is told of that."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headwater.clock.seen import Seen
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.runtime.graph import Graph
from headwater.runtime.measured import different_values, is_sampled, measure, measured_figures, sampled, together

NAMES = Schema.of(k="BIGINT", t="STRING", l=pa.list_(pa.int32()))


def delta(keys: list[int | None]) -> Delta:
    rows = len(keys)
    texts = pa.array([None if k is None else f"{k:08d}" for k in keys])
    lists = pa.array([[1]] * rows, pa.list_(pa.int32()))
    times = np.arange(rows, dtype=np.int64)
    return Delta(NAMES, [pa.array(keys, pa.int64()), texts, lists], times, times + 1, np.ones(rows, np.int64))


def figures(kept: dict, rows: int) -> dict[str, float]:
    return {name: figure.value for name, figure in measured_figures(kept, rows).items()}


@pytest.mark.parametrize("values", [1, 7, 200, 3_000, 10_000])
def test_different_values_are_known_to_a_half(values: int):
    random = np.random.default_rng(values)
    ticks = [sampled(delta([int(k) for k in random.integers(0, values, 1024)])) for _ in range(20)]
    rows = 512 * 40
    known = measure({}, {}, {}, {"s": together(ticks)}, {}, Graph())["s"]
    for name in ("distinct(k)", "distinct(t)"):
        assert figures(known, rows)[name] == pytest.approx(values, rel=0.5)


def test_rows_that_come_in_a_rhythm():
    known = measure({}, {}, {}, {"s": sampled(delta([i % 1000 for i in range(50_000)]))}, {}, Graph())["s"]
    assert 500 < figures(known, 50_000)["distinct(k)"] < 2000


def test_a_column_of_which_no_value_comes_twice():
    known = measure({}, {}, {}, {"s": sampled(delta(list(range(500))))}, {}, Graph())["s"]
    assert figures(known, 500)["distinct(k)"] == pytest.approx(1500, rel=1 / 3)
    assert 10_000 < figures(known, 1_000_000)["distinct(k)"] < 1_000_000
    assert different_values(1000, 1000, 1000) == 3000


def test_nulls_and_sizes_of_texts():
    known = measure({}, {}, {}, {"s": sampled(delta([None, 1, 2, 3] * 100))}, {}, Graph())["s"]
    found = figures(known, 400)
    assert found["nulls(k)"] == found["nulls(t)"] == 0.25
    assert 8 * 0.75 < found["bytes(t)"] < 16
    assert "bytes(k)" not in found
    assert not any("(l)" in name for name in found)  # lists are left out


def test_columns_without_any_value_say_nothing():
    assert sampled(delta([None] * 10)) == {}


def test_only_some_ticks_are_looked_at():
    assert [t for t in range(1, 100) if is_sampled(t)] == [1, 2, 3, 4, 5, 6, 7, 8, 32, 64, 96]


def test_rates_are_in_application_time_and_follow_what_comes():
    known: dict = {}
    for tick in range(100):
        known = measure(
            known,
            {"s": tick * 10 - 1} if tick else {},
            {"s": [Seen("", tick * 10 + 9, tick * 10, 50)]},
            {},
            {},
            Graph(),
        )
    assert figures(known["s"], 5000)["rate"] == pytest.approx(5, rel=0.01)
    for tick in range(100, 200):  # then much faster
        known = measure(
            known,
            {"s": tick * 10 - 1} if tick else {},
            {"s": [Seen("", tick * 10 + 9, tick * 10, 100_000)]},
            {},
            {},
            Graph(),
        )
    assert figures(known["s"], 10**7)["rate"] == pytest.approx(10_000, rel=0.05)


def test_few_rows_and_rows_of_one_instant_say_nothing():
    assert figures(measure({}, {}, {"s": [Seen("", 9, 0, 50)]}, {}, {}, Graph())["s"], 50) == {}
    assert figures(measure({}, {}, {"s": [Seen("", 9, 9, 500)]}, {}, {}, Graph())["s"], 500) == {}
    assert measure({}, {}, {"s": [Seen("", 0, 0, 0)]}, {}, {}, Graph()) == {}
    assert figures(measure({}, {}, {}, {"s": sampled(delta([1, 2]))}, {}, Graph())["s"], 2) == {}


def test_what_was_known_before_stays_as_it_was():
    """A tick that fails is repeated from what was committed."""
    before = measure({}, {}, {"s": [Seen("", 9, 0, 500)]}, {"s": sampled(delta([1, 2, 3]))}, {}, Graph())
    copy = {name: dict(its) for name, its in before.items()}
    measure(before, {"s": 9}, {"s": [Seen("", 99, 10, 500)]}, {"s": sampled(delta([4, 5, 6]))}, {}, Graph())
    assert before == copy


def test_a_value_without_a_hash_is_no_reason_to_stop():
    word = int(np.uint64(0x6E756C6C5F6B6579).astype(np.int64))
    assert "k" not in sampled(delta([word, 1]))
    assert "t" in sampled(delta([word, 1]))
