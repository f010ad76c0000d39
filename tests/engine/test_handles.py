"""Running queries have names by which SQL finds them; and what has ended still tells what was known last."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import headwater as hw
from headwater.errors import InputError, SqlError

COUNTS = "SELECT x, COUNT(*) AS n FROM r [RANGE 10] GROUP BY x"


@pytest.fixture
def engine() -> Iterator[hw.Engine]:
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM r (x INT, at INT) ORDERED BY at DISORDER 2")
        yield engine


def shown(engine: hw.Engine, like: str = "%") -> dict[str, dict[str, str]]:
    """What SHOW QUERIES says, by query."""
    head, rule, *rows = engine.sql(f"SHOW QUERIES LIKE '{like}'").splitlines()
    starts = [i for i in range(len(rule)) if rule[i] == "-" and (i == 0 or rule[i - 1] == " ")]
    cut = [slice(a, b) for a, b in zip(starts, [*starts[1:], None], strict=True)]
    table = [[line[c].strip() for c in cut] for line in (head, *rows)]
    return {row[0]: dict(zip(table[0], row, strict=True)) for row in table[1:]}


# -- names ------------------------------------------------------------------------------------------------------------


def test_selects_get_names_so_that_several_can_run(engine: hw.Engine):
    first, second, third = (engine.sql(f"SELECT x FROM r WHERE x > {i}").start() for i in range(3))
    assert [run.name for run in (first, second, third)] == ["query", "query_2", "query_3"]
    second.stop()
    assert engine.sql("SELECT x FROM r").start().name == "query_2"
    assert engine.sql("SELECT x FROM r", name="mine").start().name == "mine"
    with pytest.raises(InputError, match='QUERY_RUNS: a query "mine" runs already'):
        engine.sql("SELECT x FROM r", name="Mine").start()
    assert sorted(engine.runs) == ["mine", "query", "query_2", "query_3"]


def test_a_generated_name_is_not_that_of_a_stream_defined_by_a_query(engine: hw.Engine):
    engine.sql("CREATE STREAM query AS SELECT x FROM r")
    assert engine.sql("SELECT x FROM r").start().name == "query_2"


def test_after_a_restart_the_same_selects_go_on(tmp_path: Path):
    for turn in range(2):
        with hw.connect(runner="inprocess", checkpoint=tmp_path / "kept") as engine:
            engine.sql("CREATE STREAM r (x INT, at INT) ORDERED BY at DISORDER 2")
            with engine.held():
                runs = [engine.sql(text).start() for text in (COUNTS, "SELECT x FROM r")]
            assert [run.name for run in runs] == ["query", "query_2"]
            engine.push("r", [(1, 10 * turn + 5)])
            assert [run.since for run in runs] == [0, 0]


# -- SHOW QUERIES -----------------------------------------------------------------------------------------------------


def test_show_queries_tells_what_runs_and_how_far_it_is(engine: hw.Engine):
    engine.sql("CREATE STREAM counts AS " + COUNTS)
    engine.sql("CREATE VIEW some AS SELECT x FROM r WHERE x > 1")
    assert {name: q["state"] for name, q in shown(engine).items()} == {"counts": "not started", "some": "view"}
    engine.sql("SELECT x FROM r CONSISTENCY MIDDLE").start()
    engine.push("r", [(1, 3), (2, 20)])
    engine.sql("SELECT * FROM counts", name="late").start()
    found = shown(engine)
    assert list(found) == ["counts", "some", "query", "late"]
    query = found["query"]
    assert (query["state"], query["consistency"], query["since"]) == ("running", "MIDDLE", "the beginning")
    assert (query["rows"], query["behind"], query["final before"]) == ("2", "2", "18")
    assert (found["late"]["since"], found["late"]["final before"]) == ("tick 1", "-")
    assert found["counts"]["final before"] == "-"
    assert list(shown(engine, "q%")) == ["query"]
    engine.run_to_end()
    assert shown(engine)["query"]["final before"] == "the end"


def test_show_queries_tells_in_which_form_rows_leave(engine: hw.Engine):
    engine.sql("CREATE STREAM counts AS " + COUNTS)
    engine.sql("CREATE STREAM closed AS " + COUNTS + " EMIT ON CLOSE")
    engine.sql("CREATE VIEW some AS SELECT x FROM r WHERE x > 1")
    counts = engine.sql("SELECT * FROM counts")
    # One definition may run with several sinks, each under a name of its own and in the form that suits its sink.
    runs = [counts.start(hw.sinks.memory(), name="kept"), counts.start(hw.sinks.foreach(print), name="told")]
    texts = {
        "now_and_then": " EMIT EVERY 5",
        "early": " CONSISTENCY MIDDLE",
        "both": " CONSISTENCY MIDDLE EMIT EVERY 5",
    }
    runs += [engine.sql(COUNTS + text, name=name).start() for name, text in texts.items()]
    expected = {"counts": "by sink", "closed": "ON CLOSE", "some": "-", "kept": "ON START", "told": "ON CLOSE"}
    expected |= {"now_and_then": "EVERY 5", "early": "at once", "both": "EVERY 5"}
    assert {name: q["emit"] for name, q in shown(engine).items()} == expected
    assert [str(run.emission) for run in runs] == ["ON START", "ON CLOSE", "EVERY 5", "None", "EVERY 5"]
    runs[0].set_consistency("MIDDLE")
    assert (shown(engine)["kept"]["emit"], runs[0].emission) == ("at once", None)
    runs[0].set_consistency("STRONG")
    assert shown(engine)["kept"]["emit"] == "ON START"


def test_show_queries_tells_of_queries_that_the_checkpoint_waits_for(tmp_path: Path):
    for awaited in (False, True):
        with hw.connect(runner="inprocess", checkpoint=tmp_path / "kept") as engine:
            engine.sql("CREATE STREAM r (x INT, at INT) ORDERED BY at DISORDER 2")
            if not awaited:
                engine.sql(COUNTS, name="a").start()
                engine.push("r", [(1, 30)])
                continue
            waits = shown(engine)["a"]
            assert (waits["state"], waits["emit"], engine.awaited) == ("awaited", "ON START", ("a",))
            engine.sql("DROP QUERY a")
            assert (shown(engine), engine.awaited) == ({}, ())


# -- ALTER, EXPLAIN, DESCRIBE -----------------------------------------------------------------------------------------


def test_sql_finds_a_running_query_by_its_name(engine: hw.Engine):
    run = engine.sql(COUNTS).start()
    engine.push("r", [(1, 3)])
    engine.sql("ALTER QUERY Query SET CONSISTENCY MIDDLE")
    assert str(run.consistency) == "MIDDLE"
    assert shown(engine)["query"]["consistency"] == "MIDDLE"
    assert "r" in engine.sql("EXPLAIN HEARTBEAT query")
    assert "Aggregate" in engine.sql("EXPLAIN query")
    assert "BIGINT" in engine.sql("DESCRIBE QUERY query")
    with pytest.raises(SqlError, match='UNKNOWN_QUERY: query "quarry" does not exist') as told:
        engine.sql("ALTER QUERY quarry SET CONSISTENCY MIDDLE")
    assert "query" in told.value.hint


def test_a_query_started_under_another_name_is_found_by_both(engine: hw.Engine):
    engine.sql("CREATE STREAM counts AS " + COUNTS)
    run = engine.sql("CREATE STREAM other AS SELECT x FROM r", name="mine").start()
    engine.sql("ALTER QUERY other SET CONSISTENCY MIDDLE")
    assert str(run.consistency) == "MIDDLE"
    engine.sql("ALTER QUERY mine SET CONSISTENCY WEAK")
    assert "WEAK" in str(run.consistency)
    engine.sql("DROP STREAM other")
    assert not run.running


# -- DROP -------------------------------------------------------------------------------------------------------------


def test_drop_query_ends_what_runs_and_leaves_the_definition(engine: hw.Engine):
    engine.sql("CREATE STREAM counts AS " + COUNTS)
    runs = [
        engine.sql("SELECT * FROM counts").start(),
        engine.script("CREATE STREAM more AS SELECT x FROM r").queries[0].start(),
    ]
    with pytest.raises(SqlError, match="UNKNOWN_STREAM") as told:
        engine.sql("DROP STREAM query")
    assert told.value.hint == "A query of that name runs; to end it: DROP QUERY query;"
    engine.sql("DROP QUERY query; DROP QUERY MORE")
    assert not any(run.running for run in runs)
    assert {name: q["state"] for name, q in shown(engine).items()} == {"counts": "not started", "more": "not started"}
    with pytest.raises(SqlError, match='UNKNOWN_QUERY: no query "more" runs') as told:
        engine.sql("DROP QUERY more")
    assert told.value.hint == "To drop what it is defined by: DROP STREAM more;"
    engine.sql("DROP QUERY IF EXISTS more; DROP STREAM more")


def test_a_mistake_after_drop_query_ends_nothing(engine: hw.Engine):
    run = engine.sql(COUNTS).start()
    with pytest.raises(SqlError):
        engine.sql("DROP QUERY query; SELECT nothing FROM r")
    assert run.running
    engine.sql("DROP QUERY query; DROP STREAM r")
    assert not run.running


# -- what has ended ---------------------------------------------------------------------------------------------------


def test_what_has_ended_tells_what_was_known_last(engine: hw.Engine):
    run = engine.sql(COUNTS).start()
    engine.push("r", [(1, 3), (1, 20)])
    before = (run.frontier, run.lag, run.since, run.consistency, run.progress.rows_out, run.snapshot(at=5).rows())
    run.stop()
    other = engine.sql("SELECT x FROM r").start()
    assert other.name == run.name == "query"
    engine.push("r", [(1, 100)])
    after = (run.frontier, run.lag, run.since, run.consistency, run.progress.rows_out, run.snapshot(at=5).rows())
    assert after == before
    assert (run.running, other.running) == (False, True)
    assert str(run.progress).startswith("query: ")
    run.stop()  # the other one goes on
    assert other.running
    with pytest.raises(InputError, match='NOT_RUNNING: query "query" has ended'):
        run.set_consistency("MIDDLE")
    assert other.frontier == 98


def test_what_a_closed_engine_ran_tells_what_was_known_last():
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM r (x INT, at TIMESTAMP) ORDERED BY at DISORDER 2 SECONDS")
        run = engine.sql("SELECT x FROM r").start()
        engine.push("r", [(1, datetime(1970, 1, 1, 0, 0, 10))])
    assert run.lag == run.progress.lag == timedelta(seconds=2)
    assert run.snapshot().rows() == []
