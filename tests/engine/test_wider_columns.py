"""Columns that queries read become wider between two runs: everything goes on as if they had been so from the beginning."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import headwater as hw
from headwater.errors import InputError
from headwater.runtime.checkpoint import Checkpoint
from headwater.testing.cases import fresh, scaled

NARROW = {"k": "INT", "t": "TINYINT", "v": "INT", "f": "FLOAT", "d": "DECIMAL(8,2)", "at": "INT"}
WIDE = {"k": "BIGINT", "t": "INT", "v": "BIGINT", "f": "DOUBLE", "d": "DECIMAL(14,2)", "at": "BIGINT"}
QUERIES = {
    "totals": "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, SUM(f) AS sf, SUM(d) AS sd FROM s [RANGE 8] GROUP BY k",
    "spread": "SELECT t, STDDEV(v) AS x, VAR_POP(f) AS y, AVG(d) AS z FROM s [RANGE 8] GROUP BY t",
    "extremes": "SELECT k, MIN(v) AS a, MAX(f) AS b, MIN(d) AS c, MAX(t) AS e FROM s [RANGE 8] GROUP BY k",
    "rows of groups": "SELECT t, MEDIAN(v) AS m, ARRAY_AGG(k) AS l, COUNT(DISTINCT d) AS n FROM s [RANGE 8] GROUP BY t",
    "two keys": "SELECT k, t, SUM(v) FILTER (WHERE f > 0) AS s FROM (SELECT k, t, v, d AS f FROM s) [RANGE 9] GROUP BY k, t",
    "by float": "SELECT f, COUNT(*) AS n FROM s [RANGE 8] GROUP BY f",
    "by decimal": "SELECT d, MAX(v) AS m FROM s [RANGE 8] GROUP BY d",
    "slices": "SELECT k, MAX(v) AS m, SUM(t) AS s FROM s [RANGE 8 SLIDE 4] GROUP BY k",
    "tumble": "SELECT window_end, k, SUM(v) AS s FROM TUMBLE(TABLE s, DESCRIPTOR(at), 5) GROUP BY window_end, k",
    "sessions": "SELECT window_start, k, SUM(t) AS s, MAX(v) AS m FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(at), 3) "
    "GROUP BY window_start, window_end, k",
    "rows of sessions": "SELECT t, f, d FROM SESSION(TABLE s PARTITION BY t, DESCRIPTOR(at), 3)",
    "join": "SELECT a.k, a.v, b.f FROM s [RANGE 4] a JOIN s [RANGE 4] b ON a.k = b.k WHERE a.v < b.v",
    "join by two": "SELECT a.k, b.d FROM s [RANGE 4] a JOIN s [RANGE 4] b ON a.k = b.k AND a.t = b.t",
    "left join": "SELECT a.t, a.f, b.v FROM s [RANGE 4] a LEFT JOIN (SELECT * FROM s WHERE t > 1) [RANGE 3] b ON a.v = b.v",
    "full join": "SELECT a.d, b.k FROM s [RANGE 2] a FULL JOIN s [RANGE 3] b ON a.d = b.d AND a.k < b.k",
    "semi join": "SELECT k, v, d FROM s [RANGE 5] WHERE k IN (SELECT t FROM s [RANGE 3] WHERE k = t)",
    "anti join": "SELECT v, t FROM s [RANGE 5] a "
    "WHERE NOT EXISTS (SELECT 1 FROM s [RANGE 9] b WHERE a.v > b.v AND a.t = b.t)",
    "distinct": "SELECT DISTINCT v, f FROM s [RANGE 8]",
    "distinct key": "SELECT DISTINCT k FROM s [RANGE 8]",
    "difference": "SELECT k, t FROM s [RANGE 8] EXCEPT ALL SELECT k, t FROM s [RANGE 4]",
    "intersection": "SELECT d FROM s [RANGE 8] INTERSECT SELECT d FROM s [RANGE 3] WHERE t > 0",
    "last rows": "SELECT k, t, f FROM s [ROWS 3]",
    "last of each": "SELECT k, v, d FROM s [PARTITION BY k ROWS 2]",
    "last of pairs": "SELECT k, t, v FROM s [PARTITION BY k, t ROWS 2 SLIDE 2]",
    "first": "SELECT v, f, d FROM s [RANGE 6] ORDER BY v, f DESC LIMIT 2",
    "numbered": "SELECT k, d, ROW_NUMBER() OVER (PARTITION BY k ORDER BY d, t) AS n FROM s [RANGE 4]",
    "newcomers": "SELECT ISTREAM DISTINCT k, d FROM s [RANGE 5]",
    "leavers": "SELECT DSTREAM t, v FROM s [RANGE 5]",
    "computed": "SELECT v % 3 + t AS x, SUM(v * 2 - t) AS s, MAX(d + 1) AS m FROM s [RANGE 8] WHERE v <> 7 GROUP BY x",
    "chosen": "SELECT CASE WHEN t > 1 THEN v ELSE 0 END AS c, COALESCE(k, t) AS l, d > 2 AS b FROM s [RANGE 3]",
    "of a chain": "SELECT s AS total, COUNT(*) AS n FROM chain WHERE s IS NOT NULL GROUP BY s",
}
CHAIN = "CREATE STREAM chain AS SELECT t, MIN(v) AS s FROM s [RANGE 6] GROUP BY t"
LEVELS = {
    "strong": "",
    "middle": "CONSISTENCY MIDDLE",
    "waiting": "CONSISTENCY BLOCK 3 REMEMBER 20",
    "on start": "EMIT ON START",
    "every": "EMIT EVERY 3",
}
TICKS = 5
Ticks = list[list[dict[str, Any]]]


def random_ticks(dice: random.Random, wide_from: int) -> Ticks:
    """Rows a tick; from one tick on some have values that the narrow types do not hold."""
    ticks, now = [], 0
    for tick in range(TICKS):
        factor = 1 if tick < wide_from or dice.random() < 0.5 else 2**33
        rows = []
        for _ in range(dice.randint(3, 12)):
            now += dice.choice([0, 0, 1, 2])
            row = {
                "k": dice.choice([None, 1, 2, 3]),
                "t": dice.choice([None, -1, 1, 2, 127]),
                "v": dice.choice([None, 0, 5, -(2**29), 7, 9, 12 * factor]),
                "f": dice.choice([None, 0.25, -1.5, float("inf"), 3.0]),
                "d": dice.choice([None, Decimal("1.25"), Decimal("-2.50"), Decimal("99.99"), Decimal(4) * factor]),
                "at": now + dice.choice([0, 0, 0, 2]),
            }
            if factor > 1:
                row["k"] = dice.choice([row["k"], 2**40])
                row["t"] = dice.choice([row["t"], 1000])
            rows.append(row)
        ticks.append(rows)
    return ticks


class Answers:
    """What the queries have delivered, however often they were begun."""

    def __init__(self) -> None:
        self.ticks: dict[str, dict[int, list[dict[str, Any]]]] = {}

    def sink(self, name: str) -> Any:
        found = self.ticks.setdefault(name, {})
        return hw.sinks.foreach(lambda table, tick: found.__setitem__(tick, table.to_pylist()))

    def history(self, name: str) -> Counter[tuple[Any, ...]]:
        """The rows with their intervals, changes applied."""
        rows: Counter[tuple[Any, ...]] = Counter()
        for change in (change for _, its in sorted(self.ticks[name].items()) for change in its):
            row = tuple(repr(v) for n, v in change.items() if not n.startswith("_"))
            end = change["_end"]
            if change.get("_op") == "adjust":
                rows[row, change["_start"], end] -= 1
                end = change["_new_end"]
            rows[row, change["_start"], end] += end != change["_start"]
        return +rows


def run(
    folder: Path,
    queries: dict[str, str],
    ticks: Ticks,
    types: dict[str, str],
    answers: Answers,
    *,
    shards: int,
    end: bool,
) -> None:
    declared = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    with hw.connect(runner="inprocess", shards=shards, checkpoint=folder) as engine:
        engine.sql(f"CREATE STREAM s ({declared}) ORDERED BY at DISORDER 4")
        engine.sql(CHAIN)
        with engine.held():
            for name, sql in queries.items():
                engine.sql(sql, name=name).start(answers.sink(name))
        for rows in ticks:
            engine.push("s", rows)
        if end:
            engine.run_to_end()


def check_restart(folder: Path, queries: dict[str, str], seed: int) -> None:
    dice = random.Random(seed)
    wide_from = dice.randint(1, TICKS - 1)
    ticks = random_ticks(dice, wide_from)
    expected, found = Answers(), Answers()
    run(folder / "wide", queries, ticks, WIDE, expected, shards=2, end=True)
    run(folder / "restarted", queries, ticks[:wide_from], NARROW, found, shards=dice.choice([1, 2]), end=False)
    run(folder / "restarted", queries, ticks[wide_from:], WIDE, found, shards=dice.choice([1, 2, 3]), end=True)
    for name in queries:
        assert found.history(name) == expected.history(name), f"{name}, from tick {wide_from} on, seed {seed}"
    assert all(expected.history(name) for name in queries)


@pytest.mark.parametrize(
    ("level", "share"), [("strong", 1), ("middle", 1), ("waiting", 3), ("on start", 4), ("every", 4)]
)
def test_every_operator_goes_on_with_wider_columns(level: str, share: int, tmp_path: Path):
    names = list(QUERIES)[::share]
    check_restart(tmp_path, {name: f"{QUERIES[name]} {LEVELS[level]}" for name in names}, 0)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_every_operator_goes_on_with_wider_columns_at_length(level: str, tmp_path: Path):
    for seed in range(scaled(6)):
        queries = {name: f"{sql} {LEVELS[level]}" for name, sql in QUERIES.items()}
        check_restart(tmp_path / str(seed), queries, fresh(1000 + seed))


def test_no_narrow_value_is_left_in_a_state(tmp_path: Path):
    """Whatever keeps values as they are: a state in which something was forgotten would have two types of a column."""
    for types, rows in ((NARROW, 0), (WIDE, 1)):
        ticks = random_ticks(random.Random(1), TICKS)[rows : rows + 1]
        queries = QUERIES | {f"{name}, middle": f"{sql} CONSISTENCY MIDDLE" for name, sql in QUERIES.items()}
        run(tmp_path, queries, ticks, types, Answers(), shards=1, end=False)
    last = Checkpoint(tmp_path).read(Checkpoint(tmp_path).newest() or 0)
    files = [tmp_path / "segments" / f"{name}.arrow" for name in last.segments()]
    kept = {str(field.type.value_type) for file in files for field in pa.ipc.open_file(file).schema}
    assert {"int64", "double", "decimal128(14, 2)"} <= kept
    assert not {"int16", "float", "decimal128(8, 2)"} & kept


# -- what is refused ---------------------------------------------------------------------------------------------------


def begin(folder: Path, declared: str, sql: str, sink: Any = None, rows: tuple[dict[str, Any], ...] = ()) -> Any:
    """Runs one query for one tick; what it answers."""
    with hw.connect(runner="inprocess", shards=2, checkpoint=folder / "checkpoint") as engine:
        engine.sql(f"CREATE STREAM s ({declared}) ORDERED BY at DISORDER 2")
        run = engine.sql(sql, name="q").start(sink or hw.sinks.memory())
        engine.push("s", list(rows))
        return run.history().rows() if sink is None else None


FIRST = ({"k": 1, "f": 0.1, "d": Decimal("1.50"), "day": date(2024, 1, 1), "at": 1},)
DECLARED = "k INT, f FLOAT, d DECIMAL(8,2), day DATE, at INT"


@pytest.mark.parametrize(
    ("old", "new", "sql", "told"),
    [
        ("k INT", "k SMALLINT", "SELECT k FROM s [RANGE 5]", 'Column "k" of "s" was INT and is SMALLINT now.'),
        ("k INT", "k DOUBLE", "SELECT DISTINCT k FROM s", 'Column "k" of "s" was INT and is DOUBLE now.'),
        (
            "day DATE",
            "day TIMESTAMP",
            "SELECT DISTINCT day FROM s",
            'Column "day" of "s" was DATE and is TIMESTAMP now.',
        ),
        ("(8,2)", "(12,3)", "SELECT d FROM s [ROWS 2]", 'Column "d" of "s" was DECIMAL(8,2) and is DECIMAL(12,3) now.'),
        (
            "(8,2)",
            "(20,2)",
            "SELECT SUM(d) AS s FROM s [ROWS 2]",
            "In its aggregate, a DECIMAL of more than 18 digits is",
        ),
        (
            "f FLOAT",
            "f DOUBLE",
            "SELECT k FROM s [ROWS 2] WHERE f < 0.5",
            'The values of "f" < 0.5 may differ between FLOAT',
        ),
        (
            "k INT",
            "k BIGINT",
            "SELECT a.k FROM s [ROWS 2] a JOIN (SELECT k * 1L AS l FROM s) b ON a.k = b.l",
            "put together in",
        ),
        ("k INT", "k BIGINT", "SELECT ~k AS k FROM s [ROWS 2]", "may differ between INT and BIGINT."),
    ],
)
def test_a_real_difference_is_refused_and_nothing_is_lost(old: str, new: str, sql: str, told: str, tmp_path: Path):
    begin(tmp_path, DECLARED, sql, rows=FIRST)
    with pytest.raises(InputError, match="QUERY_CHANGED") as caught:
        begin(tmp_path, DECLARED.replace(old, new), sql)
    assert told in caught.value.detail
    assert "again; to begin anew, start it under another name" in str(caught.value.hint)
    assert '--restart-query q, or in Python engine.drop("q")' in str(caught.value.hint)
    assert begin(tmp_path, DECLARED, sql, rows=({**FIRST[0], "at": 9},))


def test_a_table_that_finds_rows_by_a_float_stays_as_it_is(tmp_path: Path):
    declare = "CREATE TABLE t ({}) SOURCE push(changes => 'debezium')"
    for key, allowed in (
        ("id INT PRIMARY KEY, f {}", True),
        ("id INT, f {} PRIMARY KEY", False),
        ("id INT, f {}", False),
    ):
        folder = tmp_path / key
        with hw.connect(runner="inprocess", checkpoint=folder) as engine:
            engine.sql(declare.format(key.format("FLOAT")))
            engine.push("t", [{"op": "c", "after": {"id": 1, "f": 0.1}, "ts_ms": 1}])
        with hw.connect(runner="inprocess", checkpoint=folder) as engine:
            if allowed:
                engine.sql(declare.format(key.format("DOUBLE")))
                continue
            with pytest.raises(InputError, match="STREAM_CHANGED") as caught:
                engine.sql(declare.format(key.format("DOUBLE")))
            assert "a FLOAT: beside a PRIMARY KEY" in caught.value.detail


def test_a_restart_that_never_ran_leaves_everything_as_it_was(tmp_path: Path):
    sql = "SELECT k, COUNT(*) AS n FROM s [RANGE 20] GROUP BY k"
    begin(tmp_path, DECLARED, sql, rows=FIRST)
    with hw.connect(runner="inprocess", checkpoint=tmp_path / "checkpoint") as engine:
        engine.sql(f"CREATE STREAM s ({DECLARED.replace('k INT', 'k BIGINT')}) ORDERED BY at DISORDER 2")
        engine.sql(sql, name="q").start()
    (row,) = begin(tmp_path, DECLARED, sql, rows=({**FIRST[0], "at": 9},))
    assert (row["n"], row["_start"]) == (1, 1)


# -- where answers go --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_folder_of_files_goes_on(kind: str, tmp_path: Path):
    wide = DECLARED.replace("k INT", "k BIGINT").replace("f FLOAT", "f DOUBLE").replace("(8,2)", "(12,2)")
    make = getattr(hw.sinks, kind)
    for declared, row in ((DECLARED, FIRST[0]), (wide, {**FIRST[0], "k": 2**40, "at": 2})):
        begin(tmp_path, declared, "SELECT k, d FROM s", make(tmp_path / kind), rows=(row,))
    with pytest.raises(InputError, match="QUERY_CHANGED"):
        begin(tmp_path, DECLARED, "SELECT k, d FROM s", make(tmp_path / kind))
    reader = {"parquet": "read_parquet('{}', union_by_name = true)", "csv": "'{}'", "json": "'{}'"}[kind]
    found = duckdb.sql(f"SELECT k, d FROM {reader.format(tmp_path / kind / f'tick-*.{kind}')} ORDER BY k").fetchall()
    assert [(k, float(d)) for k, d in found] == [(1, 1.5), (2**40, 1.5)]


def test_a_delta_table_does_not_go_on_and_another_one_does(tmp_path: Path):
    deltalake = pytest.importorskip("deltalake")
    wide = DECLARED.replace("k INT", "k BIGINT")
    begin(tmp_path, DECLARED, "SELECT k FROM s", hw.sinks.delta(tmp_path / "one"), rows=FIRST)
    with pytest.raises(InputError, match="TABLE_OF_ANOTHER") as caught:
        begin(tmp_path, wide, "SELECT k FROM s", hw.sinks.delta(tmp_path / "one"))
    assert "Write into a new table" in str(caught.value.hint)
    rows = ({**FIRST[0], "k": 2**40, "at": 2},)
    begin(tmp_path, wide, "SELECT k FROM s", hw.sinks.delta(tmp_path / "other"), rows=rows)
    found = deltalake.DeltaTable(str(tmp_path / "other")).to_pyarrow_table()
    assert sorted(found.column("k").to_pylist()) == [1, 2**40]  # the last tick comes again


def test_diverted_rows_have_the_wider_type(tmp_path: Path):
    for type_, k in (("INT", 1), ("BIGINT", 2**40)):
        with hw.connect(runner="inprocess", checkpoint=tmp_path) as engine:
            engine.sql(f"CREATE STREAM s (k {type_}, at INT) ORDERED BY at IN ORDER LATE ROWS DIVERT INTO late")
            engine.sql("SELECT k FROM s", name="q").start()
            engine.push("s", [{"k": k, "at": 50}])
            engine.push("s", [{"k": k, "at": 2}])
            assert engine.diverted("late").rows()[-1]["k"] == k
    assert [row["k"] for row in engine_diverted(tmp_path)] == [1, 2**40]


def engine_diverted(folder: Path) -> list[dict[str, Any]]:
    with hw.connect(runner="inprocess", checkpoint=folder) as engine:
        return engine.diverted("late").rows()


# -- together with other changes ---------------------------------------------------------------------------------------


def test_the_level_may_change_in_the_same_restart(tmp_path: Path):
    """Strong states wait to be taken over by speculative operators when they become wider once more."""
    ticks = random_ticks(random.Random(3), TICKS)
    names = [
        "totals",
        "extremes",
        "rows of groups",
        "join",
        "distinct",
        "last of each",
        "first",
        "sessions",
        "left join",
    ]
    middle = NARROW | {"v": "BIGINT", "d": "DECIMAL(10,2)"}
    histories = []
    for types in ((WIDE, WIDE, WIDE), (NARROW, middle, WIDE)):
        answers, folder = Answers(), tmp_path / str(len(histories))
        for i, (level, its) in enumerate(zip(("strong", "middle", "strong"), types, strict=True)):
            queries = {name: f"{QUERIES[name]} {LEVELS[level]}" for name in names}
            run(folder, queries, ticks[i * 2 : i * 2 + 2], its, answers, shards=1 + i % 2, end=i == 2)
        histories.append([answers.history(name) for name in names])
    assert histories[0] == histories[1]
    assert all(histories[0])
