"""Functions of a notebook on Spark: they travel to the tasks by value."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CELL = """
import pyarrow.compute as pc

RATE = 10

def scaled(x):
    return pc.multiply(x, RATE)

class Product:
    def init(self, x):
        return x
    def merge(self, state, x):
        return state * x
    def eval(self, state):
        return state
"""


def times(n: int) -> Any:
    import pyarrow.compute as pc

    return lambda x: pc.multiply(x, n)  # of a module that the tasks cannot import


def test_functions_of_a_notebook_simply_work(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    notebook: dict[str, Any] = {"__name__": "__main__"}
    exec(CELL, notebook)
    monkeypatch.setattr(sys.modules["__main__"], "scaled", notebook["scaled"], raising=False)
    pq.write_table(pa.table({"x": [3, 4], "at": pa.array([1, 1], pa.int32())}), tmp_path / "1.parquet")
    with hw.connect(spark=spark, small_tick=-1) as engine:
        engine.sql(f"CREATE STREAM s (x BIGINT, at INT) SOURCE parquet('{tmp_path}', follow => false) ORDERED BY at")
        engine.create_function("product", notebook["Product"], {"x": "BIGINT"}, "BIGINT")
        engine.create_function("doubled", times(2), {"x": "BIGINT"}, "BIGINT")
        engine.sql("CREATE FUNCTION scaled(x BIGINT) RETURNS BIGINT AS '__main__:scaled'")
        with pytest.raises(HeadwaterError) as told:
            engine.create_function("locked", threading.Lock().acquire, {"x": "BIGINT"}, "BIGINT")
        assert told.value.code == "CANNOT_SHIP"
        run = engine.sql("SELECT product(scaled(x)) AS y, SUM(doubled(x)) AS z FROM s WINDOW(RANGE 5)").start()
        engine.run_to_end()
        assert run.snapshot(at=1).rows() == [{"y": 1200, "z": 14}]
