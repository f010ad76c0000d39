"""Queries and streams that come and go while others run: what is shared, what is freed, what a newcomer sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_market import QUERIES, answers, bring, garbage, open_market, run_market, state

import headwater as hw
from headwater.errors import InputError
from headwater.runtime.checkpoint import Checkpoint
from headwater.state.manifest import state_segments

BIDS = "CREATE STREAM bid (auction INT, price INT, at INT) ORDERED BY at IN ORDER"
BUSY = "SELECT auction, COUNT(*) AS bids FROM bid WINDOW(RANGE 10) GROUP BY auction"


@pytest.fixture
def engine() -> Iterator[hw.Engine]:
    with hw.connect(runner="inprocess", shards=2) as engine:
        engine.sql(BIDS)
        yield engine


def keys(engine: hw.Engine, query: str) -> set[str]:
    """Of the operators with state that a query uses."""
    graph = engine._core.deployment.layout.graph
    below = {graph.nodes[i].key for i in graph.below(query)}
    return {key for its in engine._core.manifest.records.values() for key in its} & below


def bid(engine: hw.Engine, *rows: tuple[int, int, int]) -> None:
    engine.push("bid", [{"auction": a, "price": p, "at": t} for a, p, t in rows])


def history(run: hw.Run) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in run.history().rows())


# -- sharing ----------------------------------------------------------------------------------------------------------


def test_queries_that_begin_together_share(engine: hw.Engine):
    with engine.held():
        a, b = (engine.sql(BUSY, name=name).start() for name in "ab")
        c = engine.sql(f"SELECT auction FROM ({BUSY}) q WHERE bids > 1", name="c").start()
    bid(engine, (1, 5, 3), (1, 6, 4))
    assert keys(engine, "a") == keys(engine, "b")
    assert keys(engine, "a") <= keys(engine, "c")
    engine.run_to_end()
    assert history(a) == history(b) == [(1, 1, 3, 4), (1, 1, 13, 14), (1, 2, 4, 13)]
    assert history(c) == [(1, 4, 13)]


def test_a_query_that_begins_later_shares_only_what_remembers_nothing(engine: hw.Engine):
    early = engine.sql(BUSY, name="early").start()
    bid(engine, (1, 5, 3))
    late = engine.sql(BUSY, name="late").start()
    assert (early.since, late.since) == (0, 1)
    bid(engine, (1, 6, 4))
    assert not keys(engine, "early") & keys(engine, "late")
    graph = engine._core.deployment.layout.graph
    shared = graph.below("early") & graph.below("late")
    assert {graph.nodes[i].source for i in shared} >= {"bid"}
    engine.run_to_end()
    assert history(early) == [(1, 1, 3, 4), (1, 1, 13, 14), (1, 2, 4, 13)]
    assert history(late) == [(1, 1, 4, 14)]


@pytest.mark.parametrize("consistency", ["STRONG", "MIDDLE"])
def test_a_newcomer_gets_what_holds_and_sees_it_change(consistency: str):
    with hw.connect(runner="inprocess", shards=2) as engine:
        engine.sql("CREATE STREAM call (caller STRING)")
        sql = f"SELECT COUNT(*) AS n FROM call CONSISTENCY {consistency}"
        old = engine.sql(sql, name="old").start()
        plain = engine.sql("SELECT caller FROM call CONSISTENCY MIDDLE", name="plain old").start()
        row = {"caller": "ann", "_start": 1, "_end": None, "_weight": 1}
        engine.push("call", [row])
        new = engine.sql(sql, name="new").start()
        plain_new = engine.sql("SELECT caller FROM call CONSISTENCY MIDDLE", name="plain new").start()
        ended = [row | {"_weight": -1}, row | {"_end": 9}]
        engine.push("call", [*ended, {"caller": "bob", "_start": 4, "_end": 6, "_weight": 1}])
        engine.run_to_end()
        for counted in (old, new):
            assert [(r["n"], *times(r)) for r in rows(counted)] == [(1, 1, 4), (1, 6, 9), (2, 4, 6)]
        for all_ in (plain, plain_new):
            assert [(r["caller"], *times(r)) for r in rows(all_)] == [("ann", 1, 9), ("bob", 4, 6)]


def rows(run: hw.Run) -> list[dict[str, Any]]:
    return sorted(run.history().rows(), key=lambda r: tuple(map(str, r.values())))


def times(row: dict[str, Any]) -> tuple[int, int]:
    return row["_start"].microsecond, row["_end"].microsecond


# -- coming and going -------------------------------------------------------------------------------------------------


def test_the_rest_runs_on(engine: hw.Engine):
    with engine.held():
        stays = engine.sql(BUSY, name="stays").start()
        goes = engine.sql("SELECT DISTINCT price FROM bid WINDOW(RANGE 5)", name="goes").start()
    bid(engine, (1, 5, 3))
    goes.stop()
    assert not goes.running
    bid(engine, (1, 6, 4))
    again = engine.sql("SELECT DISTINCT price FROM bid WINDOW(RANGE 5)", name="goes").start()
    bid(engine, (1, 6, 12))
    engine.run_to_end()
    assert history(stays) == [(1, 1, 3, 4), (1, 1, 14, 22), (1, 2, 4, 12), (1, 2, 13, 14), (1, 3, 12, 13)]
    assert history(again) == [(6, 12, 17)]
    assert list(engine.runs) == ["stays", "goes"]


def test_what_only_a_stopped_query_used_is_freed(tmp_path: Path):
    with open_market(tmp_path, keep=2) as engine:
        bring(tmp_path, 0)
        engine.run_to_end(end_streams=False)
        alone = keys(engine, "quiet") - set().union(*(keys(engine, q) for q in QUERIES if q != "quiet"))
        before = used(engine, alone)
        assert before
        engine.runs["quiet"].stop()
        for step in range(1, 4):
            bring(tmp_path, step)
            engine.run_to_end(end_streams=False)
        kept = {p.stem for p in (tmp_path / "checkpoint" / "segments").iterdir()}
        assert not kept & before
        assert not {key for its in engine._core.manifest.records.values() for key in its} & alone
    assert garbage(tmp_path) == []


def used(engine: hw.Engine, nodes: set[str]) -> set[str]:
    """The segments of these operators."""
    records = engine._core.manifest.records.values()
    return {name for its in records for key in nodes & its.keys() for name in state_segments(its[key]["state"] or {})}


def test_two_of_one_name_cannot_run(engine: hw.Engine):
    sink = hw.sinks.memory()
    run = engine.sql(BUSY, name="busy").start(sink)
    bid(engine, (1, 5, 3))
    with pytest.raises(InputError, match='QUERY_RUNS: a query "busy" runs already'):
        engine.sql(BUSY, name="busy").start(sink)
    engine.run_to_end()
    assert history(run) == [(1, 1, 3, 13)]


def test_dropping_what_a_script_defined_stops_it(engine: hw.Engine):
    run = engine.sql(f"CREATE STREAM busy AS {BUSY}").start()
    bid(engine, (1, 5, 3))
    engine.sql("DROP STREAM busy")
    assert not run.running
    assert engine.runs == {}
    engine.sql("DROP STREAM bid")


# -- streams ----------------------------------------------------------------------------------------------------------


def test_a_stream_that_is_read_cannot_be_dropped(engine: hw.Engine):
    engine.sql(BUSY, name="busy").start()
    with pytest.raises(InputError, match='STREAM_IN_USE: stream "bid" cannot be dropped: query "busy" reads it'):
        engine.sql("DROP STREAM bid")
    with pytest.raises(InputError, match="STREAM_IN_USE"):
        engine.sql(f"DROP STREAM bid; {BIDS}")
    bid(engine, (1, 5, 3))
    engine.drop("busy")
    engine.sql("DROP STREAM bid")


def test_a_stream_declared_again_begins_anew(engine: hw.Engine):
    run = engine.sql(BUSY, name="busy").start()
    bid(engine, (1, 5, 300))
    run.stop()
    engine.sql("DROP STREAM bid; CREATE STREAM bid (name STRING, at INT) ORDERED BY at IN ORDER")
    run = engine.sql("SELECT name FROM bid", name="names").start()
    engine.push("bid", [{"name": "ann", "at": 2}])
    engine.run_to_end()
    assert history(run) == [("ann", 2, 3)]
    assert engine._core.manifest.counts["bid"] == {"rows": 1, "late": 0, "bad": 0}


def write(path: Path, *rows_: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows_)), path)


def test_sources_come_and_go_while_others_run(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with hw.connect(runner="inprocess", checkpoint=tmp_path / "checkpoint") as engine:
        engine.sql(f"CREATE STREAM one (at INT, x INT) SOURCE parquet('{tmp_path}/one') ORDERED BY at IN ORDER")
        one = engine.sql("SELECT x FROM one", name="one").start()
        write(tmp_path / "one" / "a.parquet", {"at": 1, "x": 10})
        engine.run_to_end(end_streams=False)
        engine.sql(f"CREATE STREAM two (at INT, x INT) SOURCE parquet('{tmp_path}/two') ORDERED BY at IN ORDER")
        two = engine.sql("SELECT x FROM two UNION ALL SELECT x FROM one", name="both").start()
        write(tmp_path / "two" / "a.parquet", {"at": 2, "x": 20})
        engine.run_to_end(end_streams=False)
        write(tmp_path / "one" / "b.parquet", {"at": 5, "x": 11})
        engine.run_to_end(end_streams=False)
        two.stop()
        engine.sql("DROP STREAM two")
        write(tmp_path / "one" / "c.parquet", {"at": 7, "x": 12})
        engine.run_to_end()
        assert history(one) == [(10, 1, 2), (11, 5, 6), (12, 7, 8)]
        assert history(two) == [(11, 5, 6), (20, 2, 3)]
        assert set(engine._core.manifest.counts) == {"one"}


def test_a_dropped_source_is_read_from_its_beginning_again(tmp_path: Path):
    """Also if the process was killed right after the DROP."""
    write(tmp_path / "in" / "a.parquet", {"at": 1, "x": 10})
    declared = f"CREATE STREAM one (at INT, x INT) SOURCE parquet('{tmp_path}/in') ORDERED BY at IN ORDER"
    with hw.connect(runner="inprocess", checkpoint=tmp_path / "checkpoint") as engine:
        engine.sql(declared)
        run = engine.sql("SELECT x FROM one", name="q").start()
        engine.run_to_end(end_streams=False)
        run.stop()
        engine.sql("DROP STREAM one")
    assert Checkpoint(tmp_path / "checkpoint").read(1).batches == {}
    with hw.connect(runner="inprocess", checkpoint=tmp_path / "checkpoint") as engine:
        engine.sql(declared)
        run = engine.sql("SELECT x FROM one", name="q").start()
        engine.run_to_end()
        assert history(run) == [(10, 1, 2)]


def test_queries_change_between_restarts(tmp_path: Path, undisturbed: dict[str, Any]):
    """One is dropped, another one is new: the others do not notice."""
    run_market(tmp_path, steps=2, end=False)
    others = {name: sql for name, sql in QUERIES.items() if name != "bidders"}
    with open_market(tmp_path, queries=others) as engine:
        engine.drop("bidders")
        late = engine.sql(QUERIES["bidders"], name="late").start(hw.sinks.parquet(tmp_path / "answers" / "late"))
        assert late.since == 2
    run_market(tmp_path, queries=others | {"late": QUERIES["bidders"]})
    found = answers(tmp_path)
    assert {name: found[name] for name in others} == {name: undisturbed["answers"][name] for name in others}
    assert state(tmp_path)["queries"]["late"]["since"] == 2
    assert garbage(tmp_path) == []
