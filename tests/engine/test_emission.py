"""Final means known, not closed: what shows when, in the three forms, and into every sink."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import headwater as hw
from headwater.algebra import nodes as n
from headwater.clock.wall import VirtualClock
from headwater.errors import InputError, SqlError
from headwater.language.emission import Form
from headwater.model.delta import Delta
from headwater.model.element import Stable
from headwater.model.history import History
from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.stepping import Stepped, StepRunner
from headwater.testing import plans
from headwater.testing.cases import scaled
from headwater.testing.checks import rounded
from headwater.testing.choices import Dice
from headwater.testing.generate import cut, streams, whole
from headwater.testing.shape import sources

STREAM = "CREATE STREAM s (k INT, t BIGINT) ORDERED BY t DISORDER 10;"
QUIET = "SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE 3600) GROUP BY k"
LAST = "SELECT k, t FROM s [PARTITION BY k ROWS 1]"
SESSIONS = """SELECT k, window_end, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(t), 100)
              GROUP BY k, window_start, window_end"""
ANSWERS = {QUIET: [(1, 1), (2, 29)], LAST: [(1, 0), (2, 1740)], SESSIONS: [(1, 100, 1)]}


def feed(engine: hw.Engine) -> None:
    """One row of key 1 at 0, then one of key 2 every minute for half an hour; final before 1790."""
    engine.push("s", [{"k": 1, "t": 0}])
    for minutes in (range(1, 11), range(11, 31)):
        engine.push("s", [{"k": 2, "t": 60 * m} for m in minutes])


def started(query: str, sink: Any = None, **options: Any) -> tuple[hw.Engine, hw.Run]:
    engine = hw.connect(runner="inprocess", **options)
    return engine, engine.sql(f"{STREAM} {query}", name="q").start(sink)


def rows(result: hw.Result) -> list[tuple]:
    return sorted((tuple(row.values()) for row in result.rows()), key=str)


@pytest.mark.parametrize("query", ANSWERS)
@pytest.mark.parametrize("shards", [1, 3])
def test_what_is_known_shows_in_memory(query: str, shards: int):
    engine, run = started(query, shards=shards)
    with engine:
        feed(engine)
        assert rows(run.snapshot()) == ANSWERS[query]
        assert run.lag <= 10
        assert run.frontier >= 1790
        assert run.progress.frontier == run.frontier


@pytest.mark.parametrize("query", ANSWERS)
def test_the_answer_is_known_as_far_in_every_form(query: str):
    engine = hw.connect(runner="inprocess", shards=2)
    engine.sql(STREAM)
    with engine:
        runs = [engine.sql(f"{query} EMIT {form}", name=form).start() for form in ("ON START", "ON CLOSE")]
        feed(engine)
        assert runs[0].frontier == runs[1].frontier >= 1790
        assert runs[0].lag == runs[1].lag
        engine.run_to_end()
        assert rows(runs[0].history()) == rows(runs[1].history())


@pytest.mark.parametrize("query", [QUIET, LAST])
def test_what_is_known_but_not_closed_is_not_called_open(query: str):
    engine, run = started(f"{query} EMIT ON CLOSE")
    with engine:
        feed(engine)
        assert run.frontier == 1790
        with pytest.raises(InputError, match=r"not here yet: its rows come when they have an end(?s:.*)EMIT ON START"):
            run.snapshot(at=1789)


def test_nothing_before_the_frontier_ever_changes():
    engine, run = started(QUIET)
    with engine:
        engine.push("s", [{"k": 1, "t": 0}])
        before = {}
        for minute in range(1, 80):
            engine.push("s", [{"k": 2, "t": 60 * minute}])
            before[run.frontier - 1] = rows(run.snapshot())
        assert before == {at: rows(run.snapshot(at)) for at in before}
        assert before[4729] == [(2, 60)], "key 1 has left, its end was not known when it was shown"


@pytest.mark.parametrize("query", [
    "SELECT k, window_end, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(t), 100) GROUP BY k, window_start, window_end",
    """SELECT a.k, a.n, b.most FROM
       (SELECT k, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(t), 100) GROUP BY k) a JOIN
       (SELECT k, MAX(t) AS most FROM TUMBLE(TABLE s, DESCRIPTOR(t), 100) GROUP BY k) b ON a.k = b.k""",
])  # fmt: skip
def test_windows_that_are_over_show_with_both_ends(query: str):
    found: list[dict[str, Any]] = []
    engine, run = started(
        f"{query} EMIT ON START", hw.sinks.foreach(lambda table, tick: found.extend(table.to_pylist()))
    )
    with engine:
        feed(engine)
        assert run.frontier == 1800
        assert {(row["_op"], row["_end"] - row["_start"]) for row in found} == {("insert", 100)}
        assert max(row["_start"] for row in found) == 1700
        assert "as soon as these are known" in run.query.explain()


def test_a_time_out_shows_the_last_window():
    clock = VirtualClock()
    engine = hw.connect(runner="inprocess", clock=clock)
    with engine:
        engine.sql("CREATE STREAM s (k INT, t BIGINT) ORDERED BY t DISORDER 10 TIMEOUT 30 SECONDS")
        run = engine.sql(QUIET).start()
        engine.push("s", [{"k": 1, "t": 5}, {"k": 1, "t": 20}])
        assert rows(run.snapshot()) == [(1, 1)]
        clock.advance(31_000_000)
        engine.run_to_end(end_streams=False)
        assert rows(run.snapshot()) == [(1, 2)]


@pytest.mark.parametrize("seed", range(scaled(30)))
def test_as_much_is_known_in_both_forms_of_random_plans(seed: int):
    """Tick by tick, over shards and levels: the frontier on start is what is known on close, and the history is one."""
    dice = Dice(seed, 191)
    plan = plans.plan(dice, depth=dice.integer(2, 4))
    runner = StepRunner(
        [Stepped("close", plan), Stepped("start", plan, opens=True)], shards=dice.pick([1, 2, 5]), portion=4
    )
    given = {name: cut(dice, part, 4) for name, part in streams(dice, plan).items()}
    frontiers = {s.name: BEGINNING for s in sources(plan)}
    said: dict[str, list[Delta]] = {"close": [], "start": []}
    for i in range(5):
        parts = {s.name: given[s.name][i] if i < 4 else [Stable(INFINITY)] for s in sources(plan)}
        for name, part in parts.items():
            frontiers[name] = max([frontiers[name], *(e.at for e in part if isinstance(e, Stable))])
        steps = runner.tick({s.name: whole(s.schema, parts[s.name]) for s in sources(plan)}, dict(frontiers))
        assert runner.known["close"] == runner.known["start"] == steps["start"].frontier >= steps["close"].frontier
        for name, (delta, _) in steps.items():
            said[name].append(rounded(delta))
        known = runner.known["start"]
        assert _until(said["close"], plan, steps["close"].frontier) == _until(
            said["start"], plan, steps["close"].frontier
        )
    assert known == INFINITY
    assert History.of(plan.schema, said["close"]) == History.of(plan.schema, said["start"])


def _until(said: list[Delta], plan: n.Plan, instant: int) -> History:
    return History.of(plan.schema, said).until(instant)


# -- into every sink --------------------------------------------------------------------------------------------------


def changes(table: pa.Table) -> list[tuple]:
    names = ["_op", "k", "_start", "_end", "_new_end"]
    return [tuple(row[n] for n in names) for row in table.to_pylist() if row["k"] == 1]


def test_a_function_gets_closed_rows_or_starts_and_ends():
    closed: list[pa.Table] = []
    opened: list[pa.Table] = []
    engine, _ = started(QUIET, hw.sinks.foreach(lambda table, tick: closed.append(table)))
    with engine:
        engine.sql(f"{QUIET} EMIT ON START", name="opened").start(
            hw.sinks.foreach(lambda table, tick: opened.append(table))
        )
        feed(engine)
        assert [row for table in closed for row in table.to_pylist() if row["k"] == 1] == []
        assert changes(pa.concat_tables(opened)) == [("insert", 1, 0, None, None)]
        engine.push("s", [{"k": 2, "t": 3700}])
        assert changes(pa.concat_tables(opened))[1:] == [("adjust", 1, 0, None, 3600)]
        assert [row for table in closed for row in table.to_pylist() if row["k"] == 1] == [
            {"k": 1, "n": 1, "_start": 0, "_end": 3600}
        ]


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "delta"])
def test_files_take_closed_rows_unless_they_are_told(form: str, tmp_path: Path):
    if form == "delta":
        pytest.importorskip("deltalake")
    make = getattr(hw.sinks, form)
    engine, _ = started(QUIET, make(tmp_path / "closed"))
    with engine:
        engine.sql(f"{LAST} EMIT ON START", name="opened").start(make(tmp_path / "opened"))
        engine.sql(f"{SESSIONS}", name="sessions").start(make(tmp_path / "sessions"))
        feed(engine)
    closed, opened, sessions = (read(form, tmp_path / name) for name in ("closed", "opened", "sessions"))
    assert {row["k"] for row in closed} == {2}, "the row of key 1 has no end yet"
    assert "_op" not in closed[0]
    assert [(row["_op"], row["t"]) for row in opened if row["k"] == 1] == [("insert", 0)]
    assert [row["_op"] for row in opened if row["t"] == 120] == ["insert"], "both ends in one tick are one row"
    assert [(row["k"], row["n"], row["_start"]) for row in sessions] == [(1, 1, 100)], (
        "a session never ends: it is closed"
    )
    if form != "delta":
        record = json.loads((tmp_path / "closed" / "_headwater.json").read_text())
        assert record["frontier"] == 0, "all rows that start before are delivered: the row of key 1 is not"


@pytest.mark.parametrize("sink", ["foreach", "parquet", "csv", "json", "delta"])
@pytest.mark.parametrize("form", ["ON START", "ON CLOSE", "EVERY 600"])
def test_every_case_in_every_form_into_every_sink(form: str, sink: str, tmp_path: Path):
    """What a reader of the sink makes of it: the answer as far as it is known, or as far as it is closed."""
    if sink == "delta":
        pytest.importorskip("deltalake")
    got: dict[str, list[dict[str, Any]]] = {query: [] for query in ANSWERS}
    runs: dict[str, hw.Run] = {}
    with hw.connect(runner="inprocess", shards=2) as engine:
        engine.sql(STREAM)
        for i, query in enumerate(ANSWERS):
            into = hw.sinks.foreach(lambda table, tick, query=query: got[query].extend(table.to_pylist()))
            into = into if sink == "foreach" else getattr(hw.sinks, sink)(tmp_path / str(i))
            runs[query] = engine.sql(f"{query} EMIT {form}", name=f"q{i}").start(into)
        feed(engine)
        assert {run.frontier >= 1790 for run in runs.values()} == {True}, "known as far, whatever has been delivered"
    if sink != "foreach":
        got = {query: read(sink, tmp_path / str(i)) for i, query in enumerate(ANSWERS)}
    match form:
        case "ON START":
            assert {query: valid_at(1789, rows) for query, rows in got.items()} == ANSWERS
        case "ON CLOSE":
            assert [(r["k"], r["_start"]) for query in (QUIET, LAST) for r in got[query] if r["k"] == 1] == []
            assert [(r["k"], r["window_end"], r["n"], r["_end"]) for r in got[SESSIONS]] == [(1, 100, 1, None)]
        case _:
            assert valid_at(1200, got[QUIET]) == [(1, 1), (2, 20)]
            assert valid_at(1200, got[LAST]) == [(1, 0), (2, 1200)]
            assert valid_at(1200, got[SESSIONS]) == [(1, 100, 1)]


def valid_at(instant: int, rows: list[dict[str, Any]]) -> list[tuple]:
    """Of a changelog or of closed rows: what is valid then."""
    ends: dict[tuple, Any] = {}
    for row in sorted(rows, key=lambda row: row.get("_tick", 0)):
        values = tuple(v for name, v in row.items() if not name.startswith("_"))
        ends[values, row["_start"]] = row["_new_end"] if row.get("_op") == "adjust" else row["_end"]
    open_ = INFINITY
    return sorted(v for (v, start), end in ends.items() if start <= instant < (open_ if end in (None, "") else end))


def read(form: str, folder: Path) -> list[dict[str, Any]]:
    if form == "delta":
        from deltalake import DeltaTable

        return DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    files = [ds.dataset(str(file), format=form) for file in sorted(folder.glob("tick-*"))]
    return [row for file in files for row in file.to_table().to_pylist()]


def test_the_console_shows_what_is_known():
    out = io.StringIO()
    engine, _ = started(QUIET, hw.sinks.console(file=out, form="lines", rows=1000))
    with engine:
        feed(engine)
        assert "+ k=1 n=1 [0, infinity)" in out.getvalue()
        engine.push("s", [{"k": 2, "t": 3700}])
        assert "~ k=1 n=1 [0, infinity) -> 3600" in out.getvalue()


def test_a_notice_where_rows_may_wait_for_long():
    engine, run = started(LAST, hw.sinks.noop())
    with engine:
        (notice,) = (n for n in run.notices if n.code == "WAITS_FOR_ENDS")
        assert "which they may never have (EMIT ON CLOSE)" in notice.message
        assert "write EMIT ON START" in notice.hint
        for query in (f"{LAST} EMIT ON START", f"{LAST} EMIT EVERY 60", QUIET, SESSIONS):
            notices = engine.sql(query, name=query).start(hw.sinks.noop()).notices
            assert "WAITS_FOR_ENDS" not in [n.code for n in notices]
        engine.sql("CREATE STREAM r (k INT, at TIMESTAMP) ORDERED BY at")
        long = engine.sql("SELECT COUNT(*) AS n FROM r [RANGE 1 HOUR]", name="long").start(hw.sinks.noop())
        assert any("may not have for 1 HOUR" in n.message for n in long.notices)


def test_a_sink_that_takes_one_form_only():
    sink = hw.sinks.noop()
    sink.forms = (Form.CLOSE,)
    with pytest.raises(InputError, match=r"EMIT: the sink .* cannot take EMIT ON START"):
        started(f"{QUIET} EMIT ON START", sink)


# -- whole answers ----------------------------------------------------------------------------------------------------


def test_the_whole_answer_now_and_then():
    engine, run = started(f"{QUIET} EMIT EVERY 600")
    with engine:
        feed(engine)
        rows = [(r["k"], r["n"], r["_start"], r["_end"]) for r in run.sink.table().to_pylist()]
        assert sorted(rows) == [
            (1, 1, 0, 600),
            (1, 1, 600, 1200),
            (1, 1, 1200, 1800),
            (2, 10, 600, 1200),
            (2, 20, 1200, 1800),
        ]
        engine.push("s", [{"k": 2, "t": 3000}])
        assert {r["_start"] for r in run.sink.table().to_pylist()} == {0, 600, 1200, 1800, 2400}


@pytest.mark.parametrize("shards", [1, 3])
def test_what_never_ends_is_shown_once_more_when_the_streams_have_ended(shards: int):
    engine, run = started("SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k EMIT EVERY 600", shards=shards)
    with engine:
        feed(engine)
        engine.run_to_end()
        last = [(r["k"], r["n"]) for r in run.sink.table().to_pylist() if r["_start"] == 1800]
        assert sorted(last) == [(1, 1), (2, 30)]
        assert max(r["_start"] for r in run.sink.table().to_pylist()) == 1800


def test_whole_answers_as_early_as_they_are_seen():
    engine, run = started(f"{QUIET} CONSISTENCY MIDDLE EMIT EVERY 600")
    with engine:
        feed(engine)
        assert (2, 30, 1800, 2400) in [tuple(r.values()) for r in run.sink.table().to_pylist()]


# -- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("EMIT ON CHANGE", "SYNTAX"),
        ("EMIT EVERY 0", "EMIT"),
        ("EMIT EVERY -5", "TIME_BOUND"),
        ("EMIT EVERY 5 SECONDS", "TIME_UNIT"),
        ("EMIT ON START CONSISTENCY MIDDLE", "EMIT"),
        ("CONSISTENCY WEAK EMIT ON CLOSE", "EMIT"),
    ],
)
def test_clauses_that_are_refused(clause: str, code: str):
    with hw.connect(runner="inprocess") as engine, pytest.raises(SqlError, match=f"^{code}:"):
        engine.sql(f"{STREAM} {QUIET} {clause}")


def test_timestamps_need_a_unit():
    with hw.connect(runner="inprocess") as engine, pytest.raises(SqlError, match="TIME_UNIT: EMIT EVERY needs a unit"):
        engine.sql("CREATE STREAM s (t TIMESTAMP) ORDERED BY t; SELECT COUNT(*) AS n FROM s EMIT EVERY 5")


def test_a_table_may_be_called_emit():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"{STREAM} CREATE STREAM r (k INT, t BIGINT) ORDERED BY t")
        query = engine.sql("SELECT emit.k FROM s JOIN r emit ON emit.k = s.k EMIT ON START")
        assert str(query.emission) == "ON START"


# -- restarts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["", "EMIT ON CLOSE", "EMIT ON START", "EMIT EVERY 600"])
def test_a_query_goes_on_in_its_form(form: str, tmp_path: Path):
    brought = [{"k": 1 + (m % 7 > 0), "t": 60 * m} for m in range(60)]

    def answer(checkpoint: Path, *, restarts: bool) -> list[str]:
        found: dict[int, pa.Table] = {}
        engine = None
        for i in range(0, 60, 6):
            if engine is None or restarts:
                if engine is not None:
                    engine.close()
                sink = hw.sinks.foreach(lambda table, tick: found.update({tick: table}))
                engine, run = started(f"{QUIET} {form}", sink, checkpoint=checkpoint, shards=1 + i % 4)
            engine.push("s", brought[i : i + 6])
        assert run.frontier == (3600 if "EVERY" in form else 3530)
        engine.run_to_end()
        engine.close()
        return sorted(str({n: v for n, v in r.items() if n != "_tick"}) for t in found.values() for r in t.to_pylist())

    assert answer(tmp_path / "a", restarts=True) == answer(tmp_path / "b", restarts=False)


def test_another_form_under_the_same_checkpoint_is_refused(tmp_path: Path):
    engine, _ = started(f"{QUIET} EMIT ON START", checkpoint=tmp_path)
    with engine:
        feed(engine)
    with hw.connect(runner="inprocess", checkpoint=tmp_path) as engine:
        engine.sql(STREAM)
        for other in ("EMIT ON CLOSE", "EMIT EVERY 600"):
            with pytest.raises(InputError, match=f"OTHER_FORM: .*{other}: under the checkpoint it has EMIT ON START"):
                engine.sql(f"{QUIET} {other}", name="q").start()
        assert engine.sql(QUIET, name="q").start().frontier == 1790


def test_a_query_that_became_strong_goes_on(tmp_path: Path):
    for level in ("MIDDLE", "STRONG", "STRONG"):
        engine, run = started(f"{QUIET} CONSISTENCY {level}", checkpoint=tmp_path)
        with engine:
            assert run.since == 0
            feed(engine) if level == "MIDDLE" else engine.push("s", [{"k": 2, "t": 1900}])


def test_on_start_then_as_early_as_possible_and_back():
    engine, run = started(QUIET)
    with engine:
        feed(engine)
        run.set_consistency("MIDDLE")
        engine.push("s", [{"k": 2, "t": 1860}])
        assert rows(run.snapshot()) == [(1, 1), (2, 31)]
        run.set_consistency("STRONG")
        engine.push("s", [{"k": 2, "t": 9000}])
        assert rows(run.snapshot(3599))[0] == (1, 1)
        engine.run_to_end()


# -- state ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["", "EMIT ON CLOSE", "CONSISTENCY MIDDLE"])
def test_groups_of_sessions_are_forgotten_when_they_are_over(level: str):
    calls = "COUNT(*) AS n, MAX(t) AS most, MEDIAN(t) AS middle, COUNT(DISTINCT t) AS times"
    query = SESSIONS.replace("COUNT(*) AS n", calls)
    engine, run = started(f"{query} {level}", hw.sinks.noop())
    with engine:
        kept = []
        for i in range(60):
            engine.push("s", [{"k": i % 3, "t": 300 * i + j} for j in range(3)])
            kept.append(run.progress.state_rows)
        assert run.progress.rows_out >= 59
        assert max(kept[30:]) <= max(kept[:30]), "the state does not grow"


def test_no_notice_where_nothing_is_kept():
    with hw.connect(runner="inprocess") as engine:
        assert engine.sql(f"{STREAM} {SESSIONS}").notices == ()
        assert engine.sql("SELECT k, COUNT(*) AS n FROM SESSION(TABLE s, DESCRIPTOR(t), 9) GROUP BY k").notices != ()
