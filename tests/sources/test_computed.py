"""Columns that are computed of what rows bring, before a row is placed in time; and times that are numbers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.errors import HeadwaterError, StreamError
from headwater.language.binder import bind_script
from headwater.language.catalog import Stream
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.runtime.replay import replay
from headwater.sources.base import Piece
from headwater.sources.intake import Intake
from headwater.sources.memory import MemorySource, PushedSource

AT = 1_700_000_000_000
MOMENT = datetime(2023, 11, 14, 22, 13, 20)
COLUMNS = "id INT, ts BIGINT, t AS timestamp_millis(ts)"
ROWS = [{"id": i, "ts": AT + 1000 * i} for i in range(4)]
WANTED = [{**row, "t": MOMENT + timedelta(seconds=i)} for i, row in enumerate(ROWS)]


def seen(engine: hw.Engine, text: str = "SELECT * FROM s") -> list[dict]:
    run = engine.sql(text).start()
    engine.run_to_end()
    return rows_of(run)


def rows_of(run: hw.Run) -> list[dict]:
    """Without intervals, in the order of their values."""
    found = [{k: v for k, v in row.items() if k[0] != "_"} for row in run.history().rows()]
    return sorted(found, key=lambda row: tuple(row.values()))


def declared(clauses: str = "ORDERED BY t", *, columns: str = COLUMNS, source: str = "") -> str:
    return f"CREATE STREAM s ({columns}) {source} {clauses}"


# -- all sources ------------------------------------------------------------------------------------------------------


def written(folder: Path, format_: str) -> str:
    match format_:
        case "json":
            (folder / "a.json").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        case "csv":
            (folder / "a.csv").write_text("id,ts\n" + "".join(f"{r['id']},{r['ts']}\n" for r in ROWS))
        case "parquet":
            pq.write_table(
                pa.Table.from_pylist(ROWS).cast(pa.schema({"id": pa.int32(), "ts": pa.int64()})), folder / "a.parquet"
            )
    return f"SOURCE {format_}('{folder}', follow => false)"


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_files_do_not_have_the_column(format_: str, tmp_path: Path):
    with hw.connect(runner="inprocess") as engine:
        engine.sql(declared(source=written(tmp_path, format_)))
        assert seen(engine) == WANTED


@pytest.mark.parametrize(
    "rows", [ROWS, [tuple(r.values()) for r in ROWS], pa.Table.from_pylist(ROWS), pd.DataFrame(ROWS)]
)
def test_pushed_rows_do_not_have_the_column(rows: object):
    with hw.connect(runner="inprocess") as engine:
        engine.sql(declared())
        run = engine.sql("SELECT * FROM s").start()
        engine.push("s", rows)
        engine.run_to_end()
        assert rows_of(run) == WANTED


def test_a_socket_and_a_generator_do_not_have_the_column():
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall("".join(f"{r['id']},{r['ts']}\n" for r in ROWS).encode())

    threading.Thread(target=serve, daemon=True).start()
    with hw.connect(runner="inprocess") as engine, server:
        engine.sql(declared(source=f"SOURCE socket('127.0.0.1', {server.getsockname()[1]})"))
        assert seen(engine) == WANTED
    with hw.connect(runner="inprocess") as engine:
        engine.sql(
            "CREATE STREAM s (auction BIGINT, price BIGINT, ts TIMESTAMP, cents AS price * 100, day AS CAST(ts AS DATE)) "
            "SOURCE nexmark('bid', events => 1000, paced => false) ORDERED BY ts"
        )
        found = seen(engine, "SELECT price, cents, ts, day FROM s")
        assert found
        assert all(r["cents"] == 100 * r["price"] and r["day"] == r["ts"].date() for r in found)


def test_memory_keeps_only_what_is_brought(tmp_path: Path):
    MemorySource(Schema.of(id="INT", ts="BIGINT"), folder=tmp_path).push(ROWS)
    with hw.connect(runner="inprocess") as engine:
        engine.sql(declared(source=f"SOURCE memory('{tmp_path}')"))
        assert seen(engine) == WANTED


def test_what_rows_call_like_a_computed_column_is_not_looked_at():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(declared())
        run = engine.sql("SELECT t FROM s").start()
        engine.push("s", pa.table({"id": [1], "ts": [AT], "t": ["nonsense"]}))
        with pytest.raises(HeadwaterError, match='no column "t"'):
            engine.push("s", [{"id": 1, "ts": AT, "t": MOMENT}])
        engine.run_to_end()
        assert [r["t"] for r in run.history().rows()] == [MOMENT]


# -- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clauses", "name"),
    [
        ("ORDERED BY timestamp_millis(ts)", "rowtime"),
        ("TIMESTAMP BY from_unixtime_ms(ts)", "rowtime"),
        ("ORDERED BY TO_TIMESTAMP_LTZ(ts, 3) AS at IN ORDER", "at"),
        ("DISORDER 1 SECOND ORDERED BY timestamp_seconds(ts div 1000) AS at", "at"),
        ("ORDERED BY (ts * 1000) AS micros DISORDER 5", "micros"),
    ],
)
def test_an_expression_can_be_the_time(clauses: str, name: str):
    stream = bind_script(declared(clauses, columns="id INT, ts BIGINT")).catalog.get("s")
    assert isinstance(stream, Stream)
    assert (stream.time, stream.schema.names[-1], stream.brought.names) == (name, name, ("id", "ts"))


def test_late_rows_and_windows_go_by_the_computed_time():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(
            declared("LATE ROWS DIVERT INTO too_late", columns=f"{COLUMNS}, WATERMARK FOR t AS t - INTERVAL '5' SECOND")
        )
        run = engine.sql(
            "SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(t), INTERVAL '10' SECONDS) "
            "GROUP BY window_start, window_end"
        ).start()
        engine.push("s", ROWS)
        engine.push("s", [{"id": 9, "ts": AT + 60_000}])
        engine.push("s", [{"id": 7, "ts": AT + 2_000}])
        engine.run_to_end()
        assert [r["n"] for r in run.history().rows()] == [4, 1]
        (late,) = engine.diverted("too_late").rows()
        assert (late["id"], late["t"]) == (7, MOMENT + timedelta(seconds=2))


def test_a_value_that_cannot_be_computed_makes_a_malformed_row():
    rows = [*ROWS, {"id": 8, "ts": 2**63 - 1}, {"id": 9, "ts": None}]
    with hw.connect(runner="inprocess") as engine:
        engine.sql(declared())
        engine.sql("SELECT id FROM s").start()
        with pytest.raises(
            StreamError, match=r'column "t" cannot be computed: TIMESTAMP_MILLIS\(ts\) of 9223372036854775807'
        ):
            engine.push("s", rows)
        with pytest.raises(StreamError, match=r'the time column "t" \(TIMESTAMP_MILLIS\(ts\)\) is NULL'):
            engine.push("s", rows[-1:])
    with hw.connect(runner="inprocess") as engine:
        engine.sql(declared(source="SOURCE push(malformed => 'divert')"))
        run = engine.sql("SELECT id FROM s").start()
        engine.push("s", rows)
        engine.run_to_end()
        assert [r["id"] for r in rows_of(run)] == [0, 1, 2, 3]
        assert [r["line"] for r in engine.diverted("s_bad").rows()] == [5, 6]


@pytest.mark.parametrize(
    ("expression", "bad", "meaning"),
    [
        ("CAST(x AS INT)", ["a", ""], int),
        ("CASE WHEN CAST(x AS INT) > 2 THEN CAST(x AS INT) END", ["a", ""], lambda t: int(t) if int(t) > 2 else None),
        ("length(x)", [], len),
    ],
)
def test_whatever_fails_is_told_row_by_row(expression: str, bad: list[str], meaning: Callable[[str], object]):
    """Also where DuckDB would compute a part that occurs twice ahead of all that guards it."""
    stream = bind_script(f"CREATE STREAM s (x STRING, n AS {expression}, at INT) ORDERED BY at").catalog.get("s")
    assert isinstance(stream, Stream)
    texts = ["1", "a", None, "7", "", "3"]
    piece = Piece(pa.record_batch({"x": pa.array(texts), "at": pa.array(range(6), pa.int32())}))
    taken = Intake.of(stream, PushedSource(stream.brought, malformed="divert")).take(piece, BEGINNING)
    assert [json.loads(raw)["x"] for raw in taken.bad.raw.to_pylist()] == bad
    good = [t for t in texts if t not in bad]
    assert taken.delta.to_batch().column("x").to_pylist() == good
    assert taken.delta.to_batch().column("n").to_pylist() == [None if t is None else meaning(t) for t in good]


def test_a_column_that_nobody_reads_is_judged_nevertheless(tmp_path: Path):
    """What is malformed does not depend on what queries read."""
    table = pa.table(
        {"id": pa.array([1, 2], pa.int32()), "at": pa.array([1, 2], pa.int64()), "x": pa.array([1, 2**62], pa.int64())}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    with hw.connect(runner="inprocess") as engine:
        engine.sql(
            "CREATE STREAM s (id INT, at BIGINT, x BIGINT, y AS x * 100, z AS id + 1) "
            f"SOURCE parquet('{tmp_path}', malformed => 'divert', follow => false) ORDERED BY at"
        )
        assert seen(engine, "SELECT id FROM s") == [{"id": 1}]
        assert len(engine.diverted("s_bad").rows()) == 1


def test_random_rows_have_the_values_that_python_computes():
    random = np.random.default_rng(7)
    rows = [{"id": int(i), "ts": int(t)} for i, t in enumerate(random.integers(-(10**12), 2 * 10**12, 500))]
    with hw.connect(runner="inprocess") as engine:
        engine.sql(
            declared("ORDERED BY t DISORDER 50000 DAYS", columns=f"{COLUMNS}, half AS ts / 2, odd AS ts % 2 <> 0")
        )
        run = engine.sql("SELECT * FROM s").start()
        for cut in range(0, 500, 77):
            engine.push("s", rows[cut : cut + 77])
        engine.run_to_end()
        found = sorted(run.history().rows(), key=lambda r: r["id"])
    assert len(found) == 500
    for row, wanted in zip(found, rows, strict=True):
        assert row["t"] == datetime(1970, 1, 1) + timedelta(milliseconds=wanted["ts"]) == row["_start"]
        assert (row["half"], row["odd"]) == (wanted["ts"] / 2, wanted["ts"] % 2 != 0)


def test_a_heartbeat_without_a_row_has_no_time():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(
            "CREATE STREAM s (ts BIGINT, beat TIMESTAMP, t AS timestamp_millis(ts)) "
            "ORDERED BY t HEARTBEAT FROM SOURCE (beat)"
        )
        run = engine.sql("SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND]").start()
        engine.push("s", [{"ts": AT, "beat": None}, {"ts": None, "beat": MOMENT + timedelta(seconds=9)}])
        assert len(run.history().rows()) == 1


def test_a_table_can_have_computed_columns():
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE TABLE s (id INT, name STRING, big AS upper(name))")
        run = engine.sql("SELECT id, big FROM s").start()
        engine.push("s", [{"id": 1, "name": "ann", "_start": 0, "_end": 9}], frontier=5)
        engine.run_to_end()
        assert [r["big"] for r in run.history().rows()] == ["ANN"]


# -- replays, SHOW, mistakes ------------------------------------------------------------------------------------------


def test_a_recording_may_lack_computed_columns(tmp_path: Path):
    lines = [
        {"stream": "s", "kind": "insert", "at": AT * 1000, "row": {"id": 1, "ts": AT}},
        {"stream": "s", "kind": "insert", "at": AT * 1000, "row": {"id": 2, "ts": AT, "t": "2020-01-01T00:00:00"}},
    ]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = replay(bind_script(declared() + "; SELECT id, t FROM s"), path, history=True)
    assert [json.loads(line)["row"]["t"] for line in found] == ["2023-11-14T22:13:20", "2020-01-01T00:00:00"]
    path.write_text(json.dumps({**lines[0], "row": {"id": 1, "ts": 2**63 - 1}}) + "\n")
    with pytest.raises(HeadwaterError, match='line 1: stream "s": column "t" cannot be computed'):
        replay(bind_script(declared() + "; SELECT id, t FROM s"), path)


def test_show_and_describe_tell_how_a_column_is_computed():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(declared(columns="`a b` BIGINT, t AS timestamp_millis(`a b`)"))
        assert "`a b`" in str(engine.sql("SHOW STREAMS")) or "a b BIGINT" in str(engine.sql("SHOW STREAMS"))
        assert "t TIMESTAMP AS TIMESTAMP_MILLIS(`a b`)" in str(engine.sql("SHOW STREAMS"))
        assert "time, computed: TIMESTAMP_MILLIS(`a b`)" in str(engine.sql("DESCRIBE s"))


# -- numbers where times are declared, and zones ----------------------------------------------------------------------

TYPES = ["TIMESTAMP", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "TIMESTAMPTZ", "TIMESTAMP_NTZ", "TIMESTAMP WITH TIME ZONE"]
TYPES += ["TIMESTAMP(3) WITH LOCAL TIME ZONE"]
EIGHT = datetime(2024, 1, 1, 8)


@pytest.mark.parametrize("type_", TYPES)
def test_an_offset_is_applied_and_without_one_it_is_utc(type_: str, tmp_path: Path):
    texts = ["2024-01-01T10:00:00+02:00", "2024-01-01T08:00:00Z", "2024-01-01 08:00:00", "2024-01-01T08:00:00.000000"]
    (tmp_path / "a.csv").write_text("ts\n" + "".join(f"{t}\n" for t in texts))
    (tmp_path / "a.json").write_text("".join(json.dumps({"ts": t}) + "\n" for t in texts))
    for name in ("csv", "json"):
        with hw.connect(runner="inprocess") as engine:
            engine.sql(f"CREATE STREAM s (ts {type_}) SOURCE {name}('{tmp_path}/a.{name}') ORDERED BY ts")
            assert [r["ts"] for r in seen(engine)] == [EIGHT] * 4


def test_columns_with_a_zone_keep_their_instants(tmp_path: Path):
    zoned = pa.array([datetime(2024, 1, 1, 8, tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin"))
    pq.write_table(pa.table({"ts": zoned}), tmp_path / "a.parquet")
    given = [
        pa.table({"ts": zoned}),
        pd.DataFrame({"ts": pd.to_datetime(["2024-01-01T09:00:00"]).tz_localize("Europe/Berlin")}),
        [{"ts": datetime(2024, 1, 1, 10, tzinfo=timezone(timedelta(hours=2)))}],
        [{"ts": "2024-01-01T10:00:00+02:00"}],
        [{"ts": EIGHT}],
    ]
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (ts TIMESTAMP) ORDERED BY ts")
        engine.sql(f"CREATE STREAM f (ts TIMESTAMP) SOURCE parquet('{tmp_path}', follow => false) ORDERED BY ts")
        runs = [engine.sql(f"SELECT ts FROM {name}").start() for name in "sf"]
        for rows in given:
            engine.push("s", rows)
        engine.run_to_end()
        assert [[r["ts"] for r in run.history().rows()] for run in runs] == [[EIGHT] * 5, [EIGHT]]


@pytest.mark.parametrize(
    "rows", [[{"ts": AT}], [(AT,)], [{"ts": AT / 1000}], [{"ts": EIGHT}, {"ts": AT}], pa.table({"ts": [AT]})]
)
def test_a_number_is_no_time(rows: object):
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (ts TIMESTAMP) ORDERED BY ts")
        engine.sql("SELECT ts FROM s").start()
        with pytest.raises(StreamError, match=r"ts BIGINT, t AS timestamp_millis\(ts\)"):
            engine.push("s", rows)


@pytest.mark.parametrize(("name", "text"), [("csv", f"ts\n{AT}\n"), ("json", f'{{"ts": {AT}}}\n')])
def test_a_number_in_a_file_is_no_time(name: str, text: str, tmp_path: Path):
    (tmp_path / f"a.{name}").write_text(text)
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"CREATE STREAM s (ts TIMESTAMP) SOURCE {name}('{tmp_path}/a.{name}') ORDERED BY ts")
        engine.sql("SELECT ts FROM s").start()
        with pytest.raises(StreamError, match=r"ts BIGINT, t AS timestamp_millis\(ts\)"):
            engine.run_to_end()


def test_numbers_inside_of_lists_and_structs_are_no_times():
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM s (at INT, many ARRAY<TIMESTAMP>, one STRUCT<t: TIMESTAMP>) ORDERED BY at")
        engine.sql("SELECT * FROM s").start()
        engine.push("s", [{"at": 1, "many": [EIGHT, None], "one": {"t": EIGHT}}])
        for wrong in ({"many": [AT]}, {"one": {"t": AT}}):
            with pytest.raises(StreamError, match="BIGINT"):
                engine.push("s", [{"at": 2, **wrong}])


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CREATE STREAM s (ts BIGINT, t AS ts + 1, u AS t + 1)", 'column "t" is computed itself'),
        ("CREATE STREAM s (ts BIGINT, t AS nothing(ts))", "UNKNOWN_FUNCTION"),
        ("CREATE STREAM s (ts BIGINT, t AS COUNT(ts))", "AGGREGATE_POSITION"),
        ("CREATE STREAM s (ts BIGINT, t AS (SELECT 1))", "SUBQUERY_POSITION"),
        ("CREATE STREAM s (ts BIGINT, t AS now())", "The same input must always give the same answer"),
        ("CREATE STREAM s (ts BIGINT, rowtime INT) ORDERED BY timestamp_millis(ts)", "ORDERED BY expression AS name"),
        ("CREATE STREAM s (ts BIGINT) ORDERED BY CAST(ts AS STRING)", "a stream cannot be ordered by"),
        ("CREATE STREAM s (ts BIGINT) ORDERED BY to_timestamp_ltz(ts)", r"to_timestamp_ltz\(…, 3\)"),
        ("CREATE STREAM s (t AS 1)", "has no columns"),
        ("CREATE STREAM s (a INT, t AS a + 1) AS SELECT 1 AS x", "is computed, but"),
        ("CREATE TABLE s (a INT, t AS a + 1) SOURCE push(changes => 'debezium')", "images inside of change events"),
        ("CREATE STREAM s (ts TIMESTAMP(9))", "at most 6 digits"),
        ("CREATE STREAM s (ts BIGINT, t AS mine(ts))", "Call it in a query"),
    ],
)
def test_what_cannot_be_computed_is_refused_with_what_to_write(text: str, told: str):
    with hw.connect(runner="inprocess") as engine:
        engine.create_function("mine", lambda x: x, {"x": "BIGINT"}, "BIGINT")
        with pytest.raises(hw.SqlError, match=told):
            engine.sql(text)
