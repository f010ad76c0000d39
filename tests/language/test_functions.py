"""Every scalar function of the catalogue, computed once at least, and the types of results."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from headwater.language.binder import bind_script
from headwater.language.functions import AGGREGATES, SCALARS
from headwater.model.delta import Delta
from headwater.model.history import freeze
from headwater.operators.project import ProjectOperator

STREAM = """CREATE STREAM one (i INT, l BIGINT, f DOUBLE, d DECIMAL(10,2), s STRING, b BOOLEAN, t TIMESTAMP, day DATE,
                               a ARRAY<INT>, r STRUCT<x: INT, y: STRING>, z INT, fl FLOAT, bin BINARY);"""
NOON = datetime(2026, 3, 14, 15, 9, 26, 535897)
ROW = (
    *(7, 10**12, 2.5, Decimal("12.50"), "Headwater", True, NOON, date(2026, 3, 14)),
    *([3, 1, None], {"x": 5, "y": "q"}, None, 0.5, b"\x00\xff"),
)

CASES: list[tuple[str, object, str]] = [
    # operators
    ("i + 1", 8, "INT"),
    ("i + l", 10**12 + 7, "BIGINT"),
    ("i / 2", 3.5, "DOUBLE"),
    ("i / 0", None, "DOUBLE"),
    ("i % 0", None, "INT"),
    ("i DIV 2", 3, "INT"),
    ("-i DIV 2", -3, "INT"),
    ("i * f", 17.5, "DOUBLE"),
    ("d + 1", Decimal("13.50"), "DECIMAL(13,2)"),
    ("i & 3", 3, "INT"),
    ("i | 8", 15, "INT"),
    ("i ^ 1", 6, "INT"),
    ("~i", -8, "INT"),
    ("s || '!'", "Headwater!", "STRING"),
    ("s || z", None, "STRING"),
    ("i = 7 AND NOT b", False, "BOOLEAN"),
    ("z = 1 OR b", True, "BOOLEAN"),
    ("z = 1", None, "BOOLEAN"),
    ("z <=> NULL", True, "BOOLEAN"),
    ("z IS DISTINCT FROM 1", True, "BOOLEAN"),
    ("z IS NOT NULL", False, "BOOLEAN"),
    ("b IS TRUE", True, "BOOLEAN"),
    ("i IN (1, 7)", True, "BOOLEAN"),
    ("i NOT IN (1, z)", None, "BOOLEAN"),
    ("i NOT BETWEEN 1 AND 6", True, "BOOLEAN"),
    ("s LIKE 'Head%'", True, "BOOLEAN"),
    ("s ILIKE 'head%'", True, "BOOLEAN"),
    ("s RLIKE 'w.t'", True, "BOOLEAN"),
    ("i = '7'", True, "BOOLEAN"),
    ("t > '2026-01-01'", True, "BOOLEAN"),
    ("day = DATE '2026-03-14'", True, "BOOLEAN"),
    ("t + INTERVAL 5 MINUTES", datetime(2026, 3, 14, 15, 14, 26, 535897), "TIMESTAMP"),
    ("CASE WHEN i > 5 THEN 'big' ELSE 'small' END", "big", "STRING"),
    ("CASE i WHEN 7 THEN 1 END", 1, "INT"),
    ("CAST(f AS INT)", 2, "INT"),
    ("CAST(-d AS INT)", -12, "INT"),
    ("CAST('12' AS BIGINT)", 12, "BIGINT"),
    ("TRY_CAST(s AS INT)", None, "INT"),
    ("CAST(i AS DECIMAL(10,2))", Decimal("7.00"), "DECIMAL(10,2)"),
    ("i::STRING", "7", "STRING"),
    ("a[0]", 3, "INT"),
    ("a[i - 6]", 1, "INT"),
    ("r.y", "q", "STRING"),
    ("one.r.x", 5, "INT"),
    ("'it''s'", "it's", "STRING"),
    ("5L", 5, "BIGINT"),
    ("1.5", Decimal("1.5"), "DECIMAL(2,1)"),
    ("1e2", 100.0, "DOUBLE"),
    ("NULL", None, "STRING"),
    ("EXTRACT(HOUR FROM t)", 15, "INT"),
    ("SUBSTRING(s, 5)", "water", "STRING"),
    ("SUBSTRING(s FROM 1 FOR 4)", "Head", "STRING"),
    ("TRIM('  x ')", "x", "STRING"),
    ("TRIM(BOTH 'H' FROM s)", "eadwater", "STRING"),
    ("POSITION('w' IN s)", 5, "INT"),
    ("fl", 0.5, "FLOAT"),
    ("bin", b"\x00\xff", "BINARY"),
    # conditions
    ("coalesce(z, i)", 7, "INT"),
    ("if(b, 1, 2)", 1, "INT"),
    ("ifnull(z, 3)", 3, "INT"),
    ("isnull(z)", True, "BOOLEAN"),
    ("isnotnull(z)", False, "BOOLEAN"),
    ("nullif(i, 7)", None, "INT"),
    ("nvl(z, l)", 10**12, "BIGINT"),
    ("nvl2(z, 1, 2)", 2, "INT"),
    ("greatest(i, z, 9)", 9, "INT"),
    ("least(i, f)", 2.5, "DOUBLE"),
    # numbers
    ("abs(-i)", 7, "INT"),
    ("acos(1)", 0.0, "DOUBLE"),
    ("acos(2)", math.nan, "DOUBLE"),
    ("asin(0)", 0.0, "DOUBLE"),
    ("atan(0)", 0.0, "DOUBLE"),
    ("atan2(0, 1)", 0.0, "DOUBLE"),
    ("bit_count(i)", 3, "INT"),
    ("cbrt(8)", 2.0, "DOUBLE"),
    ("ceil(f)", 3, "BIGINT"),
    ("ceiling(d)", 13, "BIGINT"),
    ("cos(0)", 1.0, "DOUBLE"),
    ("degrees(0)", 0.0, "DOUBLE"),
    ("exp(0)", 1.0, "DOUBLE"),
    ("floor(-f)", -3, "BIGINT"),
    ("isnan(f)", False, "BOOLEAN"),
    ("isnan(z)", False, "BOOLEAN"),
    ("ln(1)", 0.0, "DOUBLE"),
    ("ln(0)", None, "DOUBLE"),
    ("log(1)", 0.0, "DOUBLE"),
    ("log(2, 8)", 3.0, "DOUBLE"),
    ("log10(100)", 2.0, "DOUBLE"),
    ("log2(8)", 3.0, "DOUBLE"),
    ("mod(i, 4)", 3, "INT"),
    ("pi()", math.pi, "DOUBLE"),
    ("pow(2, 3)", 8.0, "DOUBLE"),
    ("power(i, 2)", 49.0, "DOUBLE"),
    ("radians(0)", 0.0, "DOUBLE"),
    ("round(f)", 3.0, "DOUBLE"),
    ("round(2.345, 2)", Decimal("2.35"), "DECIMAL(4,2)"),
    ("shiftleft(i, 1)", 14, "INT"),
    ("shiftright(i, 1)", 3, "INT"),
    ("sign(-i)", -1.0, "DOUBLE"),
    ("signum(f)", 1.0, "DOUBLE"),
    ("sin(0)", 0.0, "DOUBLE"),
    ("sqrt(16)", 4.0, "DOUBLE"),
    ("sqrt(-1)", math.nan, "DOUBLE"),
    ("tan(0)", 0.0, "DOUBLE"),
    # strings
    ("ascii('A')", 65, "INT"),
    ("char_length(s)", 9, "INT"),
    ("character_length(s)", 9, "INT"),
    ("chr(65)", "A", "STRING"),
    ("concat(s, '-', i)", "Headwater-7", "STRING"),
    ("concat(s, NULL)", None, "STRING"),
    ("concat_ws(',', 'a', NULL, 'b')", "a,b", "STRING"),
    ("contains(s, 'wat')", True, "BOOLEAN"),
    ("endswith(s, 'er')", True, "BOOLEAN"),
    ("instr(s, 'w')", 5, "INT"),
    ("left(s, 4)", "Head", "STRING"),
    ("length(s)", 9, "INT"),
    ("levenshtein('kitten', 'sitting')", 3, "INT"),
    ("locate('w', s)", 5, "INT"),
    ("lower(s)", "headwater", "STRING"),
    ("lpad('7', 3)", "  7", "STRING"),
    ("lpad('7', 3, '0')", "007", "STRING"),
    ("ltrim('  x')", "x", "STRING"),
    ("md5('')", "d41d8cd98f00b204e9800998ecf8427e", "STRING"),
    ("regexp_extract('a12b', '([0-9]+)')", "12", "STRING"),
    ("regexp_extract('a12b', '([a-z])([0-9]+)', 2)", "12", "STRING"),
    ("regexp_like(s, '^H')", True, "BOOLEAN"),
    ("regexp_replace('a1b2', '[0-9]', '#')", "a#b#", "STRING"),
    ("repeat('ab', 2)", "abab", "STRING"),
    ("replace(s, 'Head', 'Tail')", "Tailwater", "STRING"),
    ("reverse('abc')", "cba", "STRING"),
    ("right(s, 5)", "water", "STRING"),
    ("rpad('7', 3)", "7  ", "STRING"),
    ("rpad('7', 3, '0')", "700", "STRING"),
    ("rtrim('x  ')", "x", "STRING"),
    ("split('a1b2c', '[0-9]')", ["a", "b", "c"], "ARRAY<STRING>"),
    ("split_part('a-b-c', '-', 2)", "b", "STRING"),
    ("startswith(s, 'He')", True, "BOOLEAN"),
    ("substr(s, 5, 3)", "wat", "STRING"),
    ("translate('abc', 'ab', 'xy')", "xyc", "STRING"),
    ("upper(s)", "HEADWATER", "STRING"),
    # dates and times
    ("add_months(day, 1)", date(2026, 4, 14), "DATE"),
    ("date_add(day, 7)", date(2026, 3, 21), "DATE"),
    ("date_sub(day, 14)", date(2026, 2, 28), "DATE"),
    ("date_trunc('HOUR', t)", datetime(2026, 3, 14, 15), "TIMESTAMP"),
    ("date_trunc('MONTH', day)", datetime(2026, 3, 1), "TIMESTAMP"),
    ("datediff(day, DATE '2026-03-01')", 13, "INT"),
    ("day(t)", 14, "INT"),
    ("dayofmonth(day)", 14, "INT"),
    ("dayofweek(day)", 7, "INT"),
    ("dayofyear(day)", 73, "INT"),
    ("hour(t)", 15, "INT"),
    ("last_day(day)", date(2026, 3, 31), "DATE"),
    ("make_date(2026, 2, 28)", date(2026, 2, 28), "DATE"),
    ("minute(t)", 9, "INT"),
    ("month(t)", 3, "INT"),
    ("quarter(t)", 1, "INT"),
    ("second(t)", 26, "INT"),
    ("timestamp_micros(1000000)", datetime(1970, 1, 1, 0, 0, 1), "TIMESTAMP"),
    ("timestamp_millis(1000)", datetime(1970, 1, 1, 0, 0, 1), "TIMESTAMP"),
    ("timestamp_seconds(1)", datetime(1970, 1, 1, 0, 0, 1), "TIMESTAMP"),
    ("to_date('2026-03-14')", date(2026, 3, 14), "DATE"),
    ("to_timestamp('2026-03-14 15:00:00')", datetime(2026, 3, 14, 15), "TIMESTAMP"),
    ("unix_micros(t)", 1773500966535897, "BIGINT"),
    ("unix_millis(t)", 1773500966535, "BIGINT"),
    ("unix_seconds(t)", 1773500966, "BIGINT"),
    ("weekday(day)", 5, "INT"),
    ("weekofyear(day)", 11, "INT"),
    ("year(day)", 2026, "INT"),
    # arrays
    ("array(1, i)", [1, 7], "ARRAY<INT>"),
    ("array_contains(a, 3)", True, "BOOLEAN"),
    ("array_join(array('a', 'b'), '-')", "a-b", "STRING"),
    ("array_max(a)", 3, "INT"),
    ("array_min(a)", 1, "INT"),
    ("cardinality(a)", 3, "INT"),
    ("element_at(a, 1)", 3, "INT"),
    ("size(a)", 3, "INT"),
]

AGGREGATE_TYPES = [
    ("COUNT(*)", "BIGINT"),
    ("COUNT(s)", "BIGINT"),
    ("SUM(i)", "BIGINT"),
    ("SUM(l)", "BIGINT"),
    ("SUM(f)", "DOUBLE"),
    ("SUM(fl)", "DOUBLE"),
    ("SUM(d)", "DECIMAL(38,2)"),
    ("AVG(i)", "DOUBLE"),
    ("AVG(d)", "DOUBLE"),
    ("MIN(s)", "STRING"),
    ("MAX(t)", "TIMESTAMP"),
    ("VAR(i)", "DOUBLE"),
    ("VAR_POP(f)", "DOUBLE"),
    ("STDDEV(d)", "DOUBLE"),
    ("STDDEV_POP(i)", "DOUBLE"),
    ("MEDIAN(i)", "DOUBLE"),
    ("ARRAY_AGG(s)", "ARRAY<STRING>"),
    ("LISTAGG(s)", "STRING"),
    ("STRING_AGG(s, ',')", "STRING"),
]


def test_every_function_is_tried():
    tried = {sql.partition("(")[0].lower() for sql, *_ in CASES}
    assert set(SCALARS) - tried == set()


@pytest.mark.parametrize(("sql", "value", "type_"), CASES, ids=[sql for sql, *_ in CASES])
def test_the_value_and_the_type(sql: str, value: object, type_: str):
    plan = bind_script(f"{STREAM} SELECT {sql} AS v FROM one").result.plan
    schema = plan.inputs[0].schema
    operator = ProjectOperator(schema, plan.schema, [scalar.sql for _, scalar in plan.expressions])
    delta = operator.step(None, (Delta.from_rows(schema, [(ROW, 0, 1, 1)]),), (0,)).delta
    ((found, *_),) = delta.rows()
    assert str(plan.schema) == f"(v {type_})"
    assert freeze(found) == freeze((value,))
    assert type(found[0]) is type(value)


@pytest.mark.parametrize(("sql", "type_"), AGGREGATE_TYPES, ids=[sql for sql, _ in AGGREGATE_TYPES])
def test_the_type_of_an_aggregate(sql: str, type_: str):
    assert str(bind_script(f"{STREAM} SELECT {sql} AS v FROM one").result.plan.schema) == f"(v {type_})"


def test_synonyms_of_aggregates_mean_the_same():
    assert AGGREGATES["variance"] is AGGREGATES["var_samp"] is AGGREGATES["var"]
    assert AGGREGATES["collect_list"] is AGGREGATES["array_agg"]
    assert AGGREGATES["string_agg"] is AGGREGATES["listagg"]
    assert pa.types.is_float64(AGGREGATES["mean"].result(pa.int32()))
