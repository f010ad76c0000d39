"""Streams that Spark reads: what it computes by itself changes no answer; late and malformed rows are found as before."""

from __future__ import annotations

import os
import random
import socketserver
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.backends.spark import job, native_answers, native_rows, native_slices
from headwater.operators.aggregates.pre_aggregate import ReductionMeter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_SCHEMA = "ts TIMESTAMP, k INT, v BIGINT, d DECIMAL(10,2), x DOUBLE, s STRING, b BOOLEAN, extra STRING"
ARROW = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.int32()),
        ("v", pa.int64()),
        ("d", pa.decimal128(10, 2)),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("extra", pa.string()),
    ]
)
SECOND = 1_000_000
QUERIES = {
    "filter": "SELECT k, v + 1 AS w, s FROM t WHERE v > 20 AND s <> 'b'",
    "whole": "SELECT * FROM t",
    "windows": "SELECT k, COUNT(*) AS n, SUM(v) AS total, MAX(x) AS top FROM t WINDOW(RANGE 20 SECONDS) GROUP BY k",
    "slices": "SELECT s, COUNT(v) AS n, AVG(d) AS m FROM t WINDOW(RANGE 20 SECONDS SLIDE 5 SECONDS) WHERE b GROUP BY s",
    "scalar": "SELECT COUNT(*) AS n FROM t WINDOW(RANGE 7 SECONDS) WHERE 100 / NULLIF(v, 0) > 2 OR s LIKE 'a%'",
    "tumble": "SELECT k, window_end, MIN(v) AS low FROM TUMBLE(t, DESCRIPTOR(ts), 10 SECONDS) GROUP BY k, window_end",
    "join": "SELECT a.k, a.v, c.s FROM t a WINDOW(RANGE 4 SECONDS) JOIN t c WINDOW(RANGE 9 SECONDS) ON a.k = c.k "
    "WHERE a.v > 30 AND c.x < 0.7",
    "distinct": "SELECT DISTINCT s FROM t WINDOW(RANGE 3 SECONDS) WHERE k <> 2",
    "rows": "SELECT k, SUM(v) AS total FROM t WINDOW(PARTITION BY k ROWS 3) GROUP BY k",
    "union": "SELECT k FROM t WHERE v < 10 UNION ALL SELECT k + 100 FROM t WHERE b",
    "middle": "SELECT k, COUNT(*) AS n FROM t WINDOW(RANGE 11 SECONDS) WHERE v < 70 GROUP BY k CONSISTENCY MIDDLE",
    "difference": "SELECT k FROM t WINDOW(RANGE 12 SECONDS) EXCEPT ALL SELECT k FROM t WINDOW(RANGE 2 SECONDS) WHERE b",
    "python": "SELECT sin(x) AS h, v FROM t WHERE v > 50",
}


def rows_of(step: int, rows: int = 60, *, clean: bool = False) -> pa.Table:
    """In no order; from the second step on some are late, and one has no time; clean: none is."""
    dice = random.Random(step)
    moments = [(step * 20 * SECOND) + dice.randrange(26 * SECOND) for _ in range(rows)]
    late = [step * 20 * SECOND - 15 * SECOND, step * 20 * SECOND - 17 * SECOND] if step else []
    times = [max(m, step * 20 * SECOND) for m in moments] if clean else [None, *late, *moments[len(late) + 1 :]]
    found = [
        {
            "ts": at,
            "k": dice.randrange(5),
            "v": dice.choice([None, *range(0, 100, 7)]),
            "d": dice.choice([None, pa.scalar(dice.randrange(1000), pa.decimal128(10, 2)).as_py()]),
            "x": dice.random(),
            "s": dice.choice(["a", "ab", "b", "", None]),
            "b": dice.choice([True, False, None]),
            "extra": "x" * 20,
        }
        for at in times
    ]
    return pa.Table.from_pylist(found, ARROW)


def bring(folder: Path, step: int, *, clean: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{step:04d}.parquet"
    pq.write_table(rows_of(step, clean=clean), folder / f"_{path.name}")
    os.utime(folder / f"_{path.name}", (1_000_000 + step, 1_000_000 + step))
    (folder / f"_{path.name}").rename(path)


def run(
    engine: hw.Engine, place: Path, queries: Mapping[str, str], *, steps: int = 4, sink: Any = hw.sinks.memory
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answers, and what was counted."""
    with engine.held():
        runs = {name: engine.sql(text, name=name).start(sink()) for name, text in queries.items()}
    for step in range(steps):
        with engine.held():
            bring(place, step)
        engine.run_to_end(end_streams=False)
    engine.run_to_end()
    histories = {name: sorted(map(repr, run.history().rows())) for name, run in runs.items()}
    return histories, engine._core.manifest.counts


def on_spark(spark: SparkSession, place: Path, **options: Any) -> hw.Engine:
    place.mkdir(parents=True, exist_ok=True)
    engine = hw.connect(spark=spark, small_tick=0, **options)
    frame = spark.readStream.schema(SPARK_SCHEMA).parquet(str(place))
    engine.register("t", frame, time="ts", disorder="6 seconds", malformed="divert")
    return engine


DECLARED = (
    f"CREATE STREAM t ({SPARK_SCHEMA}) SOURCE parquet('{{place}}', malformed => 'divert') "
    "ORDERED BY ts DISORDER 6 SECONDS"
)


def in_process(place: Path, **options: Any) -> hw.Engine:
    place.mkdir(parents=True, exist_ok=True)
    engine = hw.connect(runner="inprocess", **options)
    engine.sql(DECLARED.format(place=place))
    return engine


def diverted(checkpoint: Path, stream: str) -> list[str]:
    files = (checkpoint / "diverted").rglob("*.parquet")
    tables = [pq.read_table(path) for path in files if path.parent.name == stream]
    drop = {"source"}  # the name of a file, where the rows come from one
    return sorted(repr({k: v for k, v in row.items() if k not in drop}) for t in tables for row in t.to_pylist())


def test_many_queries_over_one_stream(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All at once, as jobs of Spark's with parts that it computes, and in process without."""
    taken: list[int] = []
    original = native_rows.native_rows

    def noted(*arguments: Any) -> Any:
        found = original(*arguments)
        taken.append(0 if found is None else len(found[1].parts))
        return found

    monkeypatch.setattr(job, "native_rows", noted)
    with in_process(tmp_path / "there", checkpoint=tmp_path / "plain") as engine:
        expected, counted = run(engine, tmp_path / "there", QUERIES)
    with on_spark(spark, tmp_path / "here", checkpoint=tmp_path / "spark") as engine:
        found, counts = run(engine, tmp_path / "here", QUERIES)
    assert taken == [taken[0]] * 4, "every batch came through its parts"
    assert taken[0] > len(QUERIES)
    for name in QUERIES:
        assert found[name] == expected[name], name
        assert expected[name], name
    assert counts["t"] == counted["t"] == {"rows": 230, "late": 6, "bad": 4}
    for stream in ("t_late", "t_bad"):
        assert diverted(tmp_path / "spark", stream) == diverted(tmp_path / "plain", stream) != []


SLICES = {
    "tumble": QUERIES["tumble"],
    "range": "SELECT s, COUNT(v) AS n, SUM(k) AS sum FROM t WINDOW(RANGE 22 SECONDS SLIDE 5 SECONDS) WHERE b GROUP BY s",
    "early": "SELECT COUNT(*) AS n, MAX(v) AS top FROM t WINDOW(RANGE 20 SECONDS SLIDE 10 SECONDS) CONSISTENCY MIDDLE",
    "hop": "SELECT window_start, AVG(k) AS mean FROM HOP(t, DESCRIPTOR(ts), 5 SECONDS, 20 SECONDS) GROUP BY window_start",
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_put_together_by_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """From the second tick on, as if many rows became one in the first."""
    taken: list[int] = []
    original = native_slices.sliced_rows

    def noted(*arguments: Any) -> Any:
        taken.append(1)
        return original(*arguments)

    monkeypatch.setattr(job, "sliced_rows", noted)
    monkeypatch.setattr(job, "native_meter", ReductionMeter)
    with in_process(tmp_path / "there", checkpoint=tmp_path / "plain") as engine:
        expected, counted = run(engine, tmp_path / "there", {name: SLICES[name]})
    with on_spark(spark, tmp_path / "here", checkpoint=tmp_path / "spark") as engine:
        assert "runs Spark while it makes one row of four" in engine.sql(SLICES[name]).explain("physical")
        found, counts = run(engine, tmp_path / "here", {name: SLICES[name]})
    assert len(taken) == 3
    assert found == expected
    assert expected[name]
    assert counts["t"] == counted["t"] == {"rows": 230, "late": 6, "bad": 4}
    for stream in ("t_late", "t_bad"):
        assert diverted(tmp_path / "spark", stream) == diverted(tmp_path / "plain", stream) != []


STATELESS = {
    "filter": QUERIES["filter"],
    "whole": QUERIES["whole"],
    "early": "SELECT k, x * 2 AS y, ts FROM t WHERE b CONSISTENCY MIDDLE",
}


def no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no sender may run."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("rows entered Python")

    monkeypatch.setattr(job.SparkExecutor, "_senders", refuse)


def written(folder: Path) -> list[str]:
    return sorted(repr(row) for path in folder.glob("*.parquet") for row in pq.read_table(path).to_pylist())


@pytest.mark.parametrize("declared", [False, True], ids=["registered", "files"])
def test_queries_without_state_never_enter_python(
    declared: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Into files, with what is late and malformed told as ever; and on after a restart, with nothing twice."""
    no_python(monkeypatch)
    checkpoint = tmp_path / "checkpoint"

    def opened() -> hw.Engine:
        if not declared:
            return on_spark(spark, tmp_path / "here", checkpoint=checkpoint)
        engine = hw.connect(spark=spark, small_tick=0, checkpoint=checkpoint)
        (tmp_path / "here").mkdir(exist_ok=True)
        engine.sql(DECLARED.format(place=tmp_path / "here"))
        return engine

    for first, last in ((0, 2), (2, 4)):
        with opened() as engine:
            with engine.held():
                for name, text in STATELESS.items():
                    engine.sql(text, name=name).start(hw.sinks.parquet(tmp_path / "answers" / name))
            for step in range(first, last):
                bring(tmp_path / "here", step)
                engine.run_to_end(end_streams=False)
            counts = engine._core.manifest.counts
    with in_process(tmp_path / "there", checkpoint=tmp_path / "plain") as engine:
        with engine.held():
            for name, text in STATELESS.items():
                engine.sql(text, name=name).start(hw.sinks.parquet(tmp_path / "expected" / name))
        for step in range(4):
            bring(tmp_path / "there", step)
            engine.run_to_end(end_streams=False)
        assert engine._core.manifest.counts == counts
    for name in STATELESS:
        assert written(tmp_path / "answers" / name) == written(tmp_path / "expected" / name) != [], name
        places = [pq.read_schema(next((tmp_path / p / name).glob("*.parquet"))) for p in ("answers", "expected")]
        assert places[0].types == places[1].types
        assert places[0].names == places[1].names
        assert not list((tmp_path / "answers" / name / "_staged").iterdir())
    for stream in ("t_late", "t_bad"):
        assert diverted(checkpoint, stream) == diverted(tmp_path / "plain", stream) != []


def test_answers_of_spark_nowhere_and_to_a_function(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    no_python(monkeypatch)
    found: list[int] = []
    with on_spark(spark, tmp_path / "here", checkpoint=tmp_path / "checkpoint") as engine:
        with engine.held():
            nowhere = hw.sinks.noop()
            engine.sql(QUERIES["whole"], name="all").start(nowhere)
            engine.sql(QUERIES["filter"], name="some").start(
                hw.sinks.spark(lambda frame, tick: found.append(frame.count()))
            )
        for step in range(2):
            bring(tmp_path / "here", step)
            engine.run_to_end(end_streams=False)
        assert nowhere.rows == 116 == engine._core.manifest.counts["t"]["rows"]
        assert engine.runs["some"].frontier == engine.runs["all"].frontier is not None
    assert len(found) == 2
    assert all(found)


def test_footers_save_a_look_at_the_rows(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Files that say themselves that no row is late or malformed; the frontier is the same as ever."""
    no_python(monkeypatch)
    observed: list[str] = []
    monkeypatch.setattr(native_answers._Batch, "_staged_observed", lambda *_: observed.append("looked at"))
    found = {}
    for place, options in (("here", {"spark": spark, "small_tick": 0}), ("there", {"runner": "inprocess"})):
        (tmp_path / place / "rows").mkdir(parents=True)
        with hw.connect(**options, checkpoint=tmp_path / place / "checkpoint") as engine:
            engine.sql(DECLARED.format(place=tmp_path / place / "rows"))
            with engine.held():
                for name, text in STATELESS.items():
                    engine.sql(text, name=name).start(hw.sinks.parquet(tmp_path / place / name))
            for step in range(2):
                bring(tmp_path / place / "rows", step, clean=True)
                engine.run_to_end(end_streams=False)
            frontiers = [run.frontier for run in engine.runs.values()]
            found[place] = (
                [written(tmp_path / place / name) for name in STATELESS],
                engine._core.manifest.counts,
                frontiers,
            )
    assert found["here"] == found["there"]
    assert not observed


@pytest.mark.parametrize("policy", ["ADJUST", "DROP", "ERROR"])
def test_late_rows_of_a_query_without_state(policy: str, spark: SparkSession, tmp_path: Path):
    found: dict[str, Any] = {}
    for place, options in (("here", {"spark": spark, "small_tick": 0}), ("there", {"runner": "inprocess"})):
        (tmp_path / place / "rows").mkdir(parents=True)
        with hw.connect(**options, checkpoint=tmp_path / place / "checkpoint") as engine:
            engine.sql(f"{DECLARED.format(place=tmp_path / place / 'rows')} LATE ROWS {policy}")
            engine.sql(QUERIES["whole"], name="all").start(hw.sinks.parquet(tmp_path / place / "answers"))
            bring(tmp_path / place / "rows", 0)
            engine.run_to_end(end_streams=False)
            bring(tmp_path / place / "rows", 1)
            try:
                engine.run_to_end(end_streams=False)
            except hw.HeadwaterError as problem:
                found[place] = problem.code, problem.message
            else:
                found[place] = written(tmp_path / place / "answers"), engine._core.manifest.counts
    assert found["here"] == found["there"]


@pytest.mark.parametrize("query", ["whole", "windows"])
def test_a_malformed_row_ends_it_where_it_may_not_be(query: str, spark: SparkSession, tmp_path: Path):
    bring(tmp_path / "rows", 0)
    with hw.connect(spark=spark, small_tick=0) as engine:
        engine.register("t", spark.readStream.schema(SPARK_SCHEMA).parquet(str(tmp_path / "rows")), time="ts")
        engine.sql(QUERIES[query]).start(hw.sinks.noop())
        with pytest.raises(
            hw.HeadwaterError, match='stream "t" cannot take a row: the time column "ts" is NULL'
        ) as told:
            engine.run_to_end()
    assert told.value.code == "BAD_ROW"
    assert '"extra":"xxxx' in told.value.detail


def test_what_runs_where_is_told(spark: SparkSession, tmp_path: Path):
    with on_spark(spark, tmp_path / "rows") as engine:
        (tmp_path / "files").mkdir()
        engine.sql(DECLARED.format(place=tmp_path / "files").replace("STREAM t", "STREAM f"))
        assert engine.sql(QUERIES["filter"]).explain("physical").count("runs Spark") == 2
        assert "runs Spark" in engine.sql("EXPLAIN PHYSICAL " + QUERIES["windows"])
        assert engine.sql(QUERIES["filter"].replace("FROM t", "FROM f")).explain("physical").count("runs Spark") == 2
        assert "runs Spark" not in engine.sql(QUERIES["windows"].replace("FROM t", "FROM f")).explain("physical")
    with in_process(tmp_path / "files") as engine:
        assert "runs Spark" not in engine.sql(QUERIES["filter"]).explain("physical")


def test_rows_put_together_where_they_come_in_change_no_answer(tmp_path: Path):
    queries = {name: QUERIES[name] for name in ("slices", "tumble", "windows")}
    found = []
    for setting in ("on", "off"):
        with in_process(tmp_path / setting) as engine:
            engine.sql(f"SET optimizer = {setting}")
            found.append(run(engine, tmp_path / setting, queries)[0])
            operators = {node.operator.name for node in engine._core.deployment.layout.graph.nodes if node.operator}
            assert ("pre-aggregate" in operators) == (setting == "on")
    assert found[0] == found[1]


def test_lines_of_a_socket_are_parsed_in_the_tasks(spark: SparkSession, tmp_path: Path):
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"1,a\ntwo,b\n3,c\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server, hw.connect(spark=spark, small_tick=0) as engine:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        place = f"'127.0.0.1', {server.server_address[1]}, format => 'csv', malformed => 'divert'"
        engine.sql(f"CREATE STREAM lines (x BIGINT, y STRING) SOURCE socket({place}) ORDERED BY x IN ORDER")
        answer = engine.sql("SELECT y FROM lines WHERE x > 1").start(hw.sinks.memory())
        while sum(engine._core.manifest.counts.get("lines", {}).values()) < 3:
            engine.wait(0.05)
        server.shutdown()
        assert engine._core.manifest.counts["lines"] == {"rows": 2, "late": 0, "bad": 1}
        assert [row["y"] for row in answer.history().rows()] == ["c"]
