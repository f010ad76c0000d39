"""A file with more rows than a tick may take is read in several ticks, every row once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.errors import StateError

ROWS = 40_000


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_every_row_comes_once(kind: str, tmp_path: Path):
    table = pa.table({"at": pa.array(range(ROWS), pa.int64()), "text": ["some words"] * ROWS})
    if kind == "parquet":
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=1_000)
    else:
        pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"""
            CREATE STREAM s (at BIGINT, text STRING) SOURCE {kind}('{tmp_path}', rows_per_tick => 9500, follow => false)
            ORDERED BY at IN ORDER
        """)
        engine.sql("SELECT at FROM s", name="all").start()
        engine.run_to_end()
        counts = engine._core.manifest.counts["s"]
        assert counts == {"rows": ROWS, "late": 0, "bad": 0}
        assert engine._core.manifest.tick > ROWS // 9_500


def test_what_spark_has_read_before_is_not_read_again_from_the_beginning(tmp_path: Path):
    """A stream of that name was a DataFrame when the checkpoint was written."""
    pq.write_table(pa.table({"at": pa.array([1], pa.int64())}), tmp_path / "a.parquet")
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"CREATE STREAM s (at BIGINT) SOURCE parquet('{tmp_path}') ORDERED BY at IN ORDER")
        engine._core.manifest.batches["s"] = {"batch": 3, "offset": None}
        engine.sql("SELECT at FROM s", name="all").start()
        with pytest.raises(StateError, match="OTHER_SOURCE"):
            engine.run_to_end()
