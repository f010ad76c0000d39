"""Rows pushed by hand: a mistake is told to whoever made it, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import headwater as hw
from headwater.errors import HeadwaterError, InputError, StreamError
from headwater.sinks.diverted import read_diverted

GOOD = {"x": 1, "at": 1}
MALFORMED: list[Any] = [
    [GOOD, {"x": "no number", "at": 2}],
    [GOOD, {"x": 2, "at": None}],
    [{"x": 1.5, "at": 1}],
    [{"x": 2**70, "at": 1}],
    [{"x": None, "at": 1}],
    pa.RecordBatch.from_pydict({"x": ["a"], "at": [1]}),
    pa.table({"x": ["a"], "at": [1]}),
    pa.table({"x": [1]}),
    pd.DataFrame({"x": [1.5], "at": [1]}),
    [1, 2],
    ["ab"],
    None,
    7,
    GOOD,
    [{"y": 1, "at": 1}],
    [(1,)],
]


@pytest.fixture
def engine() -> Iterator[hw.Engine]:
    with hw.connect(runner="inprocess", shards=2) as engine:
        engine.sql("CREATE STREAM r (x INT NOT NULL, at INT) ORDERED BY at IN ORDER")
        yield engine


def values(run: hw.Run) -> list[Any]:
    return sorted(row["x"] for row in run.history().rows())


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("rows", MALFORMED, ids=range(len(MALFORMED)))
def test_a_push_that_cannot_be_taken_is_refused_whole_and_later_ones_are_taken(
    engine: hw.Engine, rows: Any, wait: bool
):
    run = engine.sql("SELECT x FROM r").start()
    with pytest.raises(HeadwaterError) as told:
        engine.push("r", rows, wait=wait)
    assert told.value.code in ("BAD_ROW", "BAD_ROWS", "UNKNOWN_COLUMN")
    engine.push("r", [{"x": 5, "at": 5}])
    engine.run_to_end()
    assert values(run) == [5]
    assert engine.progress().rows == 1


def test_the_error_names_the_row_and_the_column(engine: hw.Engine):
    engine.sql("SELECT x FROM r").start()
    with pytest.raises(StreamError) as told:
        engine.push("r", [GOOD, GOOD, {"x": "no number", "at": 2}])
    assert str(told.value) == (
        'BAD_ROW: stream "r" cannot take a row: column "x" is INT, which "no number" is not\n'
        '  detail: push, row 3: {"x":"no number","at":2}\n'
        "  hint:   Mend it; or keep such rows apart, in \"r_bad\": malformed => 'divert'."
    )


def test_what_others_push_into_the_same_tick_is_taken(engine: hw.Engine):
    engine.sql("CREATE STREAM s (x INT, at INT) ORDERED BY at IN ORDER")
    runs = [engine.sql(f"SELECT x FROM {name}", name=f"of_{name}").start() for name in "rs"]
    bad = pa.table({"x": ["a"], "at": [1]})
    with engine.held():
        refused = engine._inputs.pushed(engine._statements.catalog.get("r"), bad, promise=None, check=False)  # type: ignore
        engine._loop.submit(refused)
        engine.push("s", [(7, 1)], wait=False)
    refused.done.wait()
    assert isinstance(refused.error, StreamError)
    engine.run_to_end()
    assert [values(run) for run in runs] == [[], [7]]


def test_malformed_rows_may_be_kept_apart_and_counted(tmp_path: Path):
    with hw.connect(runner="inprocess", checkpoint=tmp_path / "kept") as engine:
        engine.sql("CREATE STREAM r (x INT, at INT) SOURCE push(malformed => 'divert') ORDERED BY at IN ORDER")
        run = engine.sql("SELECT x FROM r").start()
        engine.push("r", [(1, 1), ("a", 2), (3, 3)])
        assert run.progress.bad_rows == 1
        engine.run_to_end()
        assert values(run) == [1, 3]
    (bad,) = read_diverted(tmp_path / "kept", "r_bad").rows()
    assert (bad["source"], bad["line"], bad["reason"]) == ("push", 2, 'column "x" is INT, which "a" is not')


@pytest.mark.parametrize("frontier", ["soon", 1.5, True, 2**70, datetime(2026, 1, 1)])
def test_a_frontier_that_is_no_instant_is_refused(engine: hw.Engine, frontier: Any):
    run = engine.sql("SELECT x FROM r").start()
    with pytest.raises(InputError, match="NOT_AN_INSTANT"):
        engine.push("r", [GOOD], frontier=frontier)
    engine.push("r", [GOOD], frontier=9)
    assert run.frontier == 9


def test_a_frontier_of_timestamps_may_be_one(engine: hw.Engine):
    engine.sql("CREATE STREAM s (x INT, at TIMESTAMP) ORDERED BY at")
    run = engine.sql("SELECT x FROM s").start()
    engine.push("s", [], frontier=datetime(2026, 1, 1))
    assert run.frontier == datetime(2026, 1, 1)


def test_pushing_into_what_has_a_source_is_refused(tmp_path: Path, engine: hw.Engine):
    engine.sql(f"CREATE STREAM s (x INT, at INT) SOURCE parquet('{tmp_path}') ORDERED BY at")
    for stream in ("s", "nothing"):
        with pytest.raises(InputError, match="CANNOT_PUSH"):
            engine.push(stream, [GOOD])


@pytest.mark.parametrize("keeps", [False, True])
def test_a_query_that_fails_is_named_and_nothing_of_the_tick_is_taken(keeps: bool):
    """Queries share operators and a clock: one that cannot go on stops all, before anything of the tick is answered."""
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM r (v STRING, at INT) ORDERED BY at IN ORDER")
        other = engine.sql("SELECT v FROM r", name="other").start()
        counted = " GROUP BY v HAVING CAST(MAX(v) AS INT) > 0" if keeps else " WHERE CAST(v AS INT) > 0"
        window = "[RANGE 5]" if keeps else ""
        engine.sql(f"SELECT v FROM r {window}{counted}", name="culprit").start()
        engine.push("r", [{"v": "1", "at": 1}])
        with pytest.raises(HeadwaterError, match='EXPRESSION_FAILED: query "culprit": could not compute') as told:
            engine.push("r", [{"v": "x", "at": 2}, {"v": "2", "at": 30}])
        assert "TRY_CAST gives NULL" in told.value.hint
        assert "nothing of this tick is answered: begin again" in told.value.hint
        with pytest.raises(HeadwaterError, match='query "culprit"'):
            engine.push("r", [{"v": "2", "at": 31}])
        assert other.progress.ticks == 1
        assert "failed" in engine.sql("SHOW QUERIES")


def test_the_others_go_on_as_the_hint_says(tmp_path: Path):
    texts = {"other": "SELECT v FROM r", "culprit": "SELECT CAST(v AS INT) AS n FROM r"}
    for mended in (False, True):
        with hw.connect(runner="inprocess", checkpoint=tmp_path) as engine:
            engine.sql("CREATE STREAM r (v STRING, at INT) ORDERED BY at IN ORDER")
            if mended:
                engine.sql("DROP QUERY culprit")
                texts["culprit"] = "SELECT TRY_CAST(v AS INT) AS n FROM r"
            with engine.held():
                runs = [engine.sql(text, name=name).start() for name, text in texts.items()]
            if not mended:
                engine.push("r", [{"v": "1", "at": 1}])
                with pytest.raises(HeadwaterError, match="To go on from before it, connect with the checkpoint again"):
                    engine.push("r", [{"v": "x", "at": 2}])
                continue
            engine.push("r", [{"v": "x", "at": 2}])
            assert [run.since for run in runs] == [0, 1]
            assert runs[1].history().rows() == [{"n": None, "_start": 2, "_end": 3}]
