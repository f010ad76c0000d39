"""Plans as plain data: what checkpoints keep, and identities that last."""

from __future__ import annotations

import pytest

from headwater.algebra import nodes as n
from headwater.algebra.plan_data import from_json, identity, to_data, to_json
from headwater.errors import StateError
from headwater.expressions.nodes import Column
from headwater.language.binder import bind_script
from headwater.model.schema import Schema
from headwater.testing.cases import OPERATORS
from headwater.testing.choices import Dice
from headwater.testing.plan_text import parse_plan

SCRIPT = """
    CREATE STREAM s (x INT, y STRING, f BOOLEAN, k BIGINT, d DECIMAL(10,2), v STRUCT<a: INT, b: INT>, l ARRAY<INT>);
    CREATE STREAM t (a INT, b STRING);
"""
QUERIES = [
    "SELECT x + 1 AS z, y LIKE '%,(%' AS b, -x AS m FROM s WHERE x BETWEEN 1 AND 2 OR y IN ('a', 'x')",
    "SELECT CASE WHEN s.x > 1 THEN 'a' ELSE t.b END AS c FROM s LEFT JOIN t ON s.x = t.a AND s.y < t.b",
    "SELECT CAST(y AS DATE) AS d, TRY_CAST(y AS INT) AS i, v.a AS a, l[0] AS l, d * 2 AS e FROM s",
    "SELECT k, COUNT(DISTINCT x) AS n, LISTAGG(y, ',') AS l FROM s WINDOW(ROWS 3 SLIDE 2) GROUP BY k HAVING SUM(x) > 1",
    "SELECT * FROM (VALUES (1, 'a', DATE '2026-01-02'), (2, NULL, NULL)) AS v(i, s, d)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_plans_of_queries_read_back(query: str):
    plan = bind_script(f"{SCRIPT}; {query}").result.plan
    assert from_json(to_json(plan)) == plan


@pytest.mark.parametrize("name", OPERATORS)
def test_random_operators_read_back(name: str):
    for seed in range(4):
        plan = OPERATORS[name](Dice(seed))
        assert from_json(to_json(plan)) == plan


def test_a_part_that_is_shared_is_written_once():
    shared = n.Distinct(n.Source("s", Schema.of(x="INT")))
    plan = n.Union((shared, n.Union((shared, shared))))
    assert len(to_data(plan)) == 4
    assert from_json(to_json(plan)) == plan


def test_an_identity_is_of_what_is_computed():
    text = """
        aggregate by "k": COUNT(*) AS "n" BIGINT
          window range 10
            filter "x" + 1 > 2
              source s (k BIGINT, x INT) chronons final
    """
    plan = parse_plan(text)
    # Another version of the package must give it the same name: states are found by it.
    assert identity(plan, {}) == "834d6ec98b9c892b70dd1f38"
    assert identity(parse_plan(text.replace("> 2", "> 3")), {}) != identity(plan, {})


@pytest.mark.parametrize(
    "text", ["", "[", "[]", '[{"node": "os.system"}]', '[{"input": 3}]', '[{"node": "Filter", "by": 1}]']
)
def test_what_is_none_of_ours_is_refused(text: str):
    with pytest.raises(StateError, match="NOT_OUR_DATA"):
        from_json(text)


def test_a_column_keeps_its_type():
    plan = n.Project(n.Source("s", Schema.of(x="INT")), (("y", Column("x", Schema.of(x="INT").types[0])),))
    assert from_json(to_json(plan)).schema == plan.schema
