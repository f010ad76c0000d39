"""Sub-queries in expressions: at every instant the answer must be DuckDB's to the same text over the snapshots."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest

from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.history import History, freeze
from headwater.model.time import INFINITY
from headwater.optimizer.optimize import optimize
from headwater.runtime.stepping import by_hand
from headwater.testing.cases import fresh, scaled
from headwater.testing.checks import check_case
from headwater.testing.choices import Dice
from headwater.testing.generate import streams

STREAMS = """
CREATE STREAM r (a INT, b INT, c STRING);
CREATE STREAM s (a INT, d INT);
CREATE STREAM n (k INT NOT NULL, v DOUBLE);
"""
HORIZON = 6
SEEDS = 6

CONDITIONS = [
    "EXISTS (SELECT 1 FROM s)",
    "EXISTS (SELECT 1 FROM s WHERE d > 2)",
    "EXISTS (SELECT 1 FROM s WHERE s.a = r.a)",
    "EXISTS (SELECT 1 FROM s WHERE s.a < r.a)",
    "EXISTS (SELECT r.c FROM s WHERE r.a > 1)",
    "EXISTS (SELECT 1 FROM s WHERE s.a = r.a OR s.d = r.b)",
    "EXISTS (SELECT 1 FROM s WHERE s.a + s.d = r.a + 1 AND s.d <> r.b)",
    "EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND EXISTS (SELECT 1 FROM n WHERE n.k = s.d AND n.k < r.b))",
    "EXISTS (SELECT 1 FROM s WHERE r.b IN (SELECT k FROM n WHERE n.k >= s.d))",
    "EXISTS (SELECT 1 FROM s WHERE s.a IS NOT DISTINCT FROM r.a)",
    "EXISTS (SELECT 1 FROM s WHERE coalesce(r.a, 2) = s.a)",
    "EXISTS (SELECT 1 FROM s LEFT JOIN n ON s.a = n.k WHERE s.d = r.b AND n.v IS NULL)",
    "EXISTS (SELECT s.a FROM s GROUP BY s.a HAVING COUNT(*) > r.b)",
    "EXISTS (SELECT s.a FROM s WHERE s.a = r.a GROUP BY s.a HAVING MAX(s.d) > 1)",
    "EXISTS (SELECT d FROM s WHERE s.a = r.a UNION SELECT k FROM n WHERE n.k = r.b)",
    "EXISTS (SELECT d FROM s WHERE s.a = r.a EXCEPT SELECT k FROM n WHERE n.k > r.b)",
    "EXISTS (SELECT d FROM s WHERE s.a = r.a LIMIT 1)",
    "EXISTS (SELECT 1 FROM (SELECT d FROM s WHERE s.a = r.a) q WHERE q.d > 1)",
    "EXISTS (SELECT 1 FROM (SELECT d FROM s WHERE s.a > r.a) q, n WHERE n.k = q.d AND n.v < r.b)",
    "a IN (SELECT a FROM s)",
    "a IN (SELECT k FROM n)",
    "a IN (SELECT a FROM s WHERE d > 2)",
    "a IN (SELECT a FROM s WHERE s.d = r.b)",
    "a IN (SELECT a FROM s WHERE s.d < r.b)",
    "a IN (SELECT k FROM n WHERE n.v = r.b)",
    "a + 1 IN (SELECT a FROM s)",
    "a IN (SELECT s.a + r.b FROM s)",
    "a IN (SELECT r.b FROM s WHERE s.d > 1)",
    "b < ANY (SELECT r.a FROM s WHERE s.d > 1)",
    "a IN (SELECT a FROM s UNION ALL SELECT b FROM n WHERE n.k = r.b)",
    "a IN (SELECT MAX(s.d) FROM s WHERE s.a = r.b HAVING COUNT(*) > 0)",
    "a IN (SELECT MAX(s.d) FROM s WHERE s.a <= r.b HAVING COUNT(*) > 0)",
    "a IN (SELECT d FROM s WHERE s.a < r.b GROUP BY d HAVING COUNT(*) >= r.a)",
    "NULL IN (SELECT a FROM s)",
    "1 IN (SELECT a FROM s WHERE s.d = r.b)",
    "a IN (SELECT NULL FROM s)",
    "NULL IN (SELECT NULL FROM s)",
    "NULL < ANY (SELECT d FROM s WHERE s.a < r.a)",
    "EXISTS (SELECT NULL FROM s WHERE s.a = r.a)",
    "b = ANY (SELECT d FROM s)",
    "b < ANY (SELECT d FROM s)",
    "b >= ANY (SELECT d FROM s WHERE s.a = r.a)",
    "b <> ANY (SELECT d FROM s WHERE s.a = r.a)",
    "b > ANY (SELECT d FROM s WHERE s.a < r.a)",
    "b < ALL (SELECT d FROM s)",
    "b = ALL (SELECT d FROM s)",
    "b <> ALL (SELECT d FROM s)",
    "b <= ALL (SELECT d FROM s WHERE s.a = r.a)",
    "b <= ALL (SELECT d FROM s WHERE s.a <> r.a)",
    "b > ALL (SELECT k FROM n)",
    "c < ANY (SELECT c FROM r x WHERE x.a = r.b)",
    "(SELECT d FROM s WHERE s.a = r.a ORDER BY d LIMIT 1) > 1",
    "(SELECT MIN(d) FROM s) IN (SELECT k FROM n)",
    "(SELECT MIN(d) FROM s WHERE s.a <= r.a) IN (SELECT a FROM s x WHERE x.d >= r.b)",
    "(SELECT MIN(d) FROM s) = (SELECT MAX(d) FROM s)",
]


def random_stream(rng: random.Random, width: int, *, nullable: bool) -> list[tuple[list, int, int, int]]:
    rows = []
    for _ in range(rng.choice([0, 2, 5, 8])):
        values = [rng.choice([1, 1, 2, 2, 3, *([None] if nullable else [])]) for _ in range(width)]
        start = rng.randrange(HORIZON - 2)
        rows.append((values, start, rng.choice([start + 1, start + 2, HORIZON, INFINITY]), rng.choice([1, 1, 2])))
    return rows


def random_inputs(seed: int) -> dict[str, Delta]:
    rng = random.Random(seed)
    schemas = bind_script(STREAMS).catalog.sources()
    letters = {1: "p", 2: "q", 3: "p", None: None}
    r = [((a, b, letters[c]), *rest) for (a, b, c), *rest in random_stream(rng, 3, nullable=True)]
    s = [(tuple(values), *rest) for values, *rest in random_stream(rng, 2, nullable=True)]
    n = [((k, float(v)), *rest) for (k, v), *rest in random_stream(rng, 2, nullable=False)]
    return {name: Delta.from_rows(schemas[name], rows) for name, rows in (("r", r), ("s", s), ("n", n))}


INPUTS = {seed: random_inputs(seed) for seed in range(SEEDS)}


@pytest.fixture(scope="module")
def snapshots():
    """For all inputs, at every instant, a schema whose tables are the snapshots."""
    connection = duckdb.connect()
    found = []
    for seed, inputs in INPUTS.items():
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


def check(sql: str, oracle: str, snapshots) -> None:
    plan = bind_script(STREAMS + sql).result.plan
    assert all(len(set(node.schema.names)) == len(node.schema.names) for node in plan.walk())
    connection, places = snapshots
    histories = {}
    for seed, inputs in INPUTS.items():
        step = by_hand({"q": plan}).tick(inputs, dict.fromkeys(inputs, INFINITY))["q"]
        assert step.frontier == INFINITY
        histories[seed] = History.of(plan.schema, [step.delta])
    for seed, instant, schema in places:
        connection.execute(f"USE {schema}")
        expected = Counter(freeze(row) for row in connection.execute(oracle).fetchall())
        assert histories[seed].snapshot(instant) == expected, (seed, instant)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(
    "frame",
    [
        "SELECT * FROM r WHERE {}",
        "SELECT * FROM r WHERE NOT ({})",
        "SELECT * FROM r WHERE {} OR b = 1",
        "SELECT a, b, {} AS x FROM r",
    ],
    ids=["where", "not", "or", "select"],
)
def test_a_condition_has_its_three_values_everywhere(frame: str, condition: str, snapshots):
    sql = frame.format(condition)
    check(sql, sql, snapshots)


# (text, text for DuckDB if it must be another one): at the top, a scalar aggregate of nothing is no row here; and
# rows are compared value by value, where DuckDB takes NULL for a value.
QUERIES: list[str | tuple[str, str]] = [
    # scalar sub-queries
    "SELECT a, (SELECT MAX(d) FROM s WHERE s.a < r.a) AS m FROM r",
    "SELECT a, (SELECT MAX(d) FROM s WHERE s.a < r.a OR r.a IS NULL) AS m FROM r",
    "SELECT a, (SELECT SUM(s.d * r.b) FROM s WHERE s.a = r.a) AS m FROM r",
    "SELECT a, (SELECT SUM(s.d) FILTER (WHERE s.d > r.b) FROM s) AS m FROM r",
    "SELECT a, (SELECT r.b + MAX(s.d) FROM s WHERE s.a = r.a) AS m FROM r",
    (
        "SELECT a, (SELECT r.b FROM s HAVING COUNT(*) > 1) AS m FROM r",
        "SELECT a, (SELECT r.b FROM (SELECT COUNT(*) n FROM s) WHERE n > 1) FROM r",
    ),
    "SELECT a, (SELECT coalesce(MAX(s.d), r.b) FROM s WHERE s.a = r.a HAVING COUNT(*) > 0) AS m FROM r",
    "SELECT a, (SELECT MAX(d) FROM s WHERE s.a = r.a HAVING MIN(d) < r.b) AS m FROM r",
    "SELECT a, (SELECT COUNT(*) FROM s WHERE s.a < r.a) AS m FROM r",
    "SELECT a FROM r WHERE (SELECT COUNT(*) FROM s WHERE s.a < r.a) = 0",
    "SELECT a, (SELECT MAX(d) FROM s WHERE s.a + 1 = r.a) AS m FROM r",
    "SELECT a, (SELECT MAX(d) FROM s WHERE s.a + 1 = r.a * 2 AND s.d > r.b) AS m FROM r",
    "SELECT a, (SELECT MAX(v) FROM n WHERE n.v = r.a) AS m FROM r",
    "SELECT a, (SELECT d FROM s WHERE s.a = r.a ORDER BY d DESC NULLS LAST LIMIT 1) AS m FROM r",
    "SELECT a, (SELECT d FROM s WHERE s.a <= r.a ORDER BY d NULLS LAST, s.a NULLS LAST LIMIT 1 OFFSET 1) AS m FROM r",
    "SELECT a, (SELECT d + r.b FROM s WHERE s.a <> r.a ORDER BY d NULLS LAST LIMIT 1) AS m FROM r",
    "SELECT a, (SELECT d FROM s ORDER BY abs(s.d - r.b) NULLS LAST, d NULLS LAST LIMIT 1) AS m FROM r",
    "SELECT a, (SELECT q.m FROM (SELECT a, MAX(d) AS m FROM s GROUP BY a) q WHERE q.a = r.b) AS m FROM r",
    "SELECT a, (SELECT MAX(q.m) FROM (SELECT MIN(d) AS m FROM s WHERE s.a <= r.a GROUP BY s.a) q) AS m FROM r",
    "SELECT a, (SELECT DISTINCT 7 FROM s WHERE s.a = r.a) AS m FROM r",
    "SELECT a, (SELECT MAX(x) FROM (SELECT d AS x FROM s WHERE s.a = r.a UNION ALL SELECT k FROM n WHERE "
    "n.k < r.b) q) AS m FROM r",
    "SELECT a, (WITH q AS (SELECT d, a FROM s WHERE d > 1) SELECT MAX(q.d) FROM q WHERE q.a < r.a) AS m FROM r",
    "SELECT a, (SELECT MAX(d) FROM s WHERE s.a < (SELECT MAX(k) FROM n WHERE n.v < r.b)) AS m FROM r",
    "SELECT a, (SELECT MAX((SELECT MIN(k) FROM n WHERE n.k > s.a AND n.v >= r.b)) FROM s) AS m FROM r",
    "SELECT a, CASE WHEN EXISTS (SELECT 1 FROM s WHERE s.a = r.a) THEN (SELECT MAX(d) FROM s WHERE s.a = "
    "r.a) ELSE -1 END AS m FROM r",
    "SELECT a, CASE WHEN a NOT IN (SELECT a FROM s) THEN 'out' WHEN b > ALL (SELECT d FROM s) THEN 'top' "
    "END AS m FROM r",
    "SELECT a, CASE a IN (SELECT a FROM s) WHEN TRUE THEN 1 WHEN FALSE THEN 0 END AS m FROM r",
    "SELECT x.a, (SELECT MAX(y.b) FROM r y WHERE y.a < x.a AND y.c = x.c) AS m FROM r x, s WHERE x.a = s.a",
    # several in one query
    "SELECT a, EXISTS (SELECT 1 FROM s WHERE s.a = r.a) AS e, a IN (SELECT k FROM n) AS i, b < ALL (SELECT "
    "d FROM s) AS l FROM r",
    "SELECT * FROM r WHERE (EXISTS (SELECT 1 FROM s WHERE s.a = r.a) OR a IN (SELECT k FROM n)) AND NOT (b "
    "IN (SELECT d FROM s) AND c = 'p')",
    "SELECT * FROM r WHERE a IN (SELECT a FROM s WHERE d IN (SELECT k FROM n WHERE n.v <= r.b)) OR b NOT "
    "IN (SELECT d FROM s WHERE s.a < r.a)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND NOT EXISTS (SELECT 1 FROM n WHERE "
    "n.k = s.d AND NOT EXISTS (SELECT 1 FROM s z WHERE z.a = n.k AND z.d < r.b)))",
    # groups
    "SELECT a, COUNT(*) AS m FROM r GROUP BY a HAVING a IN (SELECT d FROM s) OR COUNT(*) > 1",
    "SELECT a, COUNT(*) AS m FROM r GROUP BY a HAVING MAX(b) > ANY (SELECT d FROM s WHERE s.a = r.a) OR a = 1",
    "SELECT a, COUNT(*) AS m FROM r GROUP BY a HAVING EXISTS (SELECT 1 FROM s WHERE s.a < r.a)",
    "SELECT a, COUNT(*) AS m FROM r GROUP BY a HAVING COUNT(*) NOT IN (SELECT d FROM s WHERE s.a < r.a)",
    "SELECT a + 1 AS k, COUNT(*) AS m FROM r GROUP BY a + 1 HAVING a + 1 IN (SELECT d FROM s)",
    "SELECT a, (SELECT MAX(d) FROM s WHERE s.a < r.a) AS m, MAX(b) IN (SELECT d FROM s) AS i FROM r GROUP BY a",
    "SELECT a, MAX(b) = (SELECT MAX(d) FROM s WHERE s.a = r.a) AS m FROM r GROUP BY a",
    "SELECT a, SUM(CASE WHEN b IN (SELECT d FROM s) THEN 1 ELSE 0 END) AS m FROM r GROUP BY a",
    "SELECT a, COUNT(*) FILTER (WHERE b > ALL (SELECT d FROM s WHERE s.a <= r.a)) AS m, MAX(b) AS x FROM r GROUP BY a",
    (
        "SELECT MAX((SELECT MIN(k) FROM n WHERE n.k > r.a)) AS m FROM r",
        "SELECT MAX((SELECT MIN(k) FROM n WHERE n.k > r.a)) AS m FROM r HAVING COUNT(*) > 0",
    ),
    # rows
    "SELECT * FROM r WHERE (a, b) IN (SELECT a, d FROM s)",
    "SELECT * FROM n WHERE (k, v) NOT IN (SELECT k + 1, v FROM n)",
    (
        "SELECT * FROM r WHERE (a, b) NOT IN (SELECT a, d FROM s)",
        "SELECT * FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE (r.a = s.a AND r.b = s.d) IS DISTINCT FROM FALSE)",
    ),
    (
        "SELECT * FROM r WHERE (a, b) NOT IN (SELECT k, d FROM s, n WHERE s.a = n.k)",
        "SELECT * FROM r WHERE NOT EXISTS (SELECT 1 FROM s, n WHERE s.a = n.k AND (r.a = k AND r.b = s.d) "
        "IS DISTINCT FROM FALSE)",
    ),
    (
        "SELECT a, b, (a, b) IN (SELECT a, d FROM s) AS i FROM r",
        "SELECT a, b, (SELECT bool_or(r.a = s.a AND r.b = s.d) FROM s) IS TRUE OR "
        "(CASE WHEN EXISTS (SELECT 1 FROM s WHERE (r.a = s.a AND r.b = s.d) IS NULL) THEN NULL ELSE FALSE "
        "END) FROM r",
    ),
    (
        "SELECT a, b, (a, b) NOT IN (SELECT a, d FROM s WHERE s.d <= r.b) AS i FROM r",
        "SELECT a, b, NOT ((SELECT bool_or(r.a = s.a AND r.b = s.d) FROM s WHERE s.d <= r.b) IS TRUE OR "
        "(CASE WHEN EXISTS (SELECT 1 FROM s WHERE s.d <= r.b AND (r.a = s.a AND r.b = s.d) IS NULL) THEN "
        "NULL ELSE FALSE END)) FROM r",
    ),
    (
        "SELECT * FROM r WHERE (a, b) = (SELECT MAX(a), MIN(d) FROM s)",
        "SELECT * FROM r WHERE a = (SELECT MAX(a) FROM s) AND b = (SELECT MIN(d) FROM s)",
    ),
    (
        "SELECT a, b, (a, b) = (SELECT MAX(a), MIN(d) FROM s) AS x, (a, b) <> (SELECT MAX(a), MIN(d) FROM "
        "s) AS y FROM r",
        "SELECT a, b, a = (SELECT MAX(a) FROM s) AND b = (SELECT MIN(d) FROM s), "
        "a <> (SELECT MAX(a) FROM s) OR b <> (SELECT MIN(d) FROM s) FROM r",
    ),
    (
        "SELECT * FROM r WHERE (a, b) < (SELECT MAX(a), MAX(d) FROM s WHERE s.a <= r.b)",
        "SELECT a, b, c FROM (SELECT *, (SELECT MAX(a) FROM s WHERE s.a <= r.b) AS x, "
        "(SELECT MAX(d) FROM s WHERE s.a <= r.b) AS y FROM r) WHERE a < x OR (a = x AND b < y)",
    ),
    (
        "SELECT * FROM r WHERE (a, b) >= ALL (SELECT a, d FROM s)",
        "SELECT * FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE (r.a > s.a OR (r.a = s.a AND r.b >= s.d)) "
        "IS DISTINCT FROM TRUE)",
    ),
    (
        "SELECT * FROM r WHERE (a, b) <> ANY (SELECT a, d FROM s) OR b = 2",
        "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE r.a <> s.a OR r.b <> s.d) OR b = 2",
    ),
    # lists
    "SELECT * FROM r WHERE a IN (SELECT a FROM s WHERE s.d = r.b ORDER BY a NULLS LAST LIMIT 1)",
    "SELECT * FROM r WHERE b >= ALL (SELECT d FROM s WHERE s.a >= r.a ORDER BY d NULLS LAST LIMIT 2)",
    "SELECT * FROM r WHERE a IN (SELECT d FROM s WHERE s.a <= r.b QUALIFY ROW_NUMBER() OVER (PARTITION BY "
    "s.a ORDER BY d NULLS LAST) = 1)",
    "SELECT * FROM r WHERE a IN (SELECT RANK() OVER (ORDER BY d) FROM s WHERE s.a <= r.b)",
    "SELECT * FROM r WHERE b IN (SELECT SUM(d) OVER (PARTITION BY s.a) FROM s WHERE s.a <= r.a)",
    "SELECT * FROM r WHERE a IN (SELECT d FROM s WHERE s.a = r.b INTERSECT ALL SELECT k FROM n WHERE n.v <= r.a)",
    "SELECT * FROM r WHERE a IN ((SELECT d FROM s WHERE s.a = r.b) UNION (SELECT k FROM n WHERE n.v <= "
    "r.a) ORDER BY 1 NULLS LAST LIMIT 1)",
    "SELECT * FROM r WHERE EXISTS (SELECT s.a FROM s WHERE s.a >= r.a GROUP BY ROLLUP(s.a) HAVING COUNT(*) > r.b)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s, n WHERE s.a = n.k AND n.v < r.b)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s JOIN n ON s.a = n.k AND n.v < r.b)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s LEFT JOIN n ON s.a = n.k WHERE coalesce(n.v, 2) > r.b)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM (SELECT a, COUNT(*) AS m FROM s WHERE s.d <= r.b GROUP BY "
    "a) q WHERE q.m >= r.a)",
    "SELECT * FROM r WHERE EXISTS (SELECT q.* FROM (SELECT * FROM s WHERE s.d <= r.b) q JOIN (SELECT k "
    "FROM n WHERE n.v > r.a) p ON p.k = q.a)",
    # names
    "SELECT x.a FROM r x WHERE EXISTS (SELECT 1 FROM s r WHERE r.a = x.a)",
    "SELECT r.b FROM r, s WHERE EXISTS (SELECT 1 FROM n, (SELECT a, d FROM s) z WHERE a = k AND d = r.b)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM (SELECT a AS r, d FROM s) q WHERE q.r = r.a)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM (SELECT a, d FROM s WHERE s.a <= r.a) q(x, y) WHERE x = r.a)",
    "SELECT a, COUNT(*) AS d FROM r GROUP BY a HAVING EXISTS (SELECT 1 FROM s WHERE d > 1)",
    "SELECT a, COUNT(*) AS d FROM r GROUP BY a HAVING d IN (SELECT d FROM s) OR d > 2",
    "SELECT a, (SELECT MAX(d) AS b FROM s WHERE s.a <= r.a HAVING b > 1) AS m FROM r",
    "SELECT * FROM r WHERE a IN (WITH q AS (SELECT a, d FROM s) SELECT q.a FROM q WHERE q.d <= r.b)",
    "WITH q AS (SELECT a, d FROM s WHERE a IN (SELECT k FROM n)) SELECT * FROM r WHERE EXISTS (SELECT 1 "
    "FROM q WHERE q.d < r.b)",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s x JOIN s y USING (a) WHERE x.d < y.d AND a <= r.a)",
    "SELECT * FROM (SELECT a, b FROM r WHERE a IN (SELECT a FROM s)) q WHERE b < ANY (SELECT d FROM s "
    "WHERE s.a <= q.a)",
    # deeper
    "SELECT a, (SELECT MAX(CASE WHEN s.d IN (SELECT k FROM n WHERE n.v < r.b) THEN 1 ELSE 0 END) FROM s "
    "WHERE s.a <= r.a) AS m FROM r",
    "SELECT a, (SELECT MAX(d) FROM s WHERE s.a = r.a GROUP BY s.a) AS m FROM r",
    "SELECT a, EXISTS (SELECT 1 FROM s WHERE s.d IN (SELECT k FROM n WHERE n.v IN (SELECT x.b FROM r x "
    "WHERE x.a = r.a OR x.a = s.a))) AS e FROM r",
    "SELECT k, (SELECT MAX(d) FROM s WHERE s.a < n.k OR n.k IS NULL) AS m FROM n GROUP BY ROLLUP(k) HAVING "
    "COUNT(*) > 0",
    "SELECT k, k IN (SELECT a FROM s WHERE d > 1) AS m FROM n GROUP BY ROLLUP(k) HAVING COUNT(*) > 0",
    "SELECT * FROM r WHERE EXISTS (SELECT k, COUNT(*) FROM n GROUP BY ROLLUP(k) HAVING COUNT(*) > 0 AND (k "
    "= r.a OR k IS NULL AND r.b = 1))",
    "SELECT * FROM r WHERE b IN (SELECT grouping_id(k, v) + r.a FROM n WHERE n.v <> r.a GROUP BY ROLLUP(k, v))",
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM (SELECT d FROM s WHERE s.a <= r.a) q LEFT JOIN n ON n.k = "
    "q.d WHERE n.k IS NULL)",
    "SELECT * FROM r WHERE 1 IN (SELECT a FROM s) OR 'p' < ANY (SELECT c FROM r x WHERE x.a = r.a)",
    "SELECT * FROM r ORDER BY (SELECT MAX(d) FROM s WHERE s.a = r.a) NULLS LAST, a NULLS LAST, b NULLS "
    "LAST, c NULLS LAST LIMIT 2",
    # conditions of joins
    "SELECT r.a, s.d FROM r JOIN s ON r.a = s.a AND EXISTS (SELECT 1 FROM n WHERE n.k = s.d)",
    "SELECT r.a, s.d FROM r JOIN s ON r.a = s.a OR s.d IN (SELECT k FROM n WHERE n.v < r.b)",
    "SELECT r.a, s.d, n.v FROM r JOIN s ON r.a = s.a AND r.b > (SELECT MIN(k) FROM n) LEFT JOIN n ON n.k = s.d",
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q if isinstance(q, str) else q[0])
def test_every_snapshot_is_the_relational_answer(query: str | tuple[str, str], snapshots):
    check(*(query if isinstance(query, tuple) else (query, query)), snapshots)


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q if isinstance(q, str) else q[0])
def test_revised_and_disordered_streams_give_the_same_answer(query: str | tuple[str, str]):
    plan = bind_script(STREAMS + (query if isinstance(query, str) else query[0])).result.plan
    for form in (plan, optimize(plan).plan):
        check_case(form, streams(Dice(1), form), 1, thorough=False)


# -- random queries ---------------------------------------------------------------------------------------------------

TABLES = {"r": ("a", "b"), "s": ("a", "d"), "n": ("k",)}
Scopes = tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]
"""From the outermost query to the innermost: the aliases of each with their columns."""


class RandomQuery:
    """Sub-queries in each other, of all kinds and at all places, that may name what is in sight anywhere around them."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.aliases = 0

    def text(self) -> str:
        source, mine = self.source((), 1)
        (alias, columns), *_ = mine
        if self.dice.random() < 0.2:
            key, groups = f"{alias}.{columns[0]}", (((alias, columns[:1]),),)
            chosen = f"{key}, MAX({alias}.{columns[-1]}), {self.predicate(groups, 2)}"
            where, having = self.predicate((mine,), 1), self.predicate(groups, 2)
            return f"SELECT {chosen} FROM {source} WHERE {where} GROUP BY {key} HAVING {having}"
        chosen = ", ".join(f"{a}.{c}" for a, columns in mine for c in columns)
        mark, where = (self.predicate((mine,), 2) for _ in range(2))
        return f"SELECT {chosen}, {mark} AS p FROM {source} WHERE {where}"

    def one(self, *choices: str) -> str:
        return self.dice.choice(choices)

    def column(self, scopes: Scopes, outwards: float = 0.35) -> str:
        place = len(scopes) - 1
        while place > 0 and self.dice.random() < outwards:
            place -= 1
        alias, columns = self.dice.choice(scopes[place])
        return f"{alias}.{self.dice.choice(columns)}"

    def value(self, scopes: Scopes, depth: int) -> str:
        kind = self.dice.random()
        if depth > 0 and kind < 0.1:
            return self.scalar(scopes, depth - 1)
        if kind < 0.25:
            return self.one("1", "2", "3")
        return self.column(scopes) + (self.one(" + 1", " + 2") if kind < 0.35 else "")

    def operator(self) -> str:
        return self.one("=", "=", "=", "<", "<=", ">", ">=", "<>")

    def predicate(self, scopes: Scopes, depth: int) -> str:
        kind = self.dice.random() if depth > -2 else 1
        if depth > 0 and kind < 0.45:
            return self.condition(scopes, depth - 1)
        if kind < 0.6:
            left, right = (self.predicate(scopes, depth - 1) for _ in range(2))
            return f"({left} {self.one('AND', 'OR')} {right})"
        if kind < 0.66:
            return f"NOT ({self.predicate(scopes, depth - 1)})"
        if kind < 0.72:
            return f"{self.column(scopes)} IS NULL"
        if kind < 0.76:
            values = self.column(scopes), self.column(scopes)
            return f"CASE WHEN {self.predicate(scopes, depth - 1)} THEN {values[0]} ELSE {values[1]} END > 1"
        return f"{self.column(scopes, 0.5)} {self.operator()} {self.value(scopes, depth - 1)}"

    def condition(self, scopes: Scopes, depth: int) -> str:
        kind, negation = self.dice.random(), self.one("", "", "NOT ")
        if kind < 0.35:
            return f"{negation}EXISTS ({self.rows(scopes, depth)})"
        value = self.value(scopes, depth)
        if kind < 0.65:
            return f"{value} {negation}IN ({self.rows(scopes, depth)})"
        if kind < 0.85:
            return f"{value} {self.operator()} {self.one('ANY', 'ALL')} ({self.rows(scopes, depth)})"
        return f"{value} {self.operator()} {self.scalar(scopes, depth)}"

    def table(self) -> tuple[str, str, tuple[str, ...]]:
        self.aliases += 1
        name = self.dice.choice(list(TABLES))
        return name, f"t{self.aliases}", TABLES[name]

    def source(self, scopes: Scopes, depth: int) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
        """A FROM clause: one table, two joined ones, or one beside a sub-query that may name outer columns."""
        name, alias, columns = self.table()
        mine, kind = ((alias, columns),), self.dice.random()
        if kind > 0.35 or (kind > 0.25 and depth <= 0):
            return f"{name} {alias}", mine
        other, second, theirs = self.table()
        if kind < 0.12:
            both = (*mine, (second, theirs))
            return f"{name} {alias} JOIN {other} {second} ON {self.predicate((*scopes, both), depth - 1)}", both
        if kind < 0.25:
            on = f"{alias}.{self.dice.choice(columns)} = {second}.{self.dice.choice(theirs)}"
            return f"{name} {alias} LEFT JOIN {other} {second} ON {on}", (*mine, (second, theirs))
        where = self.predicate((*scopes, ((second, theirs),)), depth - 1)
        derived = f"(SELECT {second}.{theirs[0]} AS x FROM {other} {second} WHERE {where}) q{second}"
        return f"{name} {alias}, {derived}", (*mine, (f"q{second}", ("x",)))

    def rows(self, scopes: Scopes, depth: int) -> str:
        kind = self.dice.random()
        if kind < 0.12 and depth > 0:
            both = (self.rows(scopes, depth - 1) for _ in range(2))
            return f" {self.one('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT')} ".join(both)
        source, mine = self.source(scopes, depth)
        inner = (*scopes, mine)
        where = f"{source} WHERE {self.predicate(inner, depth)}" if self.dice.random() < 0.85 else source
        if kind < 0.27:
            key, other = (f"{mine[0][0]}.{self.dice.choice(mine[0][1])}" for _ in range(2))
            return (
                f"SELECT {key} FROM {where} GROUP BY {key} HAVING MAX({other}) {self.operator()} {self.column(scopes)}"
            )
        if kind < 0.36:  # without a row there is none here, but one in SQL
            return f"SELECT {self.one('MIN', 'MAX', 'SUM')}({self.column((mine,))}) FROM {where} HAVING COUNT(*) > 0"
        return f"SELECT {self.one('', '', 'DISTINCT ')}{self.value(inner, depth - 1)} FROM {where}"

    def scalar(self, scopes: Scopes, depth: int) -> str:
        source, mine = self.source(scopes, depth)
        where = f"{source} WHERE {self.predicate((*scopes, mine), depth)}"
        own = self.column((mine,))
        if self.dice.random() < 0.25:
            return f"(SELECT {own} FROM {where} ORDER BY {own} {self.one('', 'DESC ')}NULLS LAST LIMIT 1)"
        also = f" + {self.column((*scopes, mine))}" if self.dice.random() < 0.3 else ""
        return f"(SELECT {self.one('MIN', 'MAX', 'SUM')}({own}{also}) FROM {where})"


FOUND = [11042981]
"""What the campaign has found: took minutes, since the names of its states were made from the plan walked as a tree."""


@pytest.mark.parametrize("seed", [*range(30), *FOUND])
def test_random_queries(seed: int, snapshots):
    sql = RandomQuery(seed).text()
    check(sql, sql, snapshots)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(10))
def test_many_random_queries(piece: int, snapshots):
    for seed in range(1000 + 50 * piece, 1000 + 50 * piece + scaled(50)):
        sql = RandomQuery(fresh(seed)).text()
        check(sql, sql, snapshots)
