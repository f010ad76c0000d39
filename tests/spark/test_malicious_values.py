"""Values that look like the report of a task, on every way into a text of Spark's: nothing in them is believed or run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.malice import MADE, SHORT, TEXT

import headwater as hw
from headwater.backends.spark.ship import modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Prepare = Callable[[hw.Engine, Path, "SparkSession"], str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(Path(__file__).parent)
    (tmp_path / "in").mkdir()
    yield tmp_path
    assert not (tmp_path / MADE).exists(), "a value was run"


def of_json(engine: hw.Engine, place: Path, spark: SparkSession) -> str:
    (place / "in" / "1.json").write_text(json.dumps({"at": TEXT, "x": TEXT}) + "\n")
    engine.sql(f"CREATE STREAM s (at INT, x STRING) SOURCE json('{place}/in') ORDERED BY at IN ORDER")
    return "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 5)"


def of_json_cast(engine: hw.Engine, place: Path, spark: SparkSession) -> str:
    (place / "in" / "1.json").write_text(json.dumps({"at": 1, "x": TEXT}) + "\n")
    engine.sql(f"CREATE STREAM s (at INT, x STRING) SOURCE json('{place}/in') ORDERED BY at IN ORDER")
    return "SELECT SUM(CAST(x AS INT)) AS n FROM s WINDOW(RANGE 5)"


def of_csv(engine: hw.Engine, place: Path, spark: SparkSession) -> str:
    (place / "in" / "1.csv").write_text(f"at,x\n{TEXT},1\n")
    engine.sql(f"CREATE STREAM s (at INT, x STRING) SOURCE csv('{place}/in') ORDERED BY at IN ORDER")
    return "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 5)"


def parquet_rows(place: Path, name: str = "x", value: str = TEXT) -> None:
    table = pa.table({"at": pa.array([1], pa.int32()), name: [value]})
    pq.write_table(table, place / "in" / "1.parquet")


def of_parquet(engine: hw.Engine, place: Path, spark: SparkSession) -> str:
    parquet_rows(place)
    engine.sql(f"CREATE STREAM s (at INT, x STRING) SOURCE parquet('{place}/in') ORDERED BY at IN ORDER")
    return "SELECT SUM(CAST(x AS INT)) AS n FROM s WINDOW(RANGE 5)"


def of_a_column_name(engine: hw.Engine, place: Path, spark: SparkSession) -> str:
    parquet_rows(place, name=TEXT)
    engine.sql(f"CREATE STREAM s (at INT, `{TEXT}` STRING) SOURCE parquet('{place}/in') ORDERED BY at IN ORDER")
    return f"SELECT SUM(CAST(`{TEXT}` AS INT)) AS n FROM s WINDOW(RANGE 5)"


def of_a_file_name(engine: hw.Engine, place: Path, spark: SparkSession) -> str:
    (place / "in" / f"{SHORT}.json").write_text('{"at": "no"}\n')
    engine.sql(f"CREATE STREAM s (at INT, x STRING) SOURCE json('{place}/in') ORDERED BY at IN ORDER")
    return "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 5)"


def of_a_function(engine: hw.Engine, place: Path, spark: SparkSession) -> str:
    modules(spark, [Path(__file__).parent])
    parquet_rows(place)
    engine.sql("CREATE FUNCTION refuse(x STRING) RETURNS STRING AS 'malicious_functions:refuse'")
    engine.sql(f"CREATE STREAM s (at INT, x STRING) SOURCE parquet('{place}/in') ORDERED BY at IN ORDER")
    return "SELECT COUNT(refuse(x)) AS n FROM s WINDOW(RANGE 5)"


def of_a_frame(engine: hw.Engine, place: Path, spark: SparkSession) -> str:
    """A row without a time, which the message quotes."""
    pq.write_table(pa.table({"at": pa.array([None], pa.int64()), "x": [TEXT]}), place / "in" / "1.parquet")
    engine.register("s", spark.readStream.schema("at BIGINT, x STRING").parquet(f"{place}/in"), time="at")
    return "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 5)"


def of_a_cast_of_sparks(engine: hw.Engine, place: Path, spark: SparkSession) -> str:
    """Spark quotes the value in its own error."""
    parquet_rows(place)
    frame = spark.readStream.schema("at INT, x STRING").parquet(f"{place}/in")
    engine.register("s", frame.selectExpr("CAST(at AS BIGINT) AS at", "CAST(x AS INT) AS x"), time="at")
    return "SELECT SUM(x) AS n FROM s WINDOW(RANGE 5)"


WAYS: dict[Prepare, str] = {
    of_json: "BAD_ROW",
    of_json_cast: "EXPRESSION_FAILED",
    of_csv: "BAD_ROW",
    of_parquet: "EXPRESSION_FAILED",
    of_a_column_name: "EXPRESSION_FAILED",
    of_a_file_name: "BAD_ROW",
    of_a_function: "EXPRESSION_FAILED",
    of_a_frame: "BAD_ROW",
    of_a_cast_of_sparks: "TICK_FAILED",
}


QUICK = (of_json, of_a_frame, of_a_cast_of_sparks)


@pytest.mark.parametrize(
    "way", [pytest.param(w, id=w.__name__, marks=() if w in QUICK else pytest.mark.slow) for w in WAYS]
)
def test_a_value_that_looks_like_a_report_is_a_value(way: Prepare, place: Path, spark: SparkSession):
    with hw.connect(spark=spark, small_tick=-1) as engine:
        engine.sql(way(engine, place, spark)).start(hw.sinks.noop())
        with pytest.raises(hw.HeadwaterError) as told:
            engine.run_to_end()
    assert told.value.code == WAYS[way], str(told.value)


def test_a_micro_batch_without_a_partition_is_a_batch_without_rows(place: Path, spark: SparkSession):
    """As the first of Spark's rate source."""
    frame = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    with hw.connect(spark=spark, small_tick=-1) as engine:
        engine.register("tick", frame, time="timestamp", disorder="1 second")
        run = engine.sql("SELECT COUNT(*) AS n FROM tick WINDOW(RANGE 1 SECOND) CONSISTENCY MIDDLE").start()
        while engine.progress().rows == 0:
            engine.wait(0.1)
        assert run.history().to_arrow().num_rows
