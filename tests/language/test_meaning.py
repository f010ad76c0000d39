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
from headwater.runtime.stepping import by_hand

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
    # grouping sets, set operations by name, stars, aggregates over partitions
    "SELECT a, b, COUNT(*), SUM(b) FROM r GROUP BY GROUPING SETS ((a, b), (a))",
    (
        "SELECT a, b, COUNT(*) FROM r GROUP BY ROLLUP(a, b)",
        "SELECT a, b, COUNT(*) FROM r GROUP BY ROLLUP(a, b) HAVING COUNT(*) > 0",
    ),
    (
        "SELECT a, b, COUNT(*) FROM r GROUP BY a, b WITH ROLLUP",
        "SELECT a, b, COUNT(*) FROM r GROUP BY ROLLUP(a, b) HAVING COUNT(*) > 0",
    ),
    (
        "SELECT a, b, COUNT(*) FROM r GROUP BY a, b WITH CUBE",
        "SELECT a, b, COUNT(*) FROM r GROUP BY CUBE(a, b) HAVING COUNT(*) > 0",
    ),
    (
        "SELECT a, c, COUNT(b), GROUPING(a), GROUPING(c), GROUPING_ID(a, c), GROUPING_ID() FROM r GROUP BY CUBE(a, c)",
        "SELECT a, c, COUNT(b), GROUPING(a), GROUPING(c), GROUPING(a, c), GROUPING(a, c) FROM r GROUP BY CUBE(a, c) "
        "HAVING COUNT(*) > 0",
    ),
    "SELECT a, b, c, COUNT(*) FROM r GROUP BY a, ROLLUP(b, c)",
    "SELECT a, b, c, COUNT(*) FROM r GROUP BY GROUPING SETS ((a, b), ROLLUP(b, c), CUBE(a), (c), c) HAVING COUNT(*) > 0",
    "SELECT a, b, c, MAX(b) FROM r GROUP BY ROLLUP((a, b), c) HAVING COUNT(*) > 0",
    "SELECT a, b, COUNT(*) FROM r GROUP BY ROLLUP(a), ROLLUP(b) HAVING COUNT(*) > 0",
    "SELECT a, COUNT(*) FROM r GROUP BY GROUPING SETS (a, a)",
    "SELECT a + 1 AS x, b, SUM(b) FROM r GROUP BY ROLLUP(a + 1, b) HAVING COUNT(*) > 1",
    "SELECT a, b FROM r GROUP BY GROUPING SETS ((a), (b))",
    ("SELECT a, b FROM r GROUP BY ROLLUP(a, b)", "SELECT a, b FROM r GROUP BY ROLLUP(a, b) HAVING COUNT(*) > 0"),
    ("SELECT 7 AS x FROM r GROUP BY ()", "SELECT 7 FROM r GROUP BY () HAVING COUNT(*) > 0"),
    ("SELECT 7 AS x FROM r HAVING 1 = 1", "SELECT 7 FROM r HAVING COUNT(*) > 0"),
    "SELECT a, b, COUNT(*) FROM r GROUP BY (a, b)",
    "SELECT a, upper(c) AS u, SUM(b) FROM r GROUP BY ALL",
    (
        "SELECT k, v, COUNT(*) FROM n GROUP BY CUBE(k, v)",
        "SELECT k, v, COUNT(*) FROM n GROUP BY CUBE(k, v) HAVING COUNT(*) > 0",
    ),
    "SELECT a AS k, COUNT(*) FROM r GROUP BY ROLLUP(k) HAVING GROUPING(k) = 0",
    (
        "SELECT a, b, COUNT(*) FROM r GROUP BY a, b GROUPING SETS ((a, b), (b))",
        "SELECT a, b, COUNT(*) FROM r GROUP BY GROUPING SETS ((a, b), (b))",
    ),
    "SELECT *, COUNT(*) FROM s GROUP BY 1, 2",
    "SELECT a, d, COALESCE(a, 9) + 1 AS e, COUNT(*) FROM s GROUP BY ROLLUP(a, d) HAVING COUNT(*) > 0",
    "SELECT a FROM r UNION ALL BY NAME SELECT d, a FROM s",
    "SELECT a, b FROM r UNION BY NAME SELECT k AS b, v FROM n",
    "SELECT a FROM r UNION SELECT a FROM s INTERSECT SELECT k FROM n",
    ("SELECT a FROM r MINUS SELECT a FROM s", "SELECT a FROM r EXCEPT SELECT a FROM s"),
    ("SELECT * EXCEPT (b) FROM r", "SELECT * EXCLUDE (b) FROM r"),
    ("SELECT * EXCLUDE (b) REPLACE (a + 1 AS a) FROM r", "SELECT * EXCLUDE (b) REPLACE (a + 1 AS a) FROM r"),
    ("SELECT r.* EXCEPT (a), d FROM r JOIN s ON r.a = s.a", "SELECT b, c, d FROM r JOIN s ON r.a = s.a"),
    ("SELECT * RENAME (a AS z) FROM s", "SELECT a AS z, d FROM s"),
    "SELECT a, COUNT(*) OVER (PARTITION BY a), SUM(b) OVER (PARTITION BY a) AS s, MAX(b) OVER () FROM r",
    "SELECT k, SUM(v) OVER (PARTITION BY k), AVG(v) OVER (PARTITION BY k % 2) FROM n",
    "SELECT a, SUM(COUNT(*)) OVER (PARTITION BY a % 2) AS x, COUNT(*) AS c FROM r GROUP BY a",
    "SELECT a, b FROM r QUALIFY COUNT(*) OVER (PARTITION BY a) > 1",
    "SELECT a, SUM(b) FILTER (WHERE c = 'p') OVER (PARTITION BY c, a) AS z FROM r",
    "SELECT a, SUM(b) OVER w AS z, COUNT(b) OVER (w) AS y FROM r WINDOW w AS (PARTITION BY c, a)",
    "SELECT a, COUNT(*) AS n FROM r GROUP BY a QUALIFY MAX(n) OVER () = n",
    # top-k and ranks
    "SELECT a AS k, COUNT(*) FROM r GROUP BY ROLLUP(k) HAVING GROUPING(k) = 0",
    "SELECT a, SUM(b) FILTER (WHERE c = 'p') OVER (PARTITION BY c, a) AS z FROM r",
    "SELECT a, b, c FROM r ORDER BY a, b, c LIMIT 2",
    "SELECT a, b, c FROM r ORDER BY a DESC, b, c LIMIT 2 OFFSET 1",
    "SELECT a FROM r ORDER BY a NULLS LAST LIMIT 3",
    "SELECT a FROM r ORDER BY b DESC NULLS FIRST, a LIMIT 3",
    "SELECT a + b AS x FROM r ORDER BY x, 1 LIMIT 2",
    "SELECT c AS a, b FROM r ORDER BY a, r.a, b LIMIT 2",
    "SELECT b FROM r ORDER BY a + b, b LIMIT 2",
    "SELECT a, COUNT(*) AS n FROM r GROUP BY a ORDER BY COUNT(*) DESC, a LIMIT 1",
    "SELECT a, MAX(b) FROM r GROUP BY a ORDER BY SUM(b), a LIMIT 2",
    "SELECT DISTINCT a FROM r ORDER BY a LIMIT 1",
    "SELECT DISTINCT a + 1 AS x FROM r ORDER BY a + 1 DESC LIMIT 1",
    "SELECT a FROM r UNION ALL SELECT d FROM s ORDER BY a LIMIT 3",
    "SELECT a FROM r UNION SELECT d FROM s ORDER BY 1 DESC LIMIT 2",
    "(SELECT a FROM r ORDER BY a LIMIT 2) UNION ALL (SELECT d FROM s ORDER BY d DESC LIMIT 1)",
    "SELECT x.a, COUNT(*) FROM (SELECT a, b FROM r ORDER BY b, a LIMIT 4) x GROUP BY x.a",
    "WITH t AS (SELECT a FROM r ORDER BY a LIMIT 2) SELECT t.a, d FROM t JOIN s ON t.a = s.a",
    "SELECT a FROM r LIMIT 0",
    ("SELECT a, b FROM r LIMIT 2", "SELECT a, b FROM r ORDER BY ALL LIMIT 2"),
    "SELECT a FROM r ORDER BY a OFFSET 2",
    ("SELECT a FROM r ORDER BY a FETCH FIRST 2 ROWS ONLY", "SELECT a FROM r ORDER BY a LIMIT 2"),
    ("SELECT a FROM r ORDER BY a OFFSET 1 ROWS FETCH NEXT ROW ONLY", "SELECT a FROM r ORDER BY a LIMIT 1 OFFSET 1"),
    "SELECT a FROM r ORDER BY a LIMIT ALL",
    "SELECT a FROM r ORDER BY a",
    "SELECT a, b FROM r ORDER BY ALL DESC LIMIT 3",
    "SELECT DISTINCT ON (a) a, b FROM r ORDER BY a, b",
    "SELECT DISTINCT ON (a) b FROM r ORDER BY b DESC LIMIT 2",
    "SELECT a, b, c, ROW_NUMBER() OVER (ORDER BY a, b, c) AS rn FROM r",
    "SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC, c) AS rn FROM r",
    "SELECT * FROM (SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS rn FROM r) WHERE rn <= 1",
    "SELECT a, b FROM r QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1",
    "SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS rn FROM r QUALIFY rn < 3",
    "SELECT a, d, ROW_NUMBER() OVER (PARTITION BY a ORDER BY d) AS x, ROW_NUMBER() OVER (ORDER BY d, a) AS y FROM s",
    "SELECT a, d, 10 * ROW_NUMBER() OVER (ORDER BY a + d, a, d) + 1 AS x FROM s",
    "SELECT a, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, a) AS rn FROM r GROUP BY a",
    "SELECT a, COUNT(*) AS n FROM r GROUP BY a QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC, a) <= 2",
    "SELECT a, b, RANK() OVER (PARTITION BY a ORDER BY b) AS x, DENSE_RANK() OVER (PARTITION BY a ORDER BY b) AS y FROM r",
    "SELECT a, b, RANK() OVER (ORDER BY b DESC) AS x, DENSE_RANK() OVER (ORDER BY c, b) AS y FROM r",
    "SELECT k, RANK() OVER (ORDER BY v) AS x, DENSE_RANK() OVER (ORDER BY k) AS y FROM n",
    "SELECT a FROM r ORDER BY ROW_NUMBER() OVER (ORDER BY a DESC, b, c) LIMIT 2",
    "SELECT * FROM r WHERE a = (SELECT d FROM s ORDER BY d LIMIT 1)",
    "SELECT * FROM r WHERE a IN (SELECT d FROM s ORDER BY d LIMIT 2)",
    "SELECT a, (SELECT d FROM s ORDER BY d DESC LIMIT 1) AS m FROM r",
    # FROM: constants, NATURAL and USING, lists of column names
    "SELECT * FROM (VALUES (1, 'x'), (2, NULL)) AS v(a, b)",
    ("SELECT * FROM VALUES (1, 'x'), (2, NULL) AS v(a, b)", "SELECT * FROM (VALUES (1, 'x'), (2, NULL)) AS v(a, b)"),
    "WITH w(a, t) AS (VALUES (1, 'one'), (2, 'two')) SELECT t, COUNT(*) FROM w LEFT JOIN r USING (a) GROUP BY t",
    ("SELECT col1 + 1 AS x FROM VALUES 1, 2", "SELECT * FROM (VALUES (2),(3))"),
    "SELECT a FROM r UNION ALL VALUES (1), (7)",
    "SELECT * FROM r NATURAL JOIN s",
    "SELECT * FROM r NATURAL LEFT JOIN s",
    "SELECT * FROM r NATURAL RIGHT JOIN s",
    "SELECT * FROM r NATURAL FULL JOIN s",
    "SELECT * FROM r RIGHT JOIN s USING (a)",
    "SELECT * FROM r FULL JOIN s USING (a)",
    "SELECT a, r.a AS x, s.a AS y FROM r FULL JOIN s USING (a)",
    "SELECT a, b, d, v FROM r FULL JOIN s USING (a) LEFT JOIN n ON a = k",
    "SELECT * FROM r JOIN s USING (a) JOIN (SELECT k AS a, v FROM n) m USING (a)",
    "SELECT * FROM r FULL JOIN s USING (a) FULL JOIN (SELECT k AS a, v FROM n) m USING (a)",
    ("SELECT * FROM r LEFT SEMI JOIN s USING (a)", "SELECT * FROM r SEMI JOIN s USING (a)"),
    ("SELECT * FROM r LEFT ANTI JOIN s USING (a)", "SELECT * FROM r ANTI JOIN s USING (a)"),
    "SELECT x, y FROM r AS t(x, y, z) WHERE z = 'p'",
    "SELECT t.x, s.d FROM r t(x, y, z) LEFT JOIN s ON t.x = s.a AND t.y > s.d",
    "SELECT * FROM s CROSS JOIN (SELECT COUNT(*) AS c FROM r HAVING COUNT(*) > 0) q",
    "SELECT a, b FROM (SELECT * FROM r LIMIT 0)",
    "(SELECT a, b FROM r) ORDER BY a + b, a, b LIMIT 2",
    "SELECT a, b FROM r ORDER BY (SELECT MAX(d) FROM s) - a, b, a LIMIT 2",
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
    step = by_hand({"q": plan}).tick(inputs, dict.fromkeys(inputs, INFINITY))["q"]
    assert step.frontier == INFINITY
    return plan.schema, History.of(plan.schema, [step.delta])


@pytest.fixture(scope="module")
def snapshots():
    """For some random inputs, at every instant, a connection whose tables are the snapshots."""
    connection = duckdb.connect()
    connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")  # as in Spark
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
