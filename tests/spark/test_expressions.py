"""Expressions in Spark SQL mean what they mean in DuckDB: every function and operator, on values engines disagree about."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from attrs import frozen
from pyspark.errors import PySparkException

from headwater.algebra.nodes import Project
from headwater.backends.spark.session import suits
from headwater.expressions.connection import connection
from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.nodes import Expression, UserCall
from headwater.expressions.spark import to_spark
from headwater.expressions.spark_values import literal, quoted
from headwater.language.binder import bind_script
from headwater.language.functions.registry import SCALARS, SPECIAL_FORMS
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS
from headwater.model.functions import UserFunction
from headwater.model.schema import Schema
from headwater.testing.expression_text import bind_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))

from expression_samples import COLUMNS, FUNCTIONS, OPERATORS, nested, rows

ROWS = 300
TOGETHER = 60
"""Expressions of one select: with more, Spark's compiler gives up and interprets."""

NOT_NATIVE = {
    # Java and C have libraries of mathematics that differ in the last bit.
    *(
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "cos",
        "cosh",
        "cot",
        "csc",
        "exp",
        "ln",
        "log",
    ),
    *("log10", "log2", "pow", "power", "sec", "sin", "sinh", "tan", "tanh"),
    *("expm1", "hypot", "log1p"),
    # They round, shift and overflow in other ways.
    *("bround", "date_bin", "factorial", "truncate"),
    # Letters of all languages, and what one letter is.
    *("initcap", "lcase", "levenshtein", "lower", "reverse", "ucase", "upper"),
    # Regular expressions, and text that is read.
    *(
        "regexp",
        "regexp_count",
        "regexp_extract",
        "regexp_extract_all",
        "regexp_like",
        "regexp_match",
        "regexp_replace",
        "regexp_substr",
    ),
    *("base64", "rlike", "split", "split_index", "unbase64", "unhex"),
    # JSON: engines differ in what they read, and in how numbers are written.
    *("from_json", "get_json_object", "json_array_length", "json_exists", "json_object_keys", "json_query"),
    *("json_value", "to_json"),
    # Computed with lists and lambdas, or NULL where a part of the row has no such day.
    *("find_in_set", "make_date", "make_timestamp", "substring_index"),
    *("array_append", "array_compact", "array_contains", "array_distinct", "array_join", "array_max", "array_min"),
    *(
        "array_position",
        "array_prepend",
        "array_remove",
        "array_repeat",
        "array_sort",
        "flatten",
        "slice",
        "sort_array",
    ),
}
PARTLY_NATIVE = {
    **{name: [f"{name}(n)"] for name in ("ceil", "ceiling", "floor")},
    "date": ["date(s)"],
    "round": ["round(d, 1)"],
    "timestamp": ["timestamp(s)"],
    "timestamp_seconds": ["timestamp_seconds(d)"],
    "timestampdiff": ["timestampdiff(MONTH, t, t2)"],
    "to_date": ["to_date(s, 'yyyy-MM-dd')"],
    "to_timestamp": ["to_timestamp(s)"],
    "to_timestamp_ltz": ["to_timestamp_ltz(s)"],
    "try_to_date": ["try_to_date(s, 'yyyy-MM-dd')"],
    "try_to_timestamp": ["try_to_timestamp(s)"],
    "to_unix_timestamp": ["to_unix_timestamp(s)"],
    "unix_timestamp": ["unix_timestamp(s)"],
}
"""Functions of which these calls stay in Python: a DOUBLE is rounded by its digits, a DECIMAL keeps them, text is read."""


@frozen
class Sample:
    call: str
    scalar: Expression
    spark: str | None


@pytest.fixture(scope="module")
def samples() -> dict[str, Sample]:
    """Every call, bound and compiled."""
    calls = list(dict.fromkeys(c for listed in (*OPERATORS.values(), *FUNCTIONS.values()) for c in listed))
    calls += nested(80)
    plan = plan_of(calls)
    return {
        call: Sample(call, scalar, to_spark(scalar)) for call, (_, scalar) in zip(calls, plan.expressions, strict=True)
    }


def plan_of(calls: list[str]) -> Project:
    declared = ", ".join(f"{name} {type_}" for name, (type_, _) in COLUMNS.items())
    listed = ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls))
    plan = bind_script(f"CREATE STREAM q ({declared}); SELECT {listed} FROM q").result.plan
    assert isinstance(plan, Project)
    return plan


# -- what is native ---------------------------------------------------------------------------------------------------


def test_every_function_has_a_sample():
    assert set(FUNCTIONS) == {*SCALARS, *SPECIAL_FUNCTIONS, *SPECIAL_FORMS}


def test_the_native_functions_are_these(samples: dict[str, Sample]):
    left_out = {name: [c for c in calls if samples[c].spark is None] for name, calls in FUNCTIONS.items()}
    assert {name for name, calls in FUNCTIONS.items() if left_out[name] == calls} == NOT_NATIVE
    assert {name: calls for name, calls in left_out.items() if calls and calls != FUNCTIONS[name]} == PARTLY_NATIVE


def test_the_native_operators_are_all_but_casts_of_text_and_long_fractions(samples: dict[str, Sample]):
    left_out = [call for calls in OPERATORS.values() for call in calls if samples[call].spark is None]
    assert left_out == OPERATORS["CAST between text and others"]


@pytest.mark.parametrize(
    "sql",
    [
        *("LOWER(\"s\") = 'a'", 'SIN("d")', 'CAST("s" AS INTEGER)', "\"s\" ILIKE 'a%'", "\"s\" LIKE '10!x' ESCAPE '!'"),
        *('"s" LIKE "s2"', '"wide" * "wide"', '"wide" = "d"', '"l" + 9223372036854775808'),
    ],
)
def test_what_is_not_known_to_be_the_same_stays_in_python(sql: str):
    schema = Schema.of(**{name: type_ for name, (_, type_) in COLUMNS.items()})
    assert to_spark(bind_text(sql, schema)) is None


def test_functions_of_the_users_stay_in_python():
    function = UserFunction("own", "module:own", (pa.int64(),), pa.int64())
    assert to_spark(UserCall(function, (bind_text('"l" + 1', Schema.of(l="BIGINT")),))) is None


def test_conditions_that_can_fail_come_after_those_that_guard_them():
    sql = 'CAST("l" AS TINYINT) > 1 AND "l" < 100'
    text = to_spark(bind_text(sql, Schema.of(l="BIGINT")))
    assert text == "((`l` < 100L) AND (CAST(CAST(`l` AS TINYINT) AS INT) > 1))"


def test_names_are_quoted(spark: SparkSession):
    schema = Schema.of(**{'we`ird "name".x': "BIGINT"})
    text = to_spark(bind_text('"we`ird ""name"".x" + 1', schema))
    frame = spark.createDataFrame(pa.table({'we`ird "name".x': [41]}))
    assert text is not None
    assert frame.selectExpr(f"{text} AS v").toArrow()["v"].to_pylist() == [42]


def test_the_session_must_be_in_utc_and_refuse_what_overflows(spark: SparkSession):
    assert suits(spark)
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/Chicago")
    assert not suits(other)
    other.conf.set("spark.sql.session.timeZone", "UTC")
    other.conf.set("spark.sql.ansi.enabled", "false")
    assert not suits(other)


# -- the same meaning -------------------------------------------------------------------------------------------------


@frozen
class Answer:
    """What DuckDB computes: one value per row, except where it refuses the row."""

    values: pa.Array
    fine: np.ndarray


@pytest.fixture(scope="module")
def data() -> pa.Table:
    return rows(ROWS)


@pytest.fixture(scope="module")
def answers(samples: dict[str, Sample], data: pa.Table) -> dict[str, Answer]:
    unique = {s.spark: s for s in samples.values() if s.spark is not None}
    return {s.call: answered(s.scalar, data) for s in unique.values()}


def answered(scalar: Expression, data: pa.Table) -> Answer:
    try:
        values = computed(to_duckdb(scalar), data)
        return Answer(values.cast(scalar.type), np.ones(len(data), np.bool_))
    except duckdb.Error:
        parts = refused_apart(to_duckdb(scalar), data)
    fine = np.array([part is not None for part in parts])
    return Answer(pa.concat_arrays([(pa.nulls(1) if p is None else p).cast(scalar.type) for p in parts]), fine)


def refused_apart(sql: str, data: pa.Table) -> list[pa.Array | None]:
    """One value per row, None where DuckDB refuses it. TRY does not catch every refusal: what it lets through is halved."""
    try:
        tried = computed(f"TRY({{'v': {sql}}})", data)
    except duckdb.Error:
        if len(data) == 1:
            return [None]
        half = len(data) // 2
        return refused_apart(sql, data.slice(0, half)) + refused_apart(sql, data.slice(half))
    values = pc.struct_field(tried, "v")
    return [values.slice(i, 1) if tried[i].is_valid else None for i in range(len(data))]


def computed(sql: str, data: pa.Table) -> pa.Array:
    with_data = connection().from_arrow(data)
    return with_data.project(f"{sql} AS v").to_arrow_table().column(0).combine_chunks()


def for_spark(data: pa.Table) -> pa.Table:
    """Times as Spark's TIMESTAMP, and the number of the row."""
    for i, field in enumerate(data.schema):
        if pa.types.is_timestamp(field.type):
            data = data.set_column(i, field.name, data.column(i).cast(pa.timestamp("us", "UTC")))
    return data.append_column("row", pa.array(range(len(data))))


def differences(expected: pa.Array, got: pa.Array) -> list[int]:
    """The rows in which they differ, if only in the sign of a zero."""
    if pa.types.is_temporal(expected.type):
        width = pa.int32() if pa.types.is_date(expected.type) else pa.int64()
        expected, got = expected.cast(width), got.cast(width)
    if not pa.types.is_floating(expected.type):
        return [
            i
            for i, (ours, theirs) in enumerate(zip(expected.to_pylist(), got.to_pylist(), strict=True))
            if ours != theirs
        ]
    missing = pc.not_equal(expected.is_null(), got.is_null()).to_numpy(zero_copy_only=False)
    ours, theirs = (a.fill_null(0).to_numpy(zero_copy_only=False) for a in (expected, got))
    bits = f"i{ours.dtype.itemsize}"
    return list(
        np.flatnonzero(missing | ((ours.view(bits) != theirs.view(bits)) & ~(np.isnan(ours) & np.isnan(theirs))))
    )


def spark_type_of(type_: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(type_) else type_


def test_spark_and_duckdb_agree_on_every_native_expression(
    spark: SparkSession, samples: dict[str, Sample], data: pa.Table, answers: dict[str, Answer]
):
    frame_data = for_spark(data)
    calls = list(answers)
    for i, call in enumerate(calls):
        if not answers[call].fine.all():
            frame_data = frame_data.append_column(f"fine {i}", pa.array(answers[call].fine))
    frame = spark.createDataFrame(frame_data).coalesce(1)
    problems = []
    for begin in range(0, len(calls), TOGETHER):
        part = list(enumerate(calls))[begin : begin + TOGETHER]
        chosen = ["row"]
        for i, call in part:
            text = samples[call].spark
            guarded = text if answers[call].fine.all() else f"CASE WHEN `fine {i}` THEN {text} END"
            chosen.append(f"{guarded} AS v{i}")
        result = frame.selectExpr(*chosen).toArrow().sort_by("row")
        for i, call in part:
            expected, got = answers[call].values, result[f"v{i}"].combine_chunks()
            if not pa.types.is_nested(expected.type) and got.type != spark_type_of(expected.type):
                problems.append(f"{call}: {got.type}, not {expected.type}")
                continue
            for at in differences(expected, got)[:1]:
                row = {c: data[c][at] for c in samples[call].scalar.columns}
                problems.append(f"{call} of {row}: {got[at]} in Spark, {expected[at]} in DuckDB")
    assert problems == []


def test_what_duckdb_refuses_spark_refuses(
    spark: SparkSession, samples: dict[str, Sample], data: pa.Table, answers: dict[str, Answer]
):
    """One refused row of every expression that has some; Spark computes constants while it plans, so no job runs."""
    simple = {
        c for calls in (*OPERATORS.values(), *FUNCTIONS.values()) for c in calls
    }  # what AND and OR need, they decide
    refused = {c: int(np.argmin(a.fine)) for c, a in answers.items() if c in simple and not a.fine.all()}
    assert len(refused) > 25, "rows at the ends of the types overflow"
    allowed = []
    for call, at in refused.items():
        columns = samples[call].scalar.columns
        row = ", ".join(f"{literal(data[c][at].as_py(), COLUMNS[c][1])} AS {quoted(c)}" for c in columns)
        try:
            spark.sql(f"SELECT {samples[call].spark} AS v FROM (SELECT {row})").toArrow()
        except PySparkException:
            continue
        allowed.append(call)
    assert set(allowed) <= {"date_from_unix_date(i)", "timestamp_micros(l)"}, (
        "to DuckDB the last of all times is infinity"
    )


@pytest.mark.parametrize(
    ("call", "text"), [("lower(s)", "lower(`s`)"), ("sin(d)", "sin(`d`)"), ("rint(d)", "round(`d`)")]
)
def test_the_comparison_sees_what_differs(spark: SparkSession, data: pa.Table, call: str, text: str):
    ((_, scalar),) = plan_of([call]).expressions
    got = spark.createDataFrame(for_spark(data)).coalesce(1).selectExpr("row", f"{text} AS v").toArrow().sort_by("row")
    assert differences(answered(scalar, data).values, got["v"].combine_chunks())
