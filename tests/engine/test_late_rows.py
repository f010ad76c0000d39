"""Rows that come too late, and rows that are no rows: counted, put aside, read by whoever asks for them, never lost."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.errors import InputError, StreamError
from headwater.sinks.diverted import diverted_streams, read_diverted

SENSOR = "CREATE STREAM reading (at INT, value INT)"
ON_TIME, LATE = [{"at": 10, "value": 1}, {"at": 12, "value": 2}], [{"at": 3, "value": 3}, {"at": 11, "value": 4}]


def engine_on(folder: Path, declared: str) -> hw.Engine:
    engine = hw.connect(runner="inprocess", shards=2, checkpoint=folder / "checkpoint")
    engine.sql(declared)
    return engine


def history(run: hw.Run) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in run.history().rows())


# -- late rows --------------------------------------------------------------------------------------------------------


def test_late_rows_nobody_reads_are_kept_as_files(tmp_path: Path):
    with engine_on(tmp_path, f"{SENSOR} ORDERED BY at DISORDER 2") as engine:
        run = engine.sql("SELECT value FROM reading").start()
        engine.push("reading", ON_TIME)
        engine.push("reading", LATE)
        assert run.progress.late_rows == 1
        engine.run_to_end()
        assert [row[0] for row in history(run)] == [1, 2, 4]
    assert diverted_streams(tmp_path / "checkpoint") == ["reading_late"]
    assert read_diverted(tmp_path / "checkpoint", "reading_late").rows() == [{"at": 3, "value": 3, "_tick": 2}]


@pytest.mark.parametrize("consistency", ["STRONG", "MIDDLE"])
def test_a_query_may_read_them(consistency: str, tmp_path: Path):
    """They are valid at the instant that was final when they came: time of their stream is that of the other one."""
    with engine_on(tmp_path, f"{SENSOR} ORDERED BY at DISORDER 2 LATE ROWS DIVERT INTO missed") as engine:
        run = engine.sql(f"SELECT * FROM missed CONSISTENCY {consistency}").start()
        total = engine.sql(f"SELECT COUNT(*) AS n FROM missed WINDOW(RANGE 5) CONSISTENCY {consistency}").start(
            name="n"
        )
        engine.push("reading", ON_TIME)
        engine.push("reading", LATE)
        engine.push("reading", [{"at": 30, "value": 5}])
        assert history(run) == [(3, 3, 10, 11)]
        assert history(total) == [(1, 10, 15)]
        engine.run_to_end()
        assert history(run) == [(3, 3, 10, 11)]
        with pytest.raises(InputError, match='CANNOT_PUSH: "missed" is no stream to push into'):
            engine.push("missed", ON_TIME)
    assert diverted_streams(tmp_path / "checkpoint") == []


def test_only_late_rows_are_read(tmp_path: Path):
    """The stream itself must be read for that, and its end is theirs."""
    (tmp_path / "in").mkdir()
    declared = (
        f"{SENSOR} SOURCE parquet('{tmp_path}/in', rows_per_tick => 1) "
        "ORDERED BY at DISORDER 0 LATE ROWS DIVERT INTO missed"
    )
    with engine_on(tmp_path, declared) as engine:
        run = engine.sql("SELECT value FROM missed").start()
        for i, rows in enumerate(([{"at": 10, "value": 1}], [{"at": 4, "value": 2}])):
            pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / f"{i}.parquet")
            engine.run_to_end(end_streams=False)
        engine.run_to_end()
        assert history(run) == [(2, 10, 11)]
        assert run.frontier is None
        assert run.snapshot(at=10).rows() == [{"value": 2}]


def test_a_stream_with_the_same_name_is_another_stream(tmp_path: Path):
    with engine_on(
        tmp_path,
        f"{SENSOR} ORDERED BY at IN ORDER; CREATE STREAM reading_late (at INT, note STRING) ORDERED BY at IN ORDER",
    ) as e:
        run = e.sql("SELECT note FROM reading_late", name="notes").start()
        other = e.sql("SELECT value FROM reading", name="values").start()
        e.push("reading_late", [{"at": 50, "note": "mine"}])
        e.push("reading", ON_TIME)
        e.push("reading", LATE)
        e.push("reading_late", [{"at": 60, "note": "too"}])
        e.run_to_end()
        assert [row[0] for row in history(run)] == ["mine", "too"]
        assert [row[0] for row in history(other)] == [1, 2]
    assert read_diverted(tmp_path / "checkpoint", "reading_late").rows() == [
        {"at": 3, "value": 3, "_tick": 3},
        {"at": 11, "value": 4, "_tick": 3},
    ]


@pytest.mark.parametrize(("policy", "values", "diverted"), [("DROP", [1, 2], []), ("ADJUST", [1, 2, 3, 4], [])])
def test_other_policies(policy: str, values: list[int], diverted: list[str], tmp_path: Path):
    with engine_on(tmp_path, f"{SENSOR} ORDERED BY at IN ORDER LATE ROWS {policy}") as engine:
        run = engine.sql("SELECT value FROM reading").start()
        engine.push("reading", ON_TIME)
        engine.push("reading", LATE)
        engine.run_to_end()
        assert sorted(row[0] for row in history(run)) == values
        assert engine._core.manifest.counts["reading"]["late"] == 2
    assert diverted_streams(tmp_path / "checkpoint") == diverted


def test_late_rows_may_be_an_error(tmp_path: Path):
    with engine_on(tmp_path, f"{SENSOR} ORDERED BY at IN ORDER LATE ROWS ERROR") as engine:
        engine.sql("SELECT value FROM reading").start()
        engine.push("reading", ON_TIME)
        with pytest.raises(
            StreamError, match='LATE_ROW: stream "reading" cannot take a row: it comes too late'
        ) as told:
            engine.push("reading", LATE)
        assert '"at":3' in told.value.detail
        with pytest.raises(StreamError, match="LATE_ROW"):
            engine.run_to_end()
        assert engine._core.manifest.counts["reading"] == {"rows": 2, "late": 0, "bad": 0}


def test_rows_after_the_end_of_a_stream_are_late(tmp_path: Path):
    with engine_on(tmp_path, f"{SENSOR} ORDERED BY at IN ORDER LATE ROWS DIVERT INTO missed") as engine:
        run = engine.sql("SELECT value FROM missed").start()
        engine.push("reading", ON_TIME)
        engine.run_to_end()
        engine.push("reading", [{"at": 99, "value": 9}])
        assert history(run) == []
    assert read_diverted(tmp_path / "checkpoint", "missed").rows() == [{"at": 99, "value": 9, "_tick": 3}]


# -- rows that are none -----------------------------------------------------------------------------------------------


def lines(folder: Path, *texts: str) -> None:
    folder.mkdir(exist_ok=True)
    for i, text in enumerate(texts):
        (folder / f"{i}.csv").write_text("at,value\n" + text)


def test_malformed_rows_are_kept_as_files(tmp_path: Path):
    lines(tmp_path / "in", "1,10\nx,11\n2,12\n", "3,thirteen\n4,14\n")
    declared = f"{SENSOR} SOURCE csv('{tmp_path}/in', malformed => 'divert') ORDERED BY at IN ORDER"
    with engine_on(tmp_path, declared) as engine:
        run = engine.sql("SELECT value FROM reading").start()
        engine.run_to_end()
        assert [row[0] for row in history(run)] == [10, 12, 14]
        assert run.progress.bad_rows == 2
    found = read_diverted(tmp_path / "checkpoint", "reading_bad").rows()
    assert [(Path(r["source"]).name, r["line"], r["row"]) for r in found] == [
        ("0.csv", 3, "x,11"),
        ("1.csv", 2, "3,thirteen"),
    ]


def test_a_query_may_read_malformed_rows(tmp_path: Path):
    lines(tmp_path / "in", "1,10\nx,11\n2,12\n", "3,thirteen\n4,14\n")
    declared = f"""
        {SENSOR} SOURCE csv('{tmp_path}/in', malformed => 'divert') ORDERED BY at IN ORDER;
        CREATE STREAM reading_bad (source STRING, line BIGINT, reason STRING, row STRING);
    """
    with engine_on(tmp_path, declared) as engine:
        with engine.held():
            bad = engine.sql("SELECT line, row FROM reading_bad", name="bad").start()
            good = engine.sql("SELECT value FROM reading", name="good").start()
        engine.run_to_end()
        assert [row[:2] for row in history(bad)] == [(2, "3,thirteen"), (3, "x,11")]
        assert [row[0] for row in history(good)] == [10, 12, 14]
    assert diverted_streams(tmp_path / "checkpoint") == []


def test_a_malformed_row_may_be_an_error(tmp_path: Path):
    lines(tmp_path / "in", "1,10\nx,11\n")
    with engine_on(tmp_path, f"{SENSOR} SOURCE csv('{tmp_path}/in') ORDERED BY at IN ORDER") as engine:
        engine.sql("SELECT value FROM reading", name="q").start()
        with pytest.raises(StreamError, match="BAD_ROW") as told:
            engine.run_to_end()
        assert "0.csv" in str(told.value)
        assert "x,11" in str(told.value)
    lines(tmp_path / "in", "1,10\n2,11\n")
    with engine_on(tmp_path, f"{SENSOR} SOURCE csv('{tmp_path}/in') ORDERED BY at IN ORDER") as engine:
        run = engine.sql("SELECT value FROM reading", name="q").start()
        engine.run_to_end()
        assert [row[0] for row in history(run)] == [10, 11]


# -- cuts -------------------------------------------------------------------------------------------------------------

QUERIES = {
    "counts": "SELECT kind, COUNT(*) AS n, SUM(x) AS s FROM event WINDOW(RANGE 7) GROUP BY kind",
    "early": "SELECT kind, MAX(x) AS most FROM event WINDOW(RANGE 7) GROUP BY kind CONSISTENCY MIDDLE",
    "pairs": (
        "SELECT a.x, b.x AS y FROM event a WINDOW(RANGE 3), event b WINDOW(RANGE 3) WHERE a.kind = b.kind AND a.x < b.x"
    ),
    "rows": "SELECT kind, SUM(x) AS s FROM event WINDOW(PARTITION BY kind ROWS 3) GROUP BY kind",
    "top": "SELECT x FROM event WINDOW(RANGE 9) ORDER BY x DESC LIMIT 3",
    "new": "SELECT ISTREAM kind FROM event WINDOW(RANGE 4) WHERE x > 4",
}


@pytest.mark.parametrize("seed", range(4))
def test_the_history_does_not_depend_on_where_ticks_are_cut(seed: int):
    dice = random.Random(seed)
    events = [{"at": t + dice.randrange(6), "kind": dice.choice("abc"), "x": dice.randrange(10)} for t in range(60)]
    found = []
    for _ in range(3):
        cuts = sorted({0, len(events), *(dice.randrange(len(events)) for _ in range(dice.choice([0, 3, 20])))})
        with hw.connect(runner="inprocess", shards=dice.choice([1, 2, 4])) as engine:
            engine.sql("CREATE STREAM event (at INT, kind STRING, x INT) ORDERED BY at DISORDER 5")
            with engine.held():
                runs = {name: engine.sql(sql, name=name).start() for name, sql in QUERIES.items()}
            for a, b in pairwise(cuts):
                engine.push("event", events[a:b])
            engine.run_to_end()
            assert engine._core.manifest.counts["event"]["late"] == 0
            found.append({name: history(run) for name, run in runs.items()})
    assert found[0] == found[1] == found[2]
    assert all(found[0].values())
