"""Of which expressions the values stay what they were when a column becomes wider; what may differ is refused."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.algebra.nodes import Plan, Project
from headwater.model.delta import Delta
from headwater.model.types import parse_sql_type
from headwater.operators.rows.project import ProjectOperator
from headwater.optimizer.plan_query import plan_query
from headwater.runtime.wider_plan import UnlikeError, check_wider

TYPES = {
    "i": ("INT", "BIGINT"),
    "t": ("TINYINT", "SMALLINT"),
    "j": ("INT", "BIGINT"),
    "big": ("BIGINT", "BIGINT"),
    "f": ("FLOAT", "DOUBLE"),
    "g": ("FLOAT", "DOUBLE"),
    "x": ("DOUBLE", "DOUBLE"),
    "d": ("DECIMAL(8,2)", "DECIMAL(12,2)"),
    "e": ("DECIMAL(10,3)", "DECIMAL(16,3)"),
    "s": ("STRING", "STRING"),
    "at": ("INT", "INT"),
}
NARROW, WIDE = (", ".join(f"{name} {types[i]}" for name, types in TYPES.items()) for i in range(2))
VALUES = {
    "i": [None, 0, -3, 2**29],
    "t": [None, 1, -128],
    "j": [2, 7],
    "big": [None, 2**40],
    "f": [None, 0.1, 2.5],
    "g": [0.1, -1.0],
    "x": [0.1],
    "d": [None, Decimal("1.05"), Decimal("-7.00")],
    "e": [Decimal("0.125")],
    "s": ["a"],
    "at": [1],
}

EXACT = [
    *(
        "i",
        "f",
        "d",
        "i + 1",
        "i * 2 - j",
        "-i",
        "ABS(i)",
        "HEX(i)",
        "i % 3",
        "i / 2",
        "i DIV 2",
        "t + 1",
        "t + i",
        "i + big",
        "i + x",
    ),
    *(
        "i > 1",
        "i <> 0.5",
        "i IN (1, 2)",
        "i BETWEEN j AND big",
        "i * 1.5",
        "i * d",
        "CAST(i AS STRING)",
        "CAST(i AS DOUBLE)",
    ),
    *(
        "CAST(i AS INT)",
        "COALESCE(i, t, 0)",
        "CASE WHEN i > 1 THEN t ELSE j END",
        "GREATEST(i, j)",
        "NULLIF(i, 0)",
        "i IS NULL",
    ),
    *("CASE WHEN i > 1 THEN 'many' ELSE s END", "i = j AND NOT t < 3 OR big IS NOT NULL", "s || CAST(i AS STRING)"),
    *("d + 1", "d - d", "d * 2", "d > 1", "d = e", "d + e", "COALESCE(d, 0)", "d * i", "f = g", "f < g OR f IS NULL"),
    *("f + 1", "f * 2.0", "f + x", "COALESCE(f, g)", "BIT_COUNT(i)", "SHIFTLEFT(big, 3)", "SQRT(x)"),
]
INEXACT = [
    *("f > 0.1", "f * g", "f + g", "f = i", "CAST(f AS STRING)", "CAST(f AS DECIMAL(10,4))", "ABS(f)"),
    *(
        "SHIFTLEFT(i, 3)",
        "SHIFTRIGHT(i, 40)",
        "~i",
        "i & 7",
        "SQRT(i)",
        "d / 3",
        "d % 2",
        "ROUND(d, 1)",
    ),
    *("CAST(d AS DOUBLE)", "FLOOR(d)"),
]


def planned(columns: str, expression: str) -> Plan:
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"CREATE STREAM r ({columns}) ORDERED BY at IN ORDER")
        query = engine.sql(f"SELECT {expression} AS y FROM r")
        return plan_query(query.plan, query.settings).plan


@pytest.mark.parametrize("expression", EXACT)
def test_what_is_let_through_has_the_same_values(expression: str):
    before, after = (planned(columns, expression) for columns in (NARROW, WIDE))
    check_wider(before, after)
    assert values(before) == values(after)


def values(plan: Plan) -> list[object]:
    assert isinstance(plan, Project)
    schema = plan.input.schema
    read = [VALUES[f.name] if f.name in plan.expressions[0][1].columns else VALUES[f.name][:1] for f in schema]
    rows = list(product(*read))
    narrow = {name: parse_sql_type(types[0]) for name, types in TYPES.items()}
    columns = [pa.array(c, narrow[f.name]).cast(f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)]
    one = np.ones(len(rows), np.int64)
    project = ProjectOperator(schema, plan.schema, [e for _, e in plan.expressions])
    found = project.step(None, (Delta(schema, columns, one, one + 1, one),), (0,)).delta
    return [row for row, *_ in found.rows()]


@pytest.mark.parametrize("expression", INEXACT)
def test_what_may_differ_is_refused(expression: str):
    with pytest.raises(UnlikeError, match="may differ between"):
        check_wider(planned(NARROW, expression), planned(WIDE, expression))


def test_a_condition_of_a_filter_and_of_a_join_is_looked_at_too():
    for sql in ("SELECT i FROM r WHERE f > 0.1", "SELECT a.i FROM r [RANGE 3] a JOIN r [RANGE 3] b ON a.f * b.f > b.g"):
        plans = []
        for columns in (NARROW, WIDE):
            with hw.connect(runner="inprocess") as engine:
                engine.sql(f"CREATE STREAM r ({columns}) ORDERED BY at IN ORDER")
                query = engine.sql(sql)
                plans.append(plan_query(query.plan, query.settings).plan)
        with pytest.raises(UnlikeError, match="between FLOAT and DOUBLE"):
            check_wider(*plans)


def test_another_query_is_another_query():
    for one, other in (("i + 1", "i + 2"), ("i", "j"), ("i - j", "j - i")):
        with pytest.raises(UnlikeError, match=r"^$"):
            check_wider(planned(NARROW, one), planned(WIDE, other))
    with pytest.raises(UnlikeError):
        check_wider(planned(NARROW, "CAST(x AS INT) > 1"), planned(WIDE, "x > 1"))
