"""What plans show of an expression can be read again, and its type is the one that DuckDB gives to its text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.language.test_functions import CASES, STREAM

from headwater.expressions.connection import infer, register
from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.nodes import Expression, Literal
from headwater.expressions.text import to_text
from headwater.language.binder import bind_script
from headwater.model.schema import Schema
from headwater.testing.expression_text import bind_text

MORE = [
    "i > 1 AND l < 2 AND b",
    "(i > 1 OR b) AND NOT (b AND i = 2)",
    "i > 1 AND (l < 2 AND (b OR z IS NULL))",
    "b AND CAST(s AS INT) > 1",
    "b AND i = 1 AND CAST(s AS INT) > 1 AND l = 2",
    "b OR CAST(s AS INT) > 1 OR l = 2",
    "(i > 1) = b",
    "(i IS NULL) = (b IS TRUE)",
    "NOT b IS FALSE",
    "(NOT b) = TRUE",
    "i - (l - 1) - -1",
    "-(-i) * (2 + i) % 3",
    "- 1.5 + -i",
    "2 DIV i DIV 3",
    "(i & 3) * 2 | ~i ^ 1",
    "(i + 1) & 3 || s",
    "s || (s || 'it''s \\\\ {0} \"x\"')",
    "i BETWEEN -1 AND 1 + i",
    "i NOT BETWEEN 1 AND 2 AND b",
    "(b AND i = 1) IN (TRUE, b)",
    "s NOT IN ('a', 'b')",
    "s LIKE 'a%' AND s NOT LIKE '%\\\\_b' AND s ILIKE s AND s LIKE 'a!%' ESCAPE '!'",
    "s RLIKE '^a'",
    "CASE WHEN i > 1 THEN 'a' WHEN b THEN s END",
    "CASE i WHEN 1 THEN l ELSE 2 END + 1",
    "CASE s WHEN 'a' THEN 1.5 WHEN 'b' THEN i END",
    "t + INTERVAL 1 DAY",
    "day - INTERVAL '1' MONTH",
    "day + INTERVAL '1' MONTH + INTERVAL '2' DAY",
    "t - INTERVAL '1' HOUR * 3",
    "i = '5' AND d > '1.50' AND t > '2024-01-01' AND day = '2024-02' AND b = 'true'",
    "l > 99999999999 AND i + 99999999999999999999 > -2147483648",
    "CAST(1 AS TINYINT) + CAST(1 AS SMALLINT) + 1L",
    "CAST(CAST(i AS BIGINT) AS BIGINT)",
    "CAST(NULL AS STRUCT<x: INT, `a b`: ARRAY<STRING>>)",
    "TRY_CAST(s AS DECIMAL(10,2))",
    "TRY_CAST('x' AS INT)",
    "CAST('x' AS BINARY)",
    "a[0] + a[i - 1]",
    "r.x + named_struct('x', 1, 'Y z', s).x",
    "struct(i, s AS text, 1)",
    "trim(s) || trim(LEADING 'x' FROM s) || trim(TRAILING s FROM s) || trim(BOTH 'y' FROM s)",
    "extract(SECOND FROM t) + extract(DOW_ISO FROM day)",
    "dateadd(DAY, i, t)",
    "datediff(MONTH, t, day)",
    "datediff(day, t)",
    "date_trunc('mon', t)",
    "unix_timestamp(t) + unix_timestamp(s) + unix_timestamp(s, 'yyyy')",
    "to_date(s, 'yyyy-MM-dd')",
    "to_date(t)",
    "left(s, d) || left(s, '2') || left(NULL, i)",
    "levenshtein(s, NULL)",
    "nvl(i, 1) + ifnull(i, 1) + nvl2(i, 1, l) + if(b, 1, 2) + zeroifnull(i) + nullifzero(i)",
    "isnull(i) OR isnotnull(i) OR equal_null(i, 1)",
    "log(f) + log(2, f) + positive(i) + negative(5) + negative(s)",
    "mod(i, 2) + pmod(i, -3) + i % 0 + try_divide(i, 2)",
    "fl / fl + fl",
    "d * d * d",
    "greatest(CAST(1 AS TINYINT), 2, NULL)",
    "array_contains(a, 1.5)",
    "concat_ws(',', a, i, s)",
    "sha2(s, 0)",
    "NULL",
    "i + NULL",
    "i IN (NULL)",
    "timestamp(s)",
    "position('a' IN s) + locate('a', s, 2) || substring(s FROM 2 FOR 3)",
]
EXPRESSIONS = [*(sql for sql, *_ in CASES), *MORE]


def bound(sql: str) -> tuple[Expression, Schema]:
    plan = bind_script(f"{STREAM} SELECT {sql} AS v FROM one").result.plan
    ((_, expression),) = plan.expressions
    return expression, plan.inputs[0].schema


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_the_text_of_an_expression_is_read_as_the_same(sql: str):
    expression, schema = bound(sql)
    assert bind_text(to_text(expression), schema, expression.functions) == expression


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_the_type_is_that_of_the_text_for_duckdb(sql: str):
    expression, schema = bound(sql)
    columns = tuple((f.name, f.type) for f in schema)
    for part in expression.walk():
        register(part.functions)
        if not isinstance(part, Literal) or not pa.types.is_integer(part.type):
            found, inexact = infer(to_duckdb(part), columns)
            assert found == part.type
            assert not inexact or part is not expression


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nvl(i, 1)", "coalesce(i, 1)"),
        ("isnull(i)", "i IS NULL"),
        ("isnotnull(i)", "NOT (i IS NULL)"),
        ("ceiling(f)", "ceil(f)"),
        ("len(s)", "char_length(s)"),
        ("date(t)", "CAST(t AS DATE)"),
        ("if(b, 1, 2)", "CASE WHEN b THEN 1 ELSE 2 END"),
        ("mod(i, l)", "i % l"),
        ("dateadd(DAY, 1, t)", "timestampadd(DAYS, 1, t)"),
        ("extract(MON FROM t)", "date_part('month', t)"),
        ("i > 1 AND (b AND l = 2)", "((i > 1) AND b) AND l = 2"),
        ("struct(i)", "named_struct('i', i)"),
        ("trim(s)", "btrim(s)"),
        ("- 1", "negative(1)"),
        ("s RLIKE 'a'", "regexp_like(s, 'a')"),
    ],
)
def test_what_means_the_same_is_the_same(one: str, other: str):
    assert bound(one)[0] == bound(other)[0]
