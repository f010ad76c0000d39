"""Functions of dates and times. Units and patterns are constants, which the text is made for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.expressions.functions.datetime_patterns import PIECES, DatetimePattern, translated
from headwater.expressions.functions.record import Function, constant, in_quotes
from headwater.expressions.nodes import Expression
from headwater.expressions.types import is_temporal

DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"

LENGTHS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
"""Units of a fixed length, in microseconds."""
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _part(arguments: Sequence[Expression]) -> str:
    """INT, but for seconds, which have a fraction."""
    unit = constant(arguments[0])
    texts = {
        "SECOND": "CAST(EXTRACT(MICROSECONDS FROM {1}) / 1000000 AS DECIMAL(8,6))",
        "DAYOFWEEK": "CAST(DAYOFWEEK({1}) + 1 AS INTEGER)",
        "YEAROFWEEK": "CAST(ISOYEAR({1}) AS INTEGER)",
        "DAYOFWEEK_ISO": "CAST(ISODOW({1}) AS INTEGER)",
        "DOY": "CAST(DAYOFYEAR({1}) AS INTEGER)",
    }
    return texts.get(unit, f"CAST({unit}({{1}}) AS INTEGER)")


def _truncated(arguments: Sequence[Expression]) -> str:
    return f"CAST(DATE_TRUNC('{constant(arguments[0]).lower()}', {{1}}) AS TIMESTAMP)"


def _truncated_day(arguments: Sequence[Expression]) -> str:
    return f"CAST(DATE_TRUNC('{constant(arguments[1]).lower()}', CAST({{0}} AS DATE)) AS DATE)"


def _later(arguments: Sequence[Expression]) -> str:
    unit = constant(arguments[0])
    if unit in LENGTHS:
        step = f"TO_MICROSECONDS(CAST({{1}} AS BIGINT) * {LENGTHS[unit]})"
    else:
        step = f"TO_MONTHS(CAST({{1}} * {MONTHS[unit]} AS INTEGER))"
    return f"(CAST({{2}} AS TIMESTAMP) + {step})"


def _difference(arguments: Sequence[Expression]) -> str:
    """How many whole units lie between: of months as Java counts them, from one day of a month to the same day."""
    unit = constant(arguments[0])
    start, end = "CAST({1} AS TIMESTAMP)", "CAST({2} AS TIMESTAMP)"
    if unit in LENGTHS:
        return f"((EPOCH_US({end}) - EPOCH_US({start})) // {LENGTHS[unit]})"
    first, last = f"CAST({start} AS DATE)", f"CAST({end} AS DATE)"
    first_time, last_time = f"CAST({start} AS TIME)", f"CAST({end} AS TIME)"
    day = (
        f"CASE WHEN {last} > {first} AND {last_time} < {first_time} THEN {last} - 1 "
        f"WHEN {last} < {first} AND {last_time} > {first_time} THEN {last} + 1 ELSE {last} END"
    )
    return f"((({_packed(day)} - {_packed(first)}) // 32) // {MONTHS[unit]})"


def _packed(day: str) -> str:
    return f"((YEAR({day}) * 12 + MONTH({day})) * 32 + DAY({day}))"


# -- for Spark ------------------------------------------------------------------------------------------------------------

_YEAR = (
    "CASE WHEN year({0}) BETWEEN 0 AND 9999 THEN lpad(CAST(year({0}) AS STRING), 4, '0') "
    "ELSE CAST(year({0}) AS STRING) END"
)
"""Spark's own yyyy counts years before 1 the other way round, and puts a plus sign before those after 9999."""


def _spark_format(arguments: Sequence[Expression]) -> str:
    """The years apart from the rest; of seconds since 1970 the time that they are."""
    moment = "{0}"
    if pa.types.is_integer(arguments[0].type):
        moment = "timestamp_micros(CAST({0} AS BIGINT) * 1000000L)"
    parts, letters = [], ""
    for piece in [*(found.group() for found in PIECES.finditer(constant(arguments[1]))), "yyyy"]:
        if piece == "yyyy":
            parts += [f"date_format({moment}, {in_quotes(letters)})"] if letters else []
            parts.append(_YEAR.replace("{0}", moment))
            letters = ""
        elif piece.startswith("y"):
            return ""
        else:
            letters += piece
    return f"concat({', '.join(parts[:-1])})"


def _spark_seconds(arguments: Sequence[Expression]) -> str:
    return "(unix_micros(CAST({0} AS TIMESTAMP)) div 1000000L)" if is_temporal(arguments[0].type) else ""


def _spark_days(sign: str) -> Callable[[Sequence[Expression]], str]:
    def text(arguments: Sequence[Expression]) -> str:
        if not pa.types.is_integer(arguments[1].type):
            return ""
        return f"date_from_unix_date(unix_date(CAST({{0}} AS DATE)) {sign} CAST({{1}} AS INT))"

    return text


def _spark_part(arguments: Sequence[Expression]) -> str:
    return f"extract({constant(arguments[0])} FROM {{1}})"


def _spark_later(arguments: Sequence[Expression]) -> str:
    unit = constant(arguments[0])
    if unit in LENGTHS:
        return f"timestamp_micros(unix_micros(CAST({{2}} AS TIMESTAMP)) + CAST({{1}} AS BIGINT) * {LENGTHS[unit]}L)"
    return f"(CAST({{2}} AS TIMESTAMP) + make_ym_interval(0, CAST({{1}} * {MONTHS[unit]} AS INT)))"


def _spark_difference(arguments: Sequence[Expression]) -> str:
    unit = constant(arguments[0])
    return (
        f"((unix_micros(CAST({{2}} AS TIMESTAMP)) - unix_micros(CAST({{1}} AS TIMESTAMP))) div {LENGTHS[unit]}L)"
        if unit in LENGTHS
        else ""
    )


# -- patterns -------------------------------------------------------------------------------------------------------------


def _pattern(argument: Expression) -> DatetimePattern:
    pattern = translated(constant(argument))
    assert pattern is not None  # the binder has seen to it
    return pattern


def _written(arguments: Sequence[Expression]) -> str:
    return f"STRFTIME(CAST({{0}} AS TIMESTAMP), {in_quotes(_pattern(arguments[1]).writing)})"


def _written_seconds(arguments: Sequence[Expression]) -> str:
    return f"STRFTIME(MAKE_TIMESTAMP(CAST({{0}} AS BIGINT) * 1000000), {in_quotes(_pattern(arguments[1]).writing)})"


def _read(arguments: Sequence[Expression]) -> str:
    """NULL where the text does not match the pattern."""
    pattern = _pattern(arguments[1])
    match, signs = in_quotes(pattern.reading or ""), in_quotes(pattern.writing)
    return f"CASE WHEN REGEXP_FULL_MATCH({{0}}, {match}) THEN TRY_STRPTIME({{0}}, {signs}) END"


def _seconds(arguments: Sequence[Expression]) -> str:
    """Towards zero, where unix_seconds rounds down."""
    moment = _read(arguments) if pa.types.is_string(arguments[0].type) else "CAST({0} AS TIMESTAMP)"
    return f"(EPOCH_US({moment}) // 1000000)"


TIMES: dict[str, Function] = {
    "add_months": Function(
        2, 2, "CAST({0} + TO_MONTHS({1}) AS DATE)", takes=("date", "int"), spark="add_months({args})"
    ),
    "date_bin": Function(  # PostgreSQL's
        2,
        3,
        "TIME_BUCKET({0}, {1}, TIMESTAMP '1970-01-01 00:00:00') ; TIME_BUCKET({0}, {1}, {2})",
        takes=("any", "timestamp", "timestamp"),
    ),
    "date_add": Function(2, 2, "(CAST({0} AS DATE) + CAST({1} AS INTEGER))", spark=_spark_days("+")),
    "date_format": Function(2, 2, _written, spark=_spark_format),
    "date_from_unix_date": Function(
        1, 1, "(DATE '1970-01-01' + {0})", takes=("int",), spark="date_from_unix_date({args})"
    ),
    "date_part": Function(2, 2, _part, spark=_spark_part),
    "date_sub": Function(2, 2, "({0} - {1})", takes=("date", "int"), spark=_spark_days("-")),
    "date_trunc": Function(2, 2, _truncated, spark="date_trunc({args})"),
    "datediff": Function(
        2,
        2,
        "CAST(DATE_DIFF('day', CAST({1} AS DATE), CAST({0} AS DATE)) AS INTEGER)",
        spark="datediff(CAST({0} AS DATE), CAST({1} AS DATE))",
    ),
    "day": Function(1, 1, "CAST(DAY({0}) AS INTEGER)", takes=("date",), also=("dayofmonth",), spark="day({args})"),
    "dayname": Function(1, 1, "STRFTIME({0}, '%a')", takes=("date",), spark="date_format({0}, 'E')"),
    "dayofweek": Function(1, 1, "CAST(DAYOFWEEK({0}) + 1 AS INTEGER)", takes=("date",), spark="dayofweek({args})"),
    "dayofyear": Function(1, 1, "CAST(DAYOFYEAR({0}) AS INTEGER)", takes=("date",), spark="dayofyear({args})"),
    "from_unixtime": Function(2, 2, _written_seconds, spark=_spark_format),
    "hour": Function(1, 1, "CAST(HOUR({0}) AS INTEGER)", takes=("only time",), spark="hour({args})"),
    "last_day": Function(1, 1, "LAST_DAY({0})", takes=("date",), spark="last_day({args})"),
    "make_date": Function(3, 3, "TRY(MAKE_DATE({args}))", takes=("integer", "integer", "integer")),
    "make_timestamp": Function(
        6, 6, "TRY(MAKE_TIMESTAMP({args}))", takes=("integer", "integer", "integer", "integer", "integer")
    ),
    "minute": Function(1, 1, "CAST(MINUTE({0}) AS INTEGER)", takes=("only time",), spark="minute({args})"),
    "month": Function(1, 1, "CAST(MONTH({0}) AS INTEGER)", takes=("date",), spark="month({args})"),
    "monthname": Function(1, 1, "STRFTIME({0}, '%b')", takes=("date",), spark="date_format({0}, 'MMM')"),
    "quarter": Function(1, 1, "CAST(QUARTER({0}) AS INTEGER)", takes=("date",), spark="quarter({args})"),
    "second": Function(1, 1, "CAST(SECOND({0}) AS INTEGER)", takes=("only time",), spark="second({args})"),
    "timestamp_micros": Function(1, 1, "MAKE_TIMESTAMP({0})", takes=("integer",), spark="timestamp_micros({args})"),
    "timestamp_millis": Function(
        1,
        1,
        "MAKE_TIMESTAMP({0} * CAST(1000 AS BIGINT))",
        takes=("integer",),
        also=("from_unixtime_ms", "from_unixtime_millis"),
        spark="timestamp_millis({args})",
    ),
    "timestamp_seconds": Function(
        1,
        1,
        {
            "": "MAKE_TIMESTAMP(CAST({0} * CAST(1000000 AS BIGINT) AS BIGINT))",
            "real": "CASE WHEN ISFINITE({0}) THEN MAKE_TIMESTAMP(CAST(TRUNC(CAST({0} AS DOUBLE) * 1000000) AS BIGINT)) END",
        },
        takes=("only number",),
        fails=True,
        spark={"": "timestamp_seconds({0})", "real": "", "decimal": ""},
    ),
    "timestampadd": Function(3, 3, _later, written="TIMESTAMPADD({word}, {1}, {2})", spark=_spark_later),
    "timestampdiff": Function(3, 3, _difference, written="TIMESTAMPDIFF({word}, {1}, {2})", spark=_spark_difference),
    "to_timestamp": Function(2, 2, _read),
    "trunc": Function(2, 2, _truncated_day, spark="trunc({args})"),
    "unix_date": Function(
        1,
        1,
        "CAST(DATE_DIFF('day', DATE '1970-01-01', CAST({0} AS DATE)) AS INTEGER)",
        takes=("only time",),
        spark="unix_date(CAST({0} AS DATE))",
    ),
    "unix_micros": Function(1, 1, "EPOCH_US({0})", takes=("only time",), spark="unix_micros(CAST({0} AS TIMESTAMP))"),
    "unix_millis": Function(
        1,
        1,
        "(EPOCH_US(DATE_TRUNC('millisecond', CAST({0} AS TIMESTAMP))) // 1000)",
        takes=("only time",),
        spark="unix_millis(CAST({0} AS TIMESTAMP))",
    ),
    "unix_seconds": Function(
        1,
        1,
        "(EPOCH_US(DATE_TRUNC('second', CAST({0} AS TIMESTAMP))) // 1000000)",
        takes=("only time",),
        spark="unix_seconds(CAST({0} AS TIMESTAMP))",
    ),
    "unix_timestamp": Function(1, 2, _seconds, spark=_spark_seconds),
    "weekday": Function(1, 1, "CAST(ISODOW({0}) - 1 AS INTEGER)", takes=("date",), spark="weekday({args})"),
    "weekofyear": Function(
        1, 1, "CAST(WEEKOFYEAR({0}) AS INTEGER)", takes=("date",), also=("week",), spark="weekofyear({args})"
    ),
    "year": Function(1, 1, "CAST(YEAR({0}) AS INTEGER)", takes=("date",), spark="year({args})"),
}
