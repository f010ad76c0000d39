"""Columns that queries read become wider between two runs: everything goes on as if they had been so from the beginning."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
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
    for seed in range(scaled(30)):
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
