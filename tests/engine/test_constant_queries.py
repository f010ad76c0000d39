"""Queries over constants alone, SELECT without FROM and VALUES: their answer is there without any rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw


@pytest.fixture
def engine() -> hw.Engine:
    return hw.connect(runner="inprocess")


def test_the_answer_is_there_when_the_query_has_started(engine: hw.Engine):
    assert engine.sql("SELECT 1 + 1 AS x").start().snapshot().rows() == [{"x": 2}]
    assert engine.sql("VALUES (1, 'a')").start().snapshot().rows() == [{"col1": 1, "col2": "a"}]
    engine.close()


@pytest.mark.parametrize("more", ["", " CONSISTENCY MIDDLE", " EMIT ON CLOSE"])
def test_such_queries_end_by_themselves(engine: hw.Engine, more: str):
    with engine.held():  # nothing can be answered inside, and nobody waits for it
        run = engine.sql(f"SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS v{more}").start()
    assert engine.finite
    engine.run_to_end()
    assert run.snapshot(at=5).rows() == [{"n": 2}]
    engine.close()


def test_a_query_over_a_stream_beside_it_does_not_end(engine: hw.Engine):
    engine.sql("CREATE STREAM s (x INT, at INT) ORDERED BY at")
    one = engine.sql("SELECT 1 AS x").start()
    run = engine.sql("SELECT s.x, one.y FROM s CROSS JOIN (SELECT 5 AS y) AS one").start()
    assert not engine.finite
    engine.push("s", [{"x": 7, "at": 3}], frontier=9)
    assert run.snapshot(at=3).rows() == [{"x": 7, "y": 5}]
    assert one.snapshot().rows() == [{"x": 1}]
    engine.close()


def test_a_restart_does_not_say_it_twice(tmp_path: Path):
    for _ in range(2):
        engine = hw.connect(runner="inprocess", checkpoint=tmp_path / "state")
        engine.sql("SELECT 1 AS x").start(hw.sinks.json(tmp_path / "out"), name="one")
        engine.run_to_end()
        engine.close()
    lines = [line for file in (tmp_path / "out").rglob("*.json*") for line in file.read_text().splitlines() if line]
    assert sum(line.startswith('{"x":1,') for line in lines) == 1, lines
