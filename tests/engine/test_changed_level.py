"""The level of consistency of a query that runs is changed between two ticks, and kept over a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.errors import InputError, SqlError

STREAM = "CREATE STREAM s (at INT, x INT) ORDERED BY at DISORDER 5;"
COUNT = "CREATE STREAM counts AS SELECT COUNT(*) AS n FROM s WINDOW(RANGE 3)"
ROWS = [(1, 3, 9), (2, 8, 12), (11, 14), (13, 19, 21), (25,)]


def started(folder: Path | None, level: str) -> tuple[hw.Engine, hw.Run]:
    engine = hw.connect(runner="inprocess", checkpoint=folder, shards=2)
    run = engine.sql(f"{STREAM} {COUNT} CONSISTENCY {level}").start()
    return engine, run


def push(engine: hw.Engine, times: tuple[int, ...]) -> None:
    engine.push("s", [{"at": at, "x": at} for at in times])


def history(run: hw.Run) -> list[tuple[Any, ...]]:
    return sorted((row["_start"], row["_end"], row["n"]) for row in run.history().rows())


@pytest.fixture(scope="module")
def expected() -> list[tuple[Any, ...]]:
    engine, run = started(None, "MIDDLE")
    with engine:
        for times in ROWS:
            push(engine, times)
        engine.run_to_end()
        return history(run)


CHANGES = [
    ["MIDDLE", "STRONG", "MIDDLE", "STRONG", "STRONG"],
    ["MIDDLE", "BLOCK 4 REMEMBER 100", "WEAK REMEMBER 50", "STRONG", "MIDDLE"],
    ["BLOCK 2 REMEMBER 30", "MIDDLE", "BLOCK 9 REMEMBER 90", "MIDDLE", "STRONG"],
]


@pytest.mark.parametrize("levels", CHANGES)
def test_the_answer_stays_right(levels: list[str], expected: list[tuple[Any, ...]]):
    engine, run = started(None, levels[0])
    with engine:
        for times, level in zip(ROWS, levels, strict=True):
            run.set_consistency(level)
            assert str(run.consistency) == level
            push(engine, times)
        engine.run_to_end()
        assert history(run) == expected


@pytest.mark.parametrize("levels", CHANGES)
def test_also_over_restarts(levels: list[str], tmp_path: Path, expected: list[tuple[Any, ...]]):
    seen: dict[tuple[Any, ...], int] = {}
    ticks: set[int] = set()

    def note(batch: Any, tick: int) -> None:
        if tick in ticks:  # after a restart the last one comes again
            return
        ticks.add(tick)
        for row in batch.to_pylist():
            key = (row["_start"], row["_end"] if row["_op"] == "insert" else row["_new_end"], row["n"])
            if row["_op"] != "insert":
                old = (row["_start"], row["_end"], row["n"])
                seen[old] = seen.get(old, 0) - 1
            if key[0] != key[1]:
                seen[key] = seen.get(key, 0) + 1

    for i, (times, level) in enumerate(zip(ROWS, levels, strict=True)):
        engine = hw.connect(runner="inprocess", checkpoint=tmp_path, shards=2 + i % 2)
        run = engine.sql(f"{STREAM} {COUNT} CONSISTENCY {levels[0]}").start(hw.sinks.foreach(note))
        with engine:
            if i:
                assert str(run.consistency) == levels[i - 1]
            engine.sql(f"ALTER QUERY counts SET CONSISTENCY {level}")
            assert str(run.consistency) == level
            push(engine, times)
            if i == len(ROWS) - 1:
                engine.run_to_end()
    assert sorted(key for key, n in seen.items() if n) == expected


def test_strong_from_the_beginning_stays_strong():
    engine, run = started(None, "STRONG")
    with engine:
        push(engine, (1, 2))
        with pytest.raises(InputError, match='query "counts" cannot change from CONSISTENCY STRONG to MIDDLE'):
            run.set_consistency("MIDDLE")
        with pytest.raises(InputError, match="cannot change"):
            engine.sql("DROP STREAM IF EXISTS other; ALTER QUERY counts SET CONSISTENCY MIDDLE")
        assert str(run.consistency) == "STRONG"


def test_what_is_no_level():
    engine, run = started(None, "MIDDLE")
    with engine:
        with pytest.raises(InputError, match='CONSISTENCY: "SURE" is no level of consistency'):
            run.set_consistency("SURE")
        with pytest.raises(SqlError, match='UNKNOWN_QUERY: query "count" does not exist'):
            engine.sql("ALTER QUERY count SET CONSISTENCY MIDDLE")
        with pytest.raises(SqlError, match='SYNTAX: expected QUERY, found "TABLE"'):
            engine.sql("ALTER TABLE counts SET CONSISTENCY MIDDLE")
