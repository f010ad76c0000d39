"""Functions that bridge differences between engines, on many values, against a meaning written down in Python."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest

from headwater.errors import SqlError
from headwater.expressions.functions.datetime_patterns import translated
from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.operators.rows.project import ProjectOperator

ROWS = 400


def computed(sql: str, columns: str, rows: list[tuple[Any, ...]]) -> list[Any]:
    plan = bind_script(f"CREATE STREAM s ({columns}); SELECT {sql} AS v FROM s").result.plan
    operator = ProjectOperator(plan.inputs[0].schema, plan.schema, [expression for _, expression in plan.expressions])
    delta = Delta.from_rows(plan.inputs[0].schema, [(row, 0, 1, 1) for row in rows])
    return [row[0] for row, *_ in operator.step(None, (delta,), (0,)).delta.rows()]


def doubles(rng: random.Random) -> list[float]:
    near = [round(rng.uniform(-100, 100), 3) for _ in range(ROWS // 2)]
    halves = [rng.randrange(-1000, 1000) / 8 + rng.choice([0, 0.005, 0.0005]) for _ in range(ROWS // 4)]
    wide = [math.ldexp(rng.uniform(-1, 1), rng.randrange(-60, 60)) for _ in range(ROWS // 4)]
    return [*near, *halves, *wide, 0.0, 1e-9, 1e15, -1e15, 1e300, math.inf]


@pytest.mark.parametrize("digits", [0, 1, 2, 5])
def test_round_looks_at_the_digits_that_are_shown(digits: int):
    values = doubles(random.Random(digits))

    def meant(x: float) -> float:
        if not math.isfinite(x) or abs(x) >= 1e15:
            return x
        return float(Decimal(repr(x)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))

    assert computed(f"round(x, {digits})", "x DOUBLE", [(v,) for v in values]) == [meant(v) for v in values]


def test_ceil_and_floor_stop_at_the_ends():
    values = doubles(random.Random(1))

    def clipped(x: float, way: Any) -> int:
        return int(min(max(x, -(2**63)), 2**63 - 1)) if abs(x) >= 2**62 else way(x)

    rows = [(v,) for v in values]
    assert computed("ceil(x)", "x DOUBLE", rows) == [clipped(v, math.ceil) for v in values]
    assert computed("floor(x)", "x DOUBLE", rows) == [clipped(v, math.floor) for v in values]


def moments(rng: random.Random) -> list[tuple[datetime, datetime]]:
    def one() -> datetime:
        day = datetime(2019, 12, 1) + timedelta(days=rng.randrange(900))
        return day + timedelta(hours=rng.choice([0, 0, 10, 23]), microseconds=rng.choice([0, 1]))

    return [(one(), one()) for _ in range(ROWS)]


def months_between(start: datetime, end: datetime) -> int:
    """As java.time counts: the end's day is not complete if its time of day is earlier."""
    last = end.date()
    if end.date() > start.date() and end.time() < start.time():
        last -= timedelta(days=1)
    elif end.date() < start.date() and end.time() > start.time():
        last += timedelta(days=1)
    packed = [(d.year * 12 + d.month - 1) * 32 + d.day for d in (start.date(), last)]
    return int((packed[1] - packed[0]) / 32)


@pytest.mark.parametrize(("unit", "months"), [("MONTH", 1), ("QUARTER", 3), ("YEAR", 12)])
def test_whole_months_are_counted_as_in_java(unit: str, months: int):
    rows = moments(random.Random(months))
    expected = [int(months_between(a, b) / months) for a, b in rows]
    assert computed(f"timestampdiff({unit}, a, b)", "a TIMESTAMP, b TIMESTAMP", rows) == expected


@pytest.mark.parametrize(("unit", "length"), [("SECOND", 1), ("HOUR", 3600), ("DAY", 86400), ("WEEK", 604800)])
def test_whole_units_are_counted_towards_zero(unit: str, length: int):
    rows = moments(random.Random(length))
    expected = [int((b - a) / timedelta(seconds=length)) for a, b in rows]
    assert computed(f"timestampdiff({unit}, a, b)", "a TIMESTAMP, b TIMESTAMP", rows) == expected


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-dd HH:mm:ss.SSSSSS", "dd MMM yyyy''T''hh:mm:ss a SSSSSS", "yyyyMMddHHmmssSSSSSS"]
)
def test_what_is_written_by_a_pattern_is_read_by_it(pattern: str):
    rows = [(a,) for a, _ in moments(random.Random(3))]
    again = f"to_timestamp(date_format(t, '{pattern}'), '{pattern}')"
    assert computed(again, "t TIMESTAMP", rows) == [t for (t,) in rows]


@pytest.mark.parametrize("pattern", ["YYYY", "y", "G", "yyyy-MM-dd z", "[yyyy]", "MMMMM", "SS", "#"])
def test_a_pattern_without_an_equal_is_refused(pattern: str):
    assert translated(pattern) is None
    with pytest.raises(SqlError, match="is not supported"):
        bind_script(f"CREATE STREAM s (t TIMESTAMP); SELECT date_format(t, '{pattern}') FROM s")


@pytest.mark.parametrize("pattern", ["HH:mm", "E yyyy", "yy-MM-dd"])
def test_a_pattern_may_be_for_writing_only(pattern: str):
    assert translated(pattern) is not None
    with pytest.raises(SqlError, match="is not supported"):
        bind_script(f"CREATE STREAM s (x STRING); SELECT to_date(x, '{pattern}') FROM s")


def test_substrings_are_those_of_spark():
    def meant(text: str, start: int, length: int) -> str:
        begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
        end = begin + max(length, 0)
        return text[max(begin, 0) : max(end, 0)]

    rows = [("spark", s, n) for s in range(-8, 9) for n in range(-2, 8)]
    assert computed("substr(x, s, n)", "x STRING, s INT, n INT", rows) == [meant(*row) for row in rows]


def test_slices_are_those_of_spark():
    def meant(start: int, length: int) -> list[int]:
        items = [1, 2, 3, 4]
        begin = start - 1 if start > 0 else len(items) + start
        return items[begin : begin + length] if begin >= 0 else []

    rows = [(s, n) for s in (-6, -4, -1, 1, 3, 9) for n in range(6)]
    found = computed("slice(array(1, 2, 3, 4), s, n)", "s INT, n INT", rows)
    assert found == [meant(*row) for row in rows]


def test_remainders_are_positive_where_they_should_be():
    rows = [(a, b) for a in range(-7, 8) for b in (-3, -1, 0, 1, 3)]

    def meant(a: int, b: int) -> int | None:
        if b == 0:
            return None
        remainder = int(math.fmod(a, b))
        return int(math.fmod(remainder + b, b)) if remainder < 0 else remainder

    assert computed("pmod(a, b)", "a INT, b INT", rows) == [meant(*row) for row in rows]
