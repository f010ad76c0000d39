"""The level of consistency of a query that runs is changed between two ticks, and kept over a restart."""

from __future__ import annotations

import io
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
    ["STRONG", "MIDDLE", "MIDDLE", "STRONG", "STRONG"],
    ["STRONG", "STRONG", "BLOCK 4 REMEMBER 100", "STRONG", "MIDDLE"],
    ["STRONG", "WEAK REMEMBER 50", "MIDDLE", "STRONG", "WEAK REMEMBER 60"],
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
            op = row.get("_op", "insert")  # final rows have none, as long as the query was never another than STRONG
            key = (row["_start"], row["_end"] if op == "insert" else row["_new_end"], row["n"])
            if op != "insert":
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


def test_a_strong_query_shows_at_once_what_it_knows_when_it_shall():
    engine, run = started(None, "STRONG")
    with engine:
        push(engine, (1, 2, 9, 10))
        with pytest.raises(InputError, match="NOT_FINAL"):
            run.snapshot(at=10)
        engine.sql("ALTER QUERY counts SET CONSISTENCY MIDDLE")
        push(engine, (10,))
        assert run.snapshot(at=10).rows() == [{"n": 3}]
        assert run.snapshot().rows() == [{"n": 3}]


@pytest.mark.parametrize("before", ["MIDDLE", "BLOCK 2 REMEMBER 90"])
def test_a_query_that_becomes_strong_shows_what_one_shows_that_always_was(before: str):
    """The count over the last three instants: a row of it is open as long as nothing else comes."""
    engine, run = started(None, before)
    strong = engine.sql(COUNT.replace("counts", "others")).start()
    with engine:
        for i, times in enumerate([(1, 3, 9), (2, 8, 12), (11, 20), (40,), (41,), (80,)]):
            push(engine, times)
            if i == 1:
                run.set_consistency("STRONG")
            if i >= 1:
                assert (run.frontier, run.lag) == (strong.frontier, strong.lag)
                assert run.snapshot().rows() == strong.snapshot().rows()
                at = run.frontier - 1
                assert run.snapshot(at=at).rows() == strong.snapshot(at=at).rows()
                with pytest.raises(InputError, match="NOT_FINAL"):
                    run.snapshot(at=at + 1)
        assert str(run.emission) == "ON START"


def test_whole_answers_go_on_as_such():
    engine, run = started(None, "MIDDLE EMIT EVERY 5")
    strong = engine.sql(COUNT.replace("counts", "others") + " EMIT EVERY 5").start()
    with engine:
        for i, times in enumerate([(1, 3, 9), (2, 8, 12), (11, 20), (27,), (28,), (80,)]):
            push(engine, times)
            if i == 1:
                run.set_consistency("STRONG")
            if i > 1:
                assert run.snapshot().rows() == strong.snapshot().rows()
                assert (run.frontier, run.lag) == (strong.frontier, strong.lag)
        assert str(run.emission) == "EVERY 5"


@pytest.mark.parametrize("form", ["", "EMIT ON START", "EMIT ON CLOSE"])
def test_its_frontier_is_what_is_known_in_every_form(form: str, tmp_path: Path):
    """It is strong, another one, and strong again, in the form that it had; also over a restart."""
    text = "CREATE STREAM counts AS SELECT COUNT(*) AS n FROM s WINDOW(RANGE 50)"
    engine = hw.connect(runner="inprocess", checkpoint=tmp_path)
    with engine:
        run = engine.sql(f"{STREAM} {text} {form}").start()
        shown = run.emission
        for i, level in enumerate(["STRONG", "MIDDLE", "STRONG"]):
            run.set_consistency(level)
            push(engine, (10 + 10 * i,))
        assert (run.frontier, run.emission) == (25, shown)
    engine = hw.connect(runner="inprocess", checkpoint=tmp_path)
    with engine:
        run = engine.sql(f"{STREAM} {text} {form}").start()
        assert (run.frontier, run.emission) == (25, shown)
        push(engine, (40,))
        assert (run.frontier, run.lag) == (35, 5)


def test_equal_queries_that_share_their_state_do_not_notice(expected: list[tuple[Any, ...]]):
    engine = hw.connect(runner="inprocess", shards=2)
    first = engine.sql(f"{STREAM} {COUNT}").start()
    second = engine.sql(COUNT.replace("counts", "others")).start()
    with engine:
        push(engine, ROWS[0])
        first.set_consistency("MIDDLE")
        for times in ROWS[1:]:
            push(engine, times)
        engine.run_to_end()
        assert history(first) == history(second) == expected


def test_after_a_restart_before_the_next_tick(tmp_path: Path):
    """The last tick comes again as it was, in final rows; from then on there is a changelog."""
    formats: list[tuple[int, bool]] = []

    def note(batch: Any, tick: int) -> None:
        formats.append((tick, "_op" in batch.column_names))

    def start(shards: int, level: str) -> tuple[hw.Engine, hw.Run]:
        engine = hw.connect(runner="inprocess", checkpoint=tmp_path, shards=shards)
        return engine, engine.sql(f"{STREAM} {COUNT} CONSISTENCY {level}").start(hw.sinks.foreach(note))

    engine, run = start(2, "STRONG")
    with engine:
        push(engine, ROWS[0])
        push(engine, ROWS[1])
        run.set_consistency("MIDDLE")
    engine, run = start(3, "STRONG")
    with engine:
        assert str(run.consistency) == "MIDDLE"
        push(engine, ROWS[2])
    assert formats[-2:] == [(2, False), (3, True)]
    engine, run = start(1, "STRONG")
    with engine:
        push(engine, ROWS[3])
    assert formats[-2:] == [(3, True), (4, True)]


def test_another_level_that_is_asked_for_when_it_starts_again(tmp_path: Path):
    engine, run = started(tmp_path, "STRONG")
    with engine:
        push(engine, ROWS[0])
    engine, run = started(tmp_path, "MIDDLE")
    with engine:
        assert run.since == 0
        push(engine, ROWS[1])
        newest = max(ROWS[1])
        assert run.snapshot(at=newest).rows() == [{"n": 1}]


@pytest.mark.parametrize("sink", ["parquet", "csv", "json"])
def test_files_of_final_rows_stay_files_of_final_rows(sink: str, tmp_path: Path):
    engine = hw.connect(runner="inprocess")
    query = engine.sql(f"{STREAM} {COUNT}")
    run = query.start(getattr(hw.sinks, sink)(tmp_path / "answers"))
    with engine:
        push(engine, ROWS[0])
        message = 'query "counts" cannot change from CONSISTENCY STRONG to MIDDLE'
        with pytest.raises(InputError, match=message) as problem:
            run.set_consistency("MIDDLE")
        assert f'Its sink "{sink}" has got final rows only' in str(problem.value)
        with pytest.raises(InputError, match=message):
            engine.sql("DROP STREAM IF EXISTS other; ALTER QUERY counts SET CONSISTENCY MIDDLE")
        assert str(run.consistency) == "STRONG"
        run.set_consistency("STRONG")
        push(engine, ROWS[1])


def test_a_column_with_the_name_of_one_of_a_changelog():
    engine = hw.connect(runner="inprocess")
    run = engine.sql(f"{STREAM} SELECT x AS _op FROM s").start(name="odd")
    with engine, pytest.raises(InputError, match='column "_op" of "odd" would be in the output twice'):
        run.set_consistency("MIDDLE")


def test_the_console_says_rows_and_then_changes():
    out = io.StringIO()
    engine = hw.connect(runner="inprocess")
    run = engine.sql(f"{STREAM} {COUNT} EMIT ON CLOSE").start(hw.sinks.console(file=out, form="lines"))
    with engine:
        push(engine, ROWS[0])
        run.set_consistency("MIDDLE")
        push(engine, ROWS[1])
    first, second = (line for line in out.getvalue().splitlines() if line.startswith("counts"))
    assert " row" in first
    assert " change" in second


def test_what_is_no_level():
    engine, run = started(None, "MIDDLE")
    with engine:
        with pytest.raises(InputError, match='CONSISTENCY: "SURE" is no level of consistency'):
            run.set_consistency("SURE")
        with pytest.raises(SqlError, match='UNKNOWN_QUERY: query "count" does not exist'):
            engine.sql("ALTER QUERY count SET CONSISTENCY MIDDLE")
        with pytest.raises(SqlError, match='SYNTAX: expected QUERY, found "TABLE"'):
            engine.sql("ALTER TABLE counts SET CONSISTENCY MIDDLE")
