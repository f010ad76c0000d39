"""Which part of the rows a predicate keeps, and what it says of the columns."""

from __future__ import annotations

import pytest

from headwater.expressions.nodes import Expression
from headwater.model.schema import Schema
from headwater.optimizer.estimation import selectivity as estimates
from headwater.optimizer.estimation.estimates import Column
from headwater.testing.expression_text import bind_text

COLUMNS = {
    "x": Column(10.0),
    "y": Column(40.0),
    "n": Column(10.0, nulls=0.2),
    "flag": Column(2.0, bounded=True),
    "s": Column(10.0),
}
SCHEMA = Schema.of(x="INT", y="INT", n="INT", z="INT", s="STRING", flag="BOOLEAN")


def bound(text: str) -> Expression:
    return bind_text(text, SCHEMA)


def selectivity(text: str, lookup) -> float:
    return estimates.selectivity(bound(text), lookup)


def kept(text: str, columns) -> tuple[float, dict[str, Column]]:
    return estimates.kept(bound(text), columns)


def terms(text: str) -> int:
    return estimates.terms(bound(text))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ('"x" = 3', 1 / 10),
        ('3 = "x"', 1 / 10),
        ('(("x") = (3))', 1 / 10),
        ('CAST("x" AS BIGINT) = 3', 1 / 10),
        ('"n" = 3', 0.8 / 10),
        ('"x" <> 3', 9 / 10),
        ('"x" != 3', 9 / 10),
        ('"n" <> 3', 0.8 * 9 / 10),
        ('"x" = "y"', 1 / 40),
        ('"x" < 3', 1 / 3),
        ('"n" >= 3', 0.8 / 3),
        ('"x" BETWEEN 1 AND 3', 1 / 9),
        ('"x" NOT BETWEEN 1 AND 3', 8 / 9),
        ('"x" IN (1, 2, 3)', 3 / 10),
        ('"x" NOT IN (1, (2), 3)', 7 / 10),
        ("\"s\" IN ('a,b', LOWER('A'))", 2 / 10),
        ('"flag" IN (TRUE, FALSE, NULL)', 1.0),
        ('"n" IS NULL', 0.2),
        ('"n" IS NOT NULL', 0.8),
        ('NOT "n" IS NULL', 0.8),
        ('"n" IS DISTINCT FROM 3', 1 - 0.8 / 10),
        ("\"s\" LIKE 'a%'", 1 / 10),
        ("NOT \"s\" LIKE 'a%'", 9 / 10),
        ("CONTAINS(\"s\", 'a')", 1 / 10),
        ('"flag"', 1 / 2),
        ('NOT "flag"', 1 / 2),
        ('"flag" IS FALSE', 1 / 2),
        ('"x" % 4 = 0', 1 / 4),
        ('("x" % 4) <> 0', 3 / 4),
        ("TRUE", 1.0),
        ("FALSE", 0.0),
        ("CAST(NULL AS BOOLEAN)", 0.0),
        ("NOT CAST(NULL AS BOOLEAN)", 0.0),
        ('"x" = 1 AND "y" = 1', 1 / 400),
        ('"x" = 1 OR "y" = 1', 1 - 0.9 * 39 / 40),
        ('NOT ("x" = 1 OR "y" = 1)', 0.9 * 39 / 40),
        ('"x" = 1 AND ("y" < 2 OR "y" IS NULL)', 1 / 30),
        ('"x" BETWEEN 1 AND 2 AND "y" = 1', 1 / 360),
        ('ISNAN("x")', 1 / 3),
        ('CASE WHEN "x" = 1 AND "y" = 2 THEN TRUE ELSE FALSE END', 1 / 3),
        ("1 = 1", 1 / 3),  # constants are folded elsewhere
    ],
)
def test_chances(sql: str, expected: float):
    assert selectivity(sql, COLUMNS.get) == pytest.approx(expected)


def test_not_of_null_is_not_true():
    """Of a condition and its opposite the NULLs have neither."""
    for sql in ('"n" = 1', '"n" < 1', '"n" = 1 AND "x" = 2', '"n" = 1 OR "x" = 2'):
        both = selectivity(sql, COLUMNS.get) + selectivity(f"NOT ({sql})", COLUMNS.get)
        assert 0 < both < 1


def test_filters_in_a_row_are_one_with_and():
    conditions = ['"n" = 1', '"n" > 0', '"x" = "y"', '"y" IN (1, 2)', '"x" IS NOT NULL']
    together = kept(" AND ".join(f"({c})" for c in conditions), COLUMNS)
    columns, chance = dict(COLUMNS), 1.0
    for sql in conditions:
        part, columns = kept(sql, columns)
        chance *= part
    assert together == (pytest.approx(chance), columns)


def test_kept_rows_have_fewer_values_and_no_nulls():
    def after(sql: str) -> dict[str, Column]:
        return kept(sql, COLUMNS)[1]

    assert after('"n" = 3')["n"] == Column(1.0, bounded=True)
    assert after('"n" > 3')["n"] == Column(pytest.approx(10 / 3))
    assert after('"n" IN (1, 2)')["n"] == Column(2.0, bounded=True)
    assert after('"n" = "y"')["y"] == Column(10.0)
    assert after('"n" IS NULL')["n"] == Column(1.0, nulls=1.0, bounded=True)
    assert after('"n" IS NOT NULL')["n"] == Column(10.0)
    assert after('"n" <> 3')["n"] == Column(10.0)
    assert after('"n" = 3 OR "x" = 1') == COLUMNS
    assert after('"n" + 1 = 3') == COLUMNS
    assert after('COALESCE("n", 1) IS NOT NULL') == COLUMNS


def test_a_condition_on_what_is_not_known():
    assert selectivity('"z" = 1', COLUMNS.get) == pytest.approx(1 / 3)
    assert kept('"z" = 1', COLUMNS)[1] == COLUMNS


def test_terms():
    assert terms('"x" = 1') == 1
    assert terms('"x" = 1 AND NOT ("y" = 2 OR "n" IS NULL)') == 3
    assert terms("\"s\" LIKE '%a'") == terms('ISNAN("x")') == terms('ABS("x") = 1') == 4
