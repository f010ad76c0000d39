"""Sources on Spark: asked for splits, streamed as rows, and what Spark reads by itself."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.backends.spark.session import SessionHandle
from headwater.errors import InputError
from headwater.model.schema import Schema
from headwater.sources.base import Piece, Source, Split
from headwater.sources.csv_files import CsvFormat
from headwater.sources.dataframe import DataFrameSource
from headwater.sources.files import FileSource
from headwater.sources.intake import Intake
from headwater.sources.json_files import JsonFormat
from headwater.sources.socket import SocketSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = Schema.of(x="BIGINT", y="STRING", t="TIMESTAMP")


class Batches:
    """The micro-batches of a streaming query, as they come."""

    def __init__(self) -> None:
        self.found: list[list] = []
        self._changed = threading.Condition()

    def take(self, frame: DataFrame, number: int) -> None:
        rows = frame.collect()
        with self._changed:
            self.found.append(rows)
            self._changed.notify_all()

    def wait(self, done: Callable[[list[list]], bool]) -> list[list]:
        with self._changed:
            assert self._changed.wait_for(lambda: done(self.found), 60)
            return [batch for batch in self.found if batch]


@contextmanager
def running(frame: DataFrame, checkpoint: Path) -> Iterator[Batches]:
    batches = Batches()
    query = frame.writeStream.foreachBatch(batches.take).option("checkpointLocation", str(checkpoint)).start()
    try:
        yield batches
        assert query.exception() is None
    finally:
        query.stop()


def read(source: Source, splits: list[Split]) -> list[dict]:
    assert source.reader is not None
    return [row for split in splits for piece in source.reader.read(split) for row in piece.rows.to_pylist()]


@pytest.mark.parametrize("format_", [CsvFormat(), JsonFormat()], ids=lambda f: f.name)
def test_a_finite_folder_of_text(spark: SparkSession, tmp_path: Path, format_):
    text = {
        "csv": "y,x,t,more\nz,1,1970-01-01 00:00:01,\n,,,\n",
        "json": '{"y":"z","x":1,"t":"1970-01-01T00:00:01"}\n{}\n',
    }
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text(text[format_.name])
    source = FileSource(str(tmp_path / "in"), SCHEMA, format_, follow=False)
    splits = source.poll(None, 100).splits
    expected = [
        {"x": 1, "y": "z", "t": datetime(1970, 1, 1, 0, 0, 1)},
        {"x": None, "y": None, "t": None},
    ]
    assert read(source, source.cut(splits)) == expected


def numbers(folder: Path, step: int) -> None:
    """A file with ten rows of each step, in several row groups."""
    table = pa.table({"at": pa.array(range(10 * step, 10 * step + 10), pa.int64())})
    pq.write_table(table, folder / f"_{step}.parquet", row_group_size=2)
    (folder / f"_{step}.parquet").rename(folder / f"part {step}.parquet")


def go_on(tmp_path: Path, folder: Path, **runner: Any) -> tuple[int, list[int]]:
    """An engine goes on with what is in the folder: its last tick, and all that has come out up to now."""
    with hw.connect(checkpoint=tmp_path / "checkpoint", shards=2, small_tick=0, **runner) as engine:
        engine.sql(f"CREATE STREAM s (at BIGINT) SOURCE parquet('{folder}', rows_per_tick => 4) ORDERED BY at IN ORDER")
        engine.sql("SELECT DISTINCT at FROM s [NOW]", name="all").start(hw.sinks.parquet(tmp_path / "answers"))
        engine.run_to_end(end_streams=False)
        assert {engine._core.manifest.counts["s"][kind] for kind in ("late", "bad")} == {0}
        ticks = engine._core.manifest.tick
    tables = [pq.read_table(path) for path in sorted((tmp_path / "answers").rglob("*.parquet"))]
    return ticks, sorted(at for table in tables for at in table["at"].to_pylist())


def test_who_reads_a_folder_may_change_and_nothing_is_lost_or_doubled(session: SessionHandle, tmp_path: Path):
    """On Spark, in process, on Spark again, a part of a file per tick: how far it has been read is the engine's to know."""
    folder = tmp_path / "a folder with 100% ümlauts"
    folder.mkdir()
    numbers(folder, 0)
    runners: list[dict[str, Any]] = [{"spark": session.spark}, {"runner": "inprocess"}, {"spark": session.spark}]
    for step, runner in enumerate(runners, 1):
        ticks, found = go_on(tmp_path, folder, **runner)
        assert found == list(range(10 * step - 2)), "all that is known to be over"
        assert ticks >= 3 * step, "four rows per tick at most"
        numbers(folder, step)


def test_lines_of_a_socket(spark: SparkSession, tmp_path: Path):
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"1,a\ntwo,b\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        schema = Schema.of(x="BIGINT", y="STRING")
        source = SocketSource("127.0.0.1", server.server_address[1], schema, format="csv", malformed="divert")
        with running(source.rows(spark), tmp_path / "checkpoint") as batches:
            found = batches.wait(lambda found: sum(map(len, found)) == 2)
        server.shutdown()
    lines = [row.value for batch in found for row in batch]
    piece = source.parser.parse(pa.RecordBatch.from_pydict({"value": lines}))
    assert piece.rows.to_pylist() == [{"x": 1, "y": "a"}]
    assert piece.bad.raw.to_pylist() == ["two,b"]


def test_any_streaming_dataframe(spark: SparkSession, tmp_path: Path):
    rate = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    frame = rate.selectExpr(
        "value",
        "timestamp AS at",
        "array(timestamp) AS list",
        "struct(timestamp AS t, value AS v) AS pair",
        "CAST(value AS DECIMAL(10,2)) AS price",
        "CAST(value AS VARCHAR(5)) AS name",
    )
    source = DataFrameSource(frame)
    assert str(source.schema) == (
        "(value BIGINT, at TIMESTAMP, list ARRAY<TIMESTAMP> NOT NULL, pair STRUCT<t: TIMESTAMP, v: BIGINT> NOT NULL, "
        "price DECIMAL(10,2), name STRING)"
    )
    with running(source.rows(spark), tmp_path / "checkpoint") as batches:
        found = batches.wait(any)
    row = found[0][0]
    assert row.at == row.list[0] == row.pair.t


def test_instants_of_a_dataframe_do_not_depend_on_the_zone_of_the_session(spark: SparkSession):
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            micros = [0, 1, -1, 1_770_000_000_123_456, -62_135_596_800_000_000, 253_402_300_799_999_999]
            rows = ", ".join(f"({m})" for m in micros)
            frame = spark.sql(f"SELECT timestamp_micros(m) AS t FROM VALUES {rows} AS v(m)")
            schema = Schema.of(t="TIMESTAMP")
            (batch,) = frame.toArrow().combine_chunks().to_batches()
            assert Intake("s", schema, "t").take(Piece(batch), -(2**62)).delta.start.tolist() == micros
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("map('a', 1)", 'UNSUPPORTED_TYPE: column "c" has the Spark type MAP<STRING,INT>, which a stream cannot have'),
        ("INTERVAL '1' DAY", "Turn it into a number"),
        ("array(map('a', 1))", 'column "c"'),
        ("NULL", "Give it a type: CAST(… AS STRING)."),
    ],
)
def test_types_that_a_stream_cannot_have(spark: SparkSession, column: str, message: str):
    frame = spark.readStream.format("rate").load().selectExpr(f"{column} AS c")
    with pytest.raises(InputError) as caught:
        DataFrameSource(frame)
    assert message in str(caught.value)


def test_dataframes_that_cannot_be_streams(spark: SparkSession):
    with pytest.raises(InputError, match="NOT_STREAMING"):
        DataFrameSource(spark.range(5), name="numbers")
    with pytest.raises(InputError, match="DUPLICATE_COLUMN"):
        DataFrameSource(spark.readStream.format("rate").load().selectExpr("value", "value AS Value"))
