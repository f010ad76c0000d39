"""What the footers of parquet files say of a stream."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.model.schema import Schema
from headwater.sources.files import FileSource
from headwater.sources.parquet_files import ParquetFormat

BID = Schema.of(auction="BIGINT", price="DOUBLE", ts="TIMESTAMP")
BEGIN = datetime.datetime(2026, 1, 1)


def write(path: Path, first: int, rows: int, unit: str = "us", group: int = 100) -> None:
    times = [BEGIN + datetime.timedelta(milliseconds=10 * (first + i)) for i in range(rows)]
    table = pa.table(
        {
            "Auction": [(first + i) % 20 + 5 for i in range(rows)],
            "price": [None if i % 4 == 0 else float(i) for i in range(rows)],
            "ts": pa.array(times, pa.timestamp(unit)),
        }
    )
    pq.write_table(table, path, row_group_size=group)


def source(folder: Path) -> FileSource:
    return FileSource(str(folder), BID, ParquetFormat())


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_rate_nulls_and_whole_numbers(tmp_path: Path, unit: str):
    write(tmp_path / "a.parquet", 0, 500, unit)
    write(tmp_path / "b.parquet", 500, 500, unit)
    found = source(tmp_path).figures("ts")
    assert found["rate"] * 1e6 == pytest.approx(100, rel=0.01)
    assert found["distinct(auction)"] == 20
    assert found["nulls(price)"] == 0.25
    assert found["nulls(auction)"] == 0
    assert not {"distinct(price)", "distinct(ts)"} & found.keys()
    assert "rate" not in source(tmp_path).figures(None)


def test_of_many_files_and_row_groups_some_are_looked_at(tmp_path: Path):
    for i in range(30):
        write(tmp_path / f"{i:02d}.parquet", i * 100, 100, group=5)
    assert source(tmp_path).figures("ts")["rate"] * 1e6 == pytest.approx(100, rel=0.05)


def test_nothing_is_said_where_nothing_is_there(tmp_path: Path):
    files = source(tmp_path)
    assert files.figures("ts") == {}
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 no parquet")
    assert source(tmp_path).figures("ts") == {}
    assert source(tmp_path / "nowhere").figures("ts") == {}
    pq.write_table(pa.table({"other": [1]}), tmp_path / "other.parquet")
    assert source(tmp_path).figures("ts") == {}
