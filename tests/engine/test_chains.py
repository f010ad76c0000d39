"""Answers of one engine become final in another, through files, while both run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater import sinks
from headwater.clock.wall import VirtualClock
from headwater.errors import InputError

SECOND = 1_000_000
COUNTED = "SELECT k, COUNT(*) AS n FROM reading WINDOW(RANGE 4{unit}) GROUP BY k CONSISTENCY {level}"
TOTAL = "SELECT SUM(n) AS total FROM counted"


@contextmanager
def producer(folder: Path, kind: str, level: str, *, numbers: bool) -> Iterator[hw.Engine]:
    type_, unit = ("BIGINT", "") if numbers else ("TIMESTAMP", " SECONDS")
    with hw.connect(runner="inprocess", shards=2, checkpoint=folder / "first", clock=VirtualClock()) as engine:
        engine.sql(f"CREATE STREAM reading (k INT, at {type_}) ORDERED BY at DISORDER 0{unit}")
        sink = getattr(sinks, kind)(folder / "answers")
        engine.sql(COUNTED.format(unit=unit, level=level), name="counted").start(sink)
        yield engine


@contextmanager
def consumer(folder: Path, kind: str, *, numbers: bool, checkpoint: bool = True) -> Iterator[tuple[hw.Engine, hw.Run]]:
    place = {"checkpoint": folder / "second"} if checkpoint else {}
    with hw.connect(runner="inprocess", shards=3, clock=VirtualClock(), **place) as engine:
        instants = ", instants => 'numbers'" if numbers else ""
        engine.sql(
            f"CREATE STREAM counted (k INT, n BIGINT) SOURCE {kind}('{folder}/answers', changes => 'headwater'{instants})"
        )
        yield engine, engine.sql(TOTAL, name="total").start()


def push(engine: hw.Engine, numbers: bool, *rows: tuple[int, int]) -> None:
    shown = [(k, at if numbers else f"1970-01-01T00:00:{at:02d}") for k, at in rows]
    engine.push("reading", [{"k": k, "at": at} for k, at in shown])


def total(run: hw.Run, at: int, numbers: bool) -> list[int]:
    return [row["total"] for row in run.snapshot(at=at if numbers else at * SECOND).rows()]


def far(run: hw.Run, numbers: bool) -> int:
    frontier = run._core.deployment[run.name].frontier
    return frontier if numbers else frontier // SECOND


@pytest.mark.parametrize("level", ["STRONG", "MIDDLE"])
@pytest.mark.parametrize(
    ("kind", "numbers"), [("parquet", True), ("parquet", False), ("json", True), ("json", False), ("csv", True)]
)
def test_a_chain_of_two_engines_answers_while_it_runs(kind: str, numbers: bool, level: str, tmp_path: Path):
    with (
        producer(tmp_path, kind, level, numbers=numbers) as first,
        consumer(tmp_path, kind, numbers=numbers) as (second, run),
    ):
        push(first, numbers, (1, 1), (2, 2))
        push(first, numbers, (1, 20))
        second.run_to_end(end_streams=False)
        assert 6 <= far(run, numbers) <= 20
        assert [total(run, at, numbers) for at in (1, 2, 4, 5)] == [[1], [2], [2], [1]]
        push(first, numbers, (2, 30))  # says that more is final, without an answer before it
        push(first, numbers, (2, 40))
        second.run_to_end(end_streams=False)
        assert 30 <= far(run, numbers) <= 40
        assert total(run, 22, numbers) == [1]
        files = len(list((tmp_path / "answers").glob("tick-*")))
        first.run_to_end()
        second.run_to_end(end_streams=False)
        assert total(run, 41, numbers) == [1]
        assert far(run, True) > 10**15, "the stream has ended, and so has the one that reads it"
        assert len(list((tmp_path / "answers").glob("tick-*"))) <= files + 1


def test_the_chain_goes_on_after_restarts(tmp_path: Path):
    frontiers = []
    for i in range(4):
        with producer(tmp_path, "parquet", "STRONG", numbers=True) as first:
            push(first, True, (1, 10 * i + 1))
        with consumer(tmp_path, "parquet", numbers=True) as (second, run):
            second.run_to_end(end_streams=False)
            frontiers.append(far(run, True))
    assert frontiers == sorted(frontiers)
    assert len(set(frontiers)) == 4
    with consumer(tmp_path, "parquet", numbers=True, checkpoint=False) as (second, run):
        second.run_to_end(end_streams=False)
        assert [total(run, at, True) for at in (1, 4, 5, 11, 21)] == [[1], [1], [], [1], [1]]


def test_the_word_holds_only_when_all_files_are_taken(tmp_path: Path):
    """A tick takes one row, so that the record is ahead of what was read for a while."""
    with producer(tmp_path, "parquet", "STRONG", numbers=True) as first:
        for at in range(1, 8):
            push(first, True, (at, 10 * at))
    with hw.connect(runner="inprocess", clock=VirtualClock()) as engine:
        option = "changes => 'headwater', instants => 'numbers', rows_per_tick => 1"
        engine.sql(f"CREATE STREAM counted (k INT, n BIGINT) SOURCE parquet('{tmp_path}/answers', {option})")
        run = engine.sql(TOTAL).start()
        engine.run_to_end(end_streams=False)
        assert engine.progress().late_rows == 0
        assert [total(run, 10 * at, True) for at in range(1, 7)] == [[1]] * 6


def test_a_damaged_record_is_told(tmp_path: Path):
    with producer(tmp_path, "parquet", "STRONG", numbers=True) as first:
        push(first, True, (1, 1), (1, 20))
    record = tmp_path / "answers" / "_headwater.json"
    record.write_text(record.read_text().replace('"frontier": 20', '"frontier": 90'))
    with consumer(tmp_path, "parquet", numbers=True) as (second, _), pytest.raises(InputError, match="ANSWERS_DAMAGED"):
        second.run_to_end(end_streams=False)


def test_answers_hold_nothing_but_rows(tmp_path: Path):
    import pyarrow.parquet as pq

    with producer(tmp_path, "parquet", "STRONG", numbers=True) as first:
        push(first, True, (1, 1), (1, 20))
        push(first, True, (1, 40))
    found: list[dict[str, Any]] = []
    for file in (tmp_path / "answers").glob("*.parquet"):
        found += pq.read_table(file).to_pylist()
    assert found
    assert all(set(row) == {"k", "n", "_start", "_end"} and None not in row.values() for row in found)
