"""ASOF JOIN against DuckDB's own, and FOR SYSTEM_TIME AS OF against the plain join, over random streams."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import headwater as hw
from headwater.language.binder import bind_script
from headwater.testing.cases import fresh, scaled

STREAMS = """
CREATE STREAM b (id INT, k INT, t INT) ORDERED BY t DISORDER 100;
CREATE STREAM s (v INT, k INT, t INT) ORDERED BY t DISORDER 100;
CREATE TABLE p (v INT, k INT);
"""
ORDER = "v DESC NULLS LAST, k DESC NULLS LAST"
"""Of one instant the largest row counts as the last, as in ROWS windows."""
FORMS = [
    "ASOF JOIN s ON b.k = s.k AND b.t >= s.t",
    "ASOF LEFT JOIN s ON s.t <= b.t AND s.k = b.k",
    "ASOF JOIN s ON b.k % 2 = s.k % 2 AND b.t >= s.t",
    "ASOF LEFT JOIN s ON b.t >= s.t",
]


def rows_of(rng: random.Random, name: str) -> list[dict[str, Any]]:
    keys = [None, 0, 1, 2, 3]
    return [
        {name: rng.choice([None, *range(6)]) if name == "v" else i, "k": rng.choice(keys), "t": rng.randrange(40)}
        for i in range(rng.randrange(1, 30))
    ]


def answered(query: str, streams: dict[str, list[dict[str, Any]]], rng: random.Random) -> Counter:
    engine = hw.connect(runner="inprocess", shards=rng.choice([1, 3]))
    engine.sql(STREAMS)
    run = engine.sql(query).start()
    waiting = [(name, row) for name, rows in streams.items() for row in rows]
    rng.shuffle(waiting)
    while waiting:
        cut = rng.randrange(1, 9)
        taken, waiting = waiting[:cut], waiting[cut:]
        for name in streams:
            if rows := [row for other, row in taken if other == name]:
                engine.push(name, rows)
    engine.run_to_end()
    found = Counter((row["id"], row["v"], row["_start"]) for row in run.history().rows())
    engine.close()
    return found


def judged(query: str, streams: dict[str, list[dict[str, Any]]]) -> Counter:
    connection = duckdb.connect()
    for name, rows in streams.items():
        types = {column: pa.int32() for column in rows[0]}
        connection.register(f"all_{name}", pa.Table.from_pylist(rows, schema=pa.schema(list(types.items()))))
    connection.execute("CREATE TABLE b AS FROM all_b; CREATE TABLE s AS FROM all_s")
    return Counter(connection.execute(query).fetchall())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_an_asof_join_is_duckdbs(form: str, seed: int):
    rng = random.Random(f"{form} {seed}")
    streams = {"b": rows_of(rng, "id"), "s": rows_of(rng, "v")}
    # DuckDB takes any row of those with the same time; the key of the third form is an expression.
    key = "k % 2" if "%" in form else "k" if "b.k" in form else "1"
    single = f"(SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY {key}, t ORDER BY {ORDER}) = 1) AS s"
    theirs = form.replace("JOIN s", f"JOIN {single}")
    expected = judged(f"SELECT b.id, s.v, b.t FROM b {theirs}", streams)
    assert answered(f"SELECT b.id, s.v FROM b {form}", streams, rng) == expected


def plan(query: str) -> object:
    return bind_script(f"{STREAMS}{query}").result.plan


def test_the_condition_of_snowflake_is_the_same():
    ours = plan("SELECT b.id, s.v FROM b ASOF JOIN s ON b.k = s.k AND b.t >= s.t")
    assert plan("SELECT b.id, s.v FROM b ASOF JOIN s MATCH_CONDITION (b.t >= s.t) ON b.k = s.k") == ours


@pytest.mark.parametrize("kind", ["", "LEFT "])
def test_a_version_is_the_plain_join(kind: str):
    ours = plan(f"SELECT b.id, p.v FROM b {kind}JOIN p ON b.k = p.k")
    assert plan(f"SELECT b.id, p.v FROM b {kind}JOIN p FOR SYSTEM_TIME AS OF b.t ON b.k = p.k") == ours
    ours = plan(f"SELECT b.id, q.v FROM b {kind}JOIN p AS q ON b.k = q.k")
    assert plan(f"SELECT b.id, q.v FROM b {kind}JOIN p FOR SYSTEM_TIME AS OF b.t AS q ON b.k = q.k") == ours
    assert plan(f"SELECT b.id, q.v FROM b {kind}JOIN p AS q FOR SYSTEM_TIME AS OF b.t ON b.k = q.k") == ours


def test_two_versions_and_a_derived_table():
    counted = "(SELECT k, COUNT(*) AS n FROM p GROUP BY k)"
    two = f"SELECT b.id, p.v, d.n FROM b LEFT JOIN p{{0}} ON b.k = p.k JOIN {counted}{{0}} AS d ON b.k = d.k"
    assert plan(two.format(" FOR SYSTEM_TIME AS OF b.t")) == plan(two.format(""))


@pytest.mark.slow
def test_many_asof_joins_are_duckdbs():
    for seed in range(scaled(200)):
        test_an_asof_join_is_duckdbs(FORMS[seed % len(FORMS)], fresh(seed))
