"""What is known of the columns of a query: whether they can be NULL, and what a user is told about them."""

from __future__ import annotations

import pytest

from headwater.language.binder import bind_script

STREAMS = """
CREATE STREAM a (k INT NOT NULL, v INT);
CREATE STREAM b (k INT NOT NULL, w INT NOT NULL);
CREATE STREAM e (k INT NOT NULL, i BIGINT) ORDERED BY i;
"""
NULLABLE = [
    ("SELECT k, COUNT(*) AS n, GROUPING(k) AS g FROM a GROUP BY ROLLUP(k)", "k"),
    ("SELECT k, w FROM b GROUP BY k, ROLLUP(w)", "w"),
    ("SELECT k, w, SUM(w) AS s FROM b GROUP BY GROUPING SETS ((k, w), (k))", "ws"),
    ("SELECT k, w + 1 AS x FROM b GROUP BY CUBE(k, w)", "kx"),
    ("SELECT k, v FROM a ORDER BY v LIMIT 2", "v"),
    ("SELECT k AS x, ROW_NUMBER() OVER (ORDER BY v) AS r, RANK() OVER (ORDER BY k) AS q FROM a", ""),
    ("SELECT k, SUM(w) OVER (PARTITION BY k) AS s, COUNT(*) OVER () AS n FROM b", "s"),
    ("SELECT k, v, w FROM a LEFT JOIN b USING (k)", "vw"),
    ("SELECT k, w FROM b RIGHT JOIN a USING (k)", "w"),
    ("SELECT k, v, w, a.k AS x, b.k AS y FROM a FULL JOIN b USING (k)", "vwxy"),
    ("SELECT k, v, w FROM a NATURAL FULL JOIN b", "vw"),
    ("SELECT x, y FROM (VALUES (1, NULL), (2, 'b')) q(x, y)", "y"),
    ("SELECT k FROM a UNION BY NAME SELECT k, w FROM b", "w"),
    ("SELECT v FROM a UNION ALL SELECT w FROM b", "v"),
    ("SELECT w FROM b EXCEPT SELECT v FROM a", ""),
    ("SELECT v FROM a INTERSECT SELECT w FROM b", ""),
    ("SELECT k, i, window_start AS s, window_end AS t FROM TUMBLE(TABLE e, DESCRIPTOR(i), 10)", "i"),
    ("SELECT window AS w, COUNT(*) AS n FROM e GROUP BY window(i, 10)", ""),
]


@pytest.mark.parametrize(("query", "nullable"), NULLABLE, ids=[query for query, _ in NULLABLE])
def test_a_column_is_nullable_only_where_it_can_be_null(query: str, nullable: str):
    found = bind_script(f"{STREAMS} CREATE STREAM q AS {query}").catalog.get("q")
    assert "".join(f.name for f in found.fields if f.nullable) == nullable


NOTICES = [
    ("SELECT k FROM a ORDER BY v", "ORDER_NOT_KEPT"),
    ("SELECT k FROM a UNION ALL SELECT k FROM b ORDER BY k", "ORDER_NOT_KEPT"),
    ("SELECT k FROM (SELECT k FROM a ORDER BY v) LIMIT 2", "ORDER_NOT_KEPT"),
    ("SELECT k FROM a ORDER BY v LIMIT 1", ""),
    ("SELECT k FROM a ORDER BY v OFFSET 1", ""),
    ("SELECT DISTINCT ON (k) v FROM a ORDER BY v", ""),
    ("SELECT k FROM a LIMIT 1", ""),
    ("SELECT * FROM TUMBLE(TABLE (SELECT k AS window_start, i FROM e), DESCRIPTOR(i), 5)", "RENAMED_COLUMN"),
    ("SELECT * FROM a, b", "RENAMED_COLUMN"),
    ("SELECT k, COUNT(*) AS n FROM SESSION(TABLE e, DESCRIPTOR(i), 5) GROUP BY k", "UNBOUNDED_STATE"),
    ("SELECT k, COUNT(*) AS n FROM e GROUP BY k, session_window(i, 5)", "UNBOUNDED_STATE"),
    ("SELECT k FROM SESSION(TABLE e, DESCRIPTOR(i), 5)", ""),
    ("SELECT k, COUNT(*) AS n FROM TUMBLE(TABLE e, DESCRIPTOR(i), 5) GROUP BY k", ""),
    ("SELECT k FROM a WINDOW(RANGE UNBOUNDED) ORDER BY v LIMIT 1", "UNBOUNDED_STATE"),
]


@pytest.mark.parametrize(("query", "code"), NOTICES, ids=[query for query, _ in NOTICES])
def test_a_user_is_told_what_the_query_does_not_do(query: str, code: str):
    assert [n.code for n in bind_script(STREAMS + query).notices] == ([code] if code else [])
