"""What queries mean: at every instant the answer must be DuckDB's to the same text over the snapshots."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest

from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.history import History, freeze
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.runtime.inprocess import Runner

STREAMS = """
CREATE STREAM r (a INT, b INT, c STRING);
CREATE STREAM s (a INT, d INT);
CREATE STREAM n (k INT NOT NULL, v DOUBLE);
"""
HORIZON = 7
SEEDS = 6

# (text, text for DuckDB if it must be another one): a scalar aggregate of nothing is no row here, but a row in SQL.
QUERIES: list[str | tuple[str, str]] = [
    "SELECT * FROM r",
    "SELECT a + b AS x, upper(c) AS y FROM r WHERE a > 1 OR c = 'p'",
    "SELECT DISTINCT a, c FROM r",
    "SELECT * FROM r, s WHERE r.a = s.a",
    "SELECT r.a, s.a FROM r, s WHERE r.a = s.a AND r.b < s.d AND r.c = 'p'",
    "SELECT r.a, s.a FROM r, s WHERE r.a + 1 = s.a * 2",
    "SELECT r.a, n.v FROM r, s, n WHERE r.a = n.k AND s.d = n.k",
    "SELECT r.a, v FROM r JOIN n ON r.a = n.v",
    "SELECT * FROM r CROSS JOIN n",
    "SELECT r.a, s.d FROM r LEFT JOIN s ON r.a = s.a",
    "SELECT r.a, s.d FROM r LEFT JOIN s ON r.a = s.a AND r.b > 1",
    "SELECT r.a, s.d FROM r LEFT JOIN s ON r.a = s.a AND s.d > 1",
    "SELECT r.a, s.d FROM r LEFT JOIN s ON r.a = s.a WHERE s.d IS NULL",
    "SELECT r.a, s.d FROM r RIGHT JOIN s ON r.a = s.a AND r.b > s.d",
    "SELECT r.a, s.d FROM r FULL JOIN s ON r.a = s.a",
    "SELECT a, b, d FROM r JOIN s USING (a)",
    "SELECT a, b, d FROM r LEFT JOIN s USING (a)",
    "SELECT a, b, d FROM r RIGHT JOIN s USING (a)",
    "SELECT a, b, d FROM r FULL JOIN s USING (a)",
    "SELECT * FROM r JOIN s USING (a)",
    "SELECT r.a, s.d, n.v FROM r LEFT JOIN s ON r.a = s.a JOIN n ON n.k = r.b",
    "SELECT r.a, s.d, n.v FROM n, r LEFT JOIN s ON r.a = s.a WHERE n.k = r.b",
    "SELECT r.a, s.d, n.v FROM r LEFT JOIN (s JOIN n ON s.d = n.k) ON r.a = s.a",
    ("SELECT * FROM r LEFT SEMI JOIN s ON r.a = s.a", "SELECT * FROM r SEMI JOIN s ON r.a = s.a"),
    (
        "SELECT * FROM r LEFT ANTI JOIN s ON r.a = s.a AND r.b = s.d",
        "SELECT * FROM r ANTI JOIN s ON r.a = s.a AND r.b = s.d",
    ),
    ("SELECT COUNT(*) AS n FROM r", "SELECT COUNT(*) FROM r HAVING COUNT(*) > 0"),
    ("SELECT SUM(a), MIN(c), COUNT(b) FROM r", "SELECT SUM(a), MIN(c), COUNT(b) FROM r HAVING COUNT(*) > 0"),
    "SELECT a, COUNT(*), SUM(b), AVG(b), MIN(b), MAX(c) FROM r GROUP BY a",
    "SELECT a + 1 AS k, COUNT(DISTINCT b), COUNT(c) FROM r GROUP BY a + 1 HAVING COUNT(*) > 1",
    "SELECT a, SUM(b) FILTER (WHERE c = 'p') AS p, 2 * COUNT(*) + 1 AS m FROM r GROUP BY a",
    "SELECT a, c FROM r GROUP BY a, c",
    "SELECT c, a % 2 FROM r GROUP BY 2, 1",
    "SELECT s.a, MAX(r.b) FROM r, s WHERE r.a = s.a GROUP BY s.a",
    "SELECT x, COUNT(*) FROM (SELECT a AS x FROM r UNION ALL SELECT d FROM s) q GROUP BY x",
    "SELECT a FROM r UNION SELECT a FROM s",
    "SELECT a FROM r UNION ALL SELECT v FROM n",
    "SELECT a FROM r EXCEPT SELECT a FROM s",
    "SELECT a FROM r EXCEPT ALL SELECT a FROM s",
    "SELECT a FROM r INTERSECT SELECT a FROM s",
    "SELECT a FROM r INTERSECT ALL SELECT a FROM s",
    "WITH q AS (SELECT a, COUNT(*) AS n FROM r GROUP BY a) SELECT q1.a, q2.n FROM q q1, q q2 WHERE q1.n = q2.n",
    "SELECT * FROM r WHERE a = (SELECT MAX(a) FROM s)",
    "SELECT * FROM r WHERE (SELECT MAX(a) FROM s) < a AND b > 0",
    "SELECT * FROM r WHERE NOT (a = (SELECT MAX(a) FROM s))",
    "SELECT * FROM r WHERE a > 1 + (SELECT MIN(a) FROM s) OR b = 1",
    "SELECT * FROM r WHERE COALESCE((SELECT MIN(a) FROM s), 0) < b",
    "SELECT a, (SELECT MAX(d) FROM s) AS m FROM r",
    "SELECT a, (SELECT MAX(d) FROM s WHERE s.a = r.a) AS m FROM r",
    "SELECT * FROM r WHERE b >= (SELECT MAX(d) FROM s WHERE s.a = r.a)",
    "SELECT * FROM r WHERE b >= ALL (SELECT d FROM s)",
    "SELECT * FROM r WHERE b <> ALL (SELECT d FROM s)",
    "SELECT * FROM n WHERE k >= ALL (SELECT k FROM n)",
    "SELECT * FROM r WHERE b < ANY (SELECT d FROM s)",
    "SELECT * FROM r WHERE b = ANY (SELECT d FROM s)",
    "SELECT * FROM r WHERE NOT (b < ANY (SELECT d FROM s))",
    "SELECT * FROM r WHERE NOT b <= ALL (SELECT d FROM s)",
    "SELECT * FROM r WHERE a IN (SELECT a FROM s)",
    "SELECT * FROM r WHERE a IN (SELECT v FROM n)",
    "SELECT * FROM r WHERE a NOT IN (SELECT a FROM s)",
    "SELECT * FROM r WHERE a NOT IN (SELECT k FROM n)",
    "SELECT * FROM n WHERE k NOT IN (SELECT a FROM s)",
    "SELECT * FROM n WHERE k NOT IN (SELECT k + 1 FROM n)",
    "SELECT * FROM r WHERE NOT (a + 1 IN (SELECT a FROM s WHERE d > 1))",
    "SELECT * FROM r WHERE (a, b) IN (SELECT a, d FROM s)",
    "SELECT * FROM r WHERE a IN (SELECT a FROM s WHERE s.d = r.b)",
    "SELECT * FROM r WHERE a NOT IN (SELECT a FROM s WHERE s.d = r.b)",
    "SELECT * FROM r WHERE a NOT IN (SELECT a FROM s UNION SELECT k FROM n)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s)",
    "SELECT * FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE d > 2)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a)",
    "SELECT * FROM r WHERE NOT EXISTS (SELECT * FROM s WHERE s.a = r.a AND s.d < r.b)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a < r.a) AND a IN (SELECT k FROM n) AND b > 0",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND d IN (SELECT k FROM n))",
    "SELECT a, COUNT(*) AS m FROM r GROUP BY a HAVING COUNT(*) >= ALL (SELECT COUNT(*) FROM r GROUP BY a)",
    "SELECT a, COUNT(*) AS m FROM r GROUP BY a HAVING a IN (SELECT d FROM s) AND MAX(b) > 1",
    "SELECT a, MAX(b) - (SELECT MIN(d) FROM s) AS m FROM r GROUP BY a HAVING MAX(b) > (SELECT MIN(d) FROM s)",
    "SELECT CASE WHEN a > b THEN 'more' WHEN a = b THEN c END AS w, a IN (1, b) AS i, a BETWEEN 1 AND b AS t FROM r",
    "SELECT a / 2 AS h, CAST(b AS DOUBLE) AS f, CAST(a AS STRING) || c AS t, -a AS m, NOT a = b AS e FROM r",
    "SELECT x.a FROM r x, r y WHERE x.a = y.b AND x.c <> y.c",
    "SELECT q.a, q.b FROM (SELECT * FROM r) q(a, b, e) WHERE e IS NOT NULL",
]


def random_stream(rng: random.Random, width: int, nullable: bool) -> list[tuple[tuple, int, int, int]]:
    rows = []
    for _ in range(rng.choice([0, 2, 6, 9])):
        values = [rng.choice([1, 1, 2, 2, 3, *([None] if nullable else [])]) for _ in range(width)]
        start = rng.randrange(HORIZON - 2)
        rows.append((values, start, rng.choice([start + 1, start + 2, HORIZON, INFINITY]), rng.choice([1, 1, 2])))
    return rows


def random_inputs(seed: int) -> dict[str, Delta]:
    rng = random.Random(seed)
    schemas = bind_script(STREAMS).catalog.sources()
    letters = {1: "p", 2: "q", 3: "p", None: None}
    r = [((a, b, letters[c]), s, e, w) for (a, b, c), s, e, w in random_stream(rng, 3, True)]
    s = random_stream(rng, 2, True)
    n = [((k, float(v)), s_, e, w) for (k, v), s_, e, w in random_stream(rng, 2, False)]
    return {name: Delta.from_rows(schemas[name], rows) for name, rows in (("r", r), ("s", s), ("n", n))}


def actual(sql: str, inputs: dict[str, Delta]) -> tuple[Schema, History]:
    plan = bind_script(STREAMS + sql).result.plan
    step = Runner({"q": plan}).tick(inputs, dict.fromkeys(inputs, INFINITY))["q"]
    assert step.frontier == INFINITY
    return plan.schema, History.of(plan.schema, [step.delta])


@pytest.fixture(scope="module")
def snapshots():
    """For some random inputs, at every instant, a connection whose tables are the snapshots."""
    connection = duckdb.connect()
    found = []
    for seed in range(SEEDS):
        inputs = random_inputs(seed)
        for instant in range(HORIZON + 1):
            schema = f"i{seed}_{instant}"
            connection.execute(f"CREATE SCHEMA {schema}")
            for (name, delta), columns in zip(
                inputs.items(), ("a INT, b INT, c VARCHAR", "a INT, d INT", "k INT, v DOUBLE"), strict=True
            ):
                connection.execute(f"CREATE TABLE {schema}.{name} ({columns})")
                valid = [row for row, s, e, w in delta.rows() for _ in range(w) if s <= instant < e]
                if valid:
                    marks = ", ".join("?" * len(valid[0]))
                    connection.executemany(f"INSERT INTO {schema}.{name} VALUES ({marks})", valid)
            found.append((seed, instant, schema))
    yield connection, found
    connection.close()


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q if isinstance(q, str) else q[0])
def test_every_snapshot_is_the_relational_answer(query: str | tuple[str, str], snapshots):
    sql, oracle = query if isinstance(query, tuple) else (query, query)
    connection, places = snapshots
    histories = {seed: actual(sql, random_inputs(seed))[1] for seed in {seed for seed, *_ in places}}
    for seed, instant, schema in places:
        connection.execute(f"USE {schema}")
        expected = Counter(freeze(row) for row in connection.execute(oracle).fetchall())
        assert histories[seed].snapshot(instant) == expected, (seed, instant)
