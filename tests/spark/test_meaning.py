"""Every function, operator and cast means what it means in Spark: value for value, and where a value is refused.

The same text is computed by our expressions (DuckDB) and by Spark's SQL, on values that engines disagree about. What may
differ stands in ``spark_differences``, with the reason, and in docs/sql.md.
"""

from __future__ import annotations

import math
import random
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from attrs import frozen
from pyspark.errors import PySparkException

from headwater.errors import SqlError
from headwater.expressions.connection import _SETTINGS, connection, register
from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.user_functions import Registry
from headwater.language.binder import bind_script
from headwater.language.functions.registry import SCALARS, SPECIAL_FORMS
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS
from headwater.testing.cases import fresh, scaled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from headwater.expressions.nodes import Expression

sys.path.insert(0, str(Path(__file__).parent))

from meaning_samples import COLUMNS, by_hand, casts, generated, rows
from spark_differences import DIFFERENCES, OURS_ALONE, TYPES_DIFFER, allowed

REFUSED = "refused"
TOGETHER = 40
ROWS = 120
DECLARED = ", ".join(f"{name} {type_}" for name, (type_, _) in COLUMNS.items())


@frozen
class Computed:
    type: pa.DataType
    values: list[Any]


# -- ours -------------------------------------------------------------------------------------------------------------


def bound(call: str) -> Expression | None:
    try:
        plan = bind_script(f"CREATE STREAM q ({DECLARED}); SELECT {call} AS c FROM q").result.plan
    except SqlError:
        return None
    return plan.expressions[0][1]


def ours(scalar: Expression, data: pa.Table) -> Computed:
    """All rows at once as a query computes them; where some are refused, which."""
    given = data.select(list(scalar.columns) or ["b"])
    register(scalar.functions)
    try:
        computed = connection().from_arrow(given).project(f"{to_duckdb(scalar)} AS v").to_arrow_table().column(0)
        return Computed(scalar.type, plain(computed.combine_chunks().cast(scalar.type)))
    except duckdb.Error:
        patient = _one_by_one()
        Registry(patient).add(scalar.functions)
        values = _each(patient, scalar, given)
        assert REFUSED in values, "all rows are refused together, but none alone"
        return Computed(scalar.type, values)


def _each(patient: duckdb.DuckDBPyConnection, scalar: Expression, given: pa.Table) -> list[Any]:
    """What is refused even in TRY is halved."""
    try:
        tried = patient.from_arrow(given).project(f"TRY({{'v': {to_duckdb(scalar)}}}) AS v").to_arrow_table().column(0)
        return taken(tried.combine_chunks(), scalar.type)
    except duckdb.Error:
        half = len(given) // 2
        parts = [given.slice(0, half), given.slice(half)] if half else []
        return [value for part in parts for value in _each(patient, scalar, part)] or [REFUSED]


def _one_by_one() -> duckdb.DuckDBPyConnection:
    """Where a part that stands twice is not computed beforehand, outside of TRY."""
    opened = duckdb.connect()
    for setting in (*_SETTINGS[:-1], "SET disabled_optimizers = 'common_subexpressions'"):
        opened.execute(setting).fetchall()
    return opened


def taken(tried: pa.StructArray, type_: pa.DataType) -> list[Any]:
    """The values in the structs, where there are any."""
    values = plain(pc.struct_field(tried, "v").cast(type_))
    return [v if there else REFUSED for v, there in zip(values, tried.is_valid().to_pylist(), strict=True)]


def plain(column: pa.Array) -> list[Any]:
    """Values that can be compared: NaN is itself, -0.0 is not 0.0, times are numbers, text may have any bytes."""
    if pa.types.is_temporal(column.type):
        return column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64()).to_pylist()
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
        return [None if v is None else v.decode("utf-8", "surrogateescape") for v in column.to_pylist()]
    return [_comparable(v) for v in column.to_pylist()]


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and (math.isnan(value) or value == 0):
        return "NaN" if math.isnan(value) else f"{math.copysign(1, value)} * 0"
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dict):
        return {k: _comparable(v) for k, v in value.items()}
    return [_comparable(v) for v in value] if isinstance(value, list) else value


# -- Spark's ----------------------------------------------------------------------------------------------------------


class Reference:
    """Spark's own SQL over the same rows; a row that it refuses does not stop the others."""

    def __init__(self, spark: SparkSession, data: pa.Table) -> None:
        self._jvm = spark._jvm
        self._frame = spark.createDataFrame(_for_spark(data)).coalesce(1).cache()

    def computed(self, calls: Sequence[str]) -> Iterator[tuple[str, Computed]]:
        """The calls that Spark takes, with their values."""
        for begin in range(0, len(calls), TOGETHER):
            yield from self._together(list(calls[begin : begin + TOGETHER]))

    def _together(self, calls: list[str]) -> Iterator[tuple[str, Computed]]:
        try:
            columns = [self._tried(call).alias(f"v{i}") for i, call in enumerate(calls)]
            table = self._frame.select("row", *columns).toArrow().sort_by("row")
        except (PySparkException, ValueError):  # nothing but NULLs is no valid Arrow in Spark
            if len(calls) > 1:
                half = len(calls) // 2
                yield from self._together(calls[:half])
                yield from self._together(calls[half:])
            return
        for i, call in enumerate(calls):
            tried = table[f"v{i}"].combine_chunks()
            type_ = tried.type.field("v").type
            yield call, Computed(type_, taken(tried, type_))

    def _tried(self, call: str) -> Any:
        """A struct with the value (that may be NULL), itself NULL where Spark refuses it, as its try_ functions are made."""
        from pyspark.sql import Column
        from pyspark.sql.functions import expr

        jvm: Any = self._jvm
        bridge = jvm.org.apache.spark.sql.classic.ExpressionUtils
        struct: Any = expr(f"struct(if(row >= 0, {call}, NULL) AS v)")
        return Column(
            bridge.column(jvm.org.apache.spark.sql.catalyst.expressions.TryEval(bridge.expression(struct._jc)))
        )


def _for_spark(data: pa.Table) -> pa.Table:
    for i, field in enumerate(data.schema):
        if pa.types.is_timestamp(field.type):
            data = data.set_column(i, field.name, data.column(i).cast(pa.timestamp("us", "UTC")))
    return data.append_column("row", pa.array(range(len(data))))


# -- compared ---------------------------------------------------------------------------------------------------------


def compared(spark: SparkSession, calls: Sequence[str], data: pa.Table) -> tuple[set[str], list[str]]:
    """The calls that both take, and where they differ without being allowed to."""
    scalars = {call: scalar for call in dict.fromkeys(calls) if (scalar := bound(call)) is not None}
    seen, problems = set(), []
    for call, theirs in Reference(spark, data).computed(list(scalars)):
        seen.add(call)
        mine = ours(scalars[call], data)
        if not _same_type(mine.type, theirs.type) and not TYPES_DIFFER.search(call):
            problems.append(f"{call} is {mine.type}, {theirs.type} in Spark")
        for at, (a, b) in enumerate(zip(mine.values, theirs.values, strict=True)):
            if a != b and not allowed(call, a, b, REFUSED):
                row = {c: data[c][at].as_py() for c in scalars[call].columns}
                problems.append(f"{call} of {row}: {a!r}, {b!r} in Spark")
                break
    return seen, problems


def _same_type(ours: pa.DataType, theirs: pa.DataType) -> bool:
    """DECIMALs may have more digits; names of fields are the columns' own; NULL alone may be anything."""
    if pa.types.is_null(theirs) or theirs == pa.list_(pa.field("element", pa.null())):
        return True
    if pa.types.is_decimal(ours) and pa.types.is_decimal(theirs):
        return ours.scale == theirs.scale
    if pa.types.is_list(ours) and pa.types.is_list(theirs):
        return _same_type(ours.value_type, theirs.value_type)
    if pa.types.is_struct(ours) and pa.types.is_struct(theirs):
        return all(_same_type(a.type, b.type) for a, b in zip(ours, theirs, strict=True))
    return ours == theirs or (pa.types.is_timestamp(ours) and pa.types.is_timestamp(theirs))


def report(problems: list[str]) -> None:
    assert not problems, "\n".join(problems)


def uncovered(samples: dict[str, list[str]], seen: set[str]) -> set[str]:
    return {name for name, calls in samples.items() if not seen.intersection(calls)}


def test_every_catalogued_function_is_compared_with_spark(spark: SparkSession):
    """One call of each; all of them in the slow step."""
    samples = {name: calls[:1] for name, calls in by_hand().items()}
    assert samples.keys() >= {*SCALARS, *SPECIAL_FUNCTIONS, *SPECIAL_FORMS}
    seen, problems = compared(spark, [call for calls in samples.values() for call in calls], rows(ROWS // 2))
    report(problems)
    assert uncovered(samples, seen) == OURS_ALONE, "functions of which Spark has nothing to compare with"


def test_casts_of_text_fractions_and_times_are_those_of_spark(spark: SparkSession):
    calls = [call for call in casts() if call.startswith(("CAST(txt", "CAST(d ", "CAST(t "))]
    seen, problems = compared(spark, calls, rows(ROWS))
    report(problems)
    assert len(seen) > 25


@pytest.mark.slow
def test_all_samples_are_compared_with_spark(spark: SparkSession):
    samples = by_hand()
    seen, problems = compared(spark, [call for calls in samples.values() for call in calls], rows(ROWS))
    report(problems)
    assert uncovered(samples, seen) == OURS_ALONE


@pytest.mark.slow
def test_casts_between_all_types_are_those_of_spark(spark: SparkSession):
    seen, problems = compared(spark, casts(), rows(ROWS))
    report(problems)
    assert len(seen) > 180
    missing = {call for call in casts() if bound(call) is None}
    taken = {call for call, _ in Reference(spark, rows(1)).computed(sorted(missing))}
    assert taken == set(), "Spark takes casts that we refuse"


@pytest.mark.slow
def test_many_values_are_those_of_spark(spark: SparkSession):
    calls = [call for calls in by_hand().values() for call in calls]
    _, problems = compared(spark, [*calls, *casts()], rows(scaled(1500), seed=fresh(3)))
    report(problems)


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "count"), [(1, 1000), (2, 8000), (3, 8000)])
def test_calls_with_arguments_of_all_types_are_those_of_spark(spark: SparkSession, arguments: int, count: int):
    """Most of them are refused by both; what both take has the same value."""
    rng = random.Random(fresh(arguments))
    _, problems = compared(spark, generated(arguments, scaled(count), rng), rows(ROWS, seed=fresh(4)))
    report(problems)


def test_the_documentation_has_every_difference():
    text = (Path(__file__).parents[2] / "docs" / "sql.md").read_text("utf-8")
    missing = [d.row for d in DIFFERENCES if d.row not in text]
    assert missing == []


def test_the_comparison_sees_what_differs(spark: SparkSession):
    """A reference that is wrong on purpose: other text, the same rows."""
    data = rows(ROWS)
    ((_, theirs),) = Reference(spark, data).computed(["unix_seconds(t)"])
    scalar = bound("unix_timestamp(t)")
    assert scalar is not None
    assert ours(scalar, data).values != theirs.values
