"""A source may bring a batch again that a committed tick has: it is taken once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import headwater as hw
from headwater.runtime.delivery import Delivery
from headwater.sources.base import Piece


def bids(*times: int) -> list[Piece]:
    return [Piece(pa.RecordBatch.from_pydict({"at": pa.array(times, pa.int32())}))]


def open_engine(folder: Path) -> tuple[hw.Engine, hw.Run]:
    engine = hw.connect(runner="inprocess", checkpoint=folder)
    engine.sql("CREATE STREAM bid (at INT) ORDERED BY at DISORDER 0")
    run = engine.sql("SELECT COUNT(*) AS n FROM bid WINDOW(RANGE 10)", name="n").start()
    engine.push("bid", [])  # from here on its rows are taken
    return engine, run


def test_a_covered_batch_is_not_taken_again(tmp_path: Path):
    engine, run = open_engine(tmp_path)
    with engine:
        engine._core.tick([Delivery("bid", 7, pieces=bids(1, 2))])
        assert engine._core.tick([Delivery("bid", 7, pieces=bids(1, 2))]) is None
        engine._core.tick([Delivery("bid", 6, pieces=bids(1)), Delivery("bid", 8, pieces=bids(3))])
        assert engine._core.manifest.counts["bid"]["rows"] == 3
        engine.run_to_end()
        assert [row["n"] for row in run.snapshot(at=3).rows()] == [3]


def test_nor_after_a_restart(tmp_path: Path):
    engine, _ = open_engine(tmp_path)
    with engine:
        engine._core.tick([Delivery("bid", 7, pieces=bids(1, 2))])
    engine, _ = open_engine(tmp_path)
    with engine:
        assert engine._core.tick([Delivery("bid", 7, pieces=bids(1, 2))]) is None
        assert engine._core.manifest.counts["bid"]["rows"] == 2
