"""Rows without a column that is declared: it is NULL in them, as in Spark, and the user hears of it once."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.errors import HeadwaterError


def write(folder: Path, name: str, format_: str, rows: list[dict]) -> None:
    folder.mkdir(exist_ok=True)
    path, table = folder / f"{name}.{format_}", pa.Table.from_pylist(rows)
    if format_ == "parquet":
        pq.write_table(table, path)
    elif format_ == "csv":
        pc.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def answer(folder: Path, format_: str, columns: str = "k INT, extra STRING, at INT") -> list[tuple]:
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"CREATE STREAM s ({columns}) SOURCE {format_}('{folder}', follow => false) ORDERED BY at IN ORDER")
        run = engine.sql("SELECT * FROM s").start()
        engine.run_to_end()
        return sorted(tuple(row.values()) for row in run.history().rows())


def told(caught: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caught.records if r.levelno == logging.WARNING]


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_files_from_before_a_column_was_added_have_null(format_: str, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    write(tmp_path / "in", "0", format_, [{"k": 1, "at": 1}, {"k": 2, "at": 2}])
    write(tmp_path / "in", "1", format_, [{"k": 3, "at": 3}])
    write(tmp_path / "in", "2", format_, [{"k": 4, "at": 4, "extra": "x"}])
    rows = answer(tmp_path / "in", format_)
    assert [row[:3] for row in rows] == [(1, None, 1), (2, None, 2), (3, None, 3), (4, "x", 4)]
    # A key that is left out is usual in JSON, and nothing to speak of.
    place = f'("{tmp_path}/in/0.{format_}")'
    once = [f'stream "s": there are rows without column "extra" {place}, so it is NULL in them.']
    assert told(caplog) == ([] if format_ == "json" else once)


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_a_slip_of_the_pen_is_told(format_: str, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    write(tmp_path / "in", "0", format_, [{"k": 1, "ekstra": "a", "at": 1}])
    assert [row[:3] for row in answer(tmp_path / "in", format_)] == [(1, None, 1)]
    (text,) = told(caplog)
    assert f'without column "extra" ("{tmp_path}/in/0.{format_}")' in text
    assert 'Did you mean "ekstra", which they have and the declaration does not?' in text


@pytest.mark.parametrize("format_", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("columns", "missing"), [("k INT, extra INT NOT NULL, at INT", "extra"), ("k INT, more INT, at INT", "at")]
)
def test_columns_that_must_be_there_are_missed(format_: str, columns: str, missing: str, tmp_path: Path):
    write(tmp_path / "in", "0", format_, [{"k": 1, "at" if missing != "at" else "time": 1}])
    with pytest.raises(HeadwaterError, match=f'BAD_ROW: stream "s" cannot take a row: column "{missing}" missing'):
        answer(tmp_path / "in", format_, columns)


def test_pushed_rows_without_a_column_have_null(caplog: pytest.LogCaptureFixture):
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (k INT, extra STRING, at INT) ORDERED BY at IN ORDER")
        run = engine.sql("SELECT k, extra FROM s").start()
        engine.push("s", [{"k": 1, "at": 1}])
        assert told(caplog) == []  # a key that is not declared is an error there
        engine.push("s", pd.DataFrame({"k": [2], "at": [2]}))
        engine.push("s", pa.table({"k": [3], "Extra_": ["?"], "at": [3]}))
        engine.run_to_end()
        assert sorted((row["k"], row["extra"]) for row in run.history().rows()) == [(1, None), (2, None), (3, None)]
    (text,) = told(caplog)
    assert text.startswith('stream "s": there are rows without column "extra"')


def test_changes_from_before_a_column_was_added_have_null(tmp_path: Path):
    event = {"op": "c", "before": None, "after": {"id": 1, "city": "Bern"}, "ts_ms": 1}
    write(tmp_path / "in", "0", "parquet", [event])
    event = {"op": "c", "before": None, "after": {"id": 2, "city": "Ulm", "age": 9}, "ts_ms": 2}
    write(tmp_path / "in", "1", "parquet", [event])
    with hw.connect(runner="inprocess") as engine:
        engine.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, city STRING, age INT) "
            f"SOURCE parquet('{tmp_path}/in', changes => 'debezium', follow => false)"
        )
        run = engine.sql("SELECT id, age FROM t").start()
        engine.run_to_end()
        assert sorted((row["id"], row["age"]) for row in run.history().rows()) == [(1, None), (2, 9)]
