"""The functions that SQL may call: nothing else is passed through to an engine.

A scalar function has Spark's name and meaning and DuckDB's text. The text is parenthesised or a call, so that it can
stand anywhere; ``{0}``, ``{1}``, … are the arguments, ``{args}`` all of them, ``{concat}`` all with ``||`` between.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from attrs import frozen

from headwater.language.types import is_nested, is_numeric

MANY = 1_000


@frozen
class ScalarFunction:
    """One scalar function: how many arguments it takes, and its DuckDB text for each number of them."""

    name: str
    least: int
    most: int
    template: str

    def text(self, arguments: int) -> str:
        """The template for so many arguments: alternatives are separated by ``;``, the last serves for all others."""
        alternatives = self.template.split(" ; ")
        return alternatives[min(arguments - self.least, len(alternatives) - 1)]

    @property
    def arity(self) -> str:
        """How a message says it: ``2 arguments``."""
        if self.least == self.most:
            return "no arguments" if self.least == 0 else f"{self.least} argument{'' if self.least == 1 else 's'}"
        if self.most == MANY:
            return f"at least {self.least} argument{'' if self.least == 1 else 's'}"
        return f"{self.least} to {self.most} arguments"


_SCALARS: dict[str, tuple[int, int, str]] = {
    # conditions
    "coalesce": (1, MANY, "COALESCE({args})"),
    "if": (3, 3, "CASE WHEN {0} THEN {1} ELSE {2} END"),
    "ifnull": (2, 2, "COALESCE({args})"),
    "isnotnull": (1, 1, "({0} IS NOT NULL)"),
    "isnull": (1, 1, "({0} IS NULL)"),
    "nullif": (2, 2, "NULLIF({args})"),
    "nvl": (2, 2, "COALESCE({args})"),
    "nvl2": (3, 3, "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END"),
    "greatest": (2, MANY, "GREATEST({args})"),
    "least": (2, MANY, "LEAST({args})"),
    # numbers; what a number line does not have is NULL or NaN, as in Spark, and no error
    "abs": (1, 1, "ABS({0})"),
    "acos": (1, 1, "CASE WHEN ABS({0}) > 1 THEN CAST('NaN' AS DOUBLE) ELSE ACOS({0}) END"),
    "asin": (1, 1, "CASE WHEN ABS({0}) > 1 THEN CAST('NaN' AS DOUBLE) ELSE ASIN({0}) END"),
    "atan": (1, 1, "ATAN({0})"),
    "atan2": (2, 2, "ATAN2({args})"),
    "bit_count": (1, 1, "CAST(BIT_COUNT({0}) AS INTEGER)"),
    "cbrt": (1, 1, "CBRT({0})"),
    "ceil": (1, 1, "CAST(CEIL({0}) AS BIGINT)"),
    "ceiling": (1, 1, "CAST(CEIL({0}) AS BIGINT)"),
    "cos": (1, 1, "COS({0})"),
    "degrees": (1, 1, "DEGREES({0})"),
    "exp": (1, 1, "EXP({0})"),
    "floor": (1, 1, "CAST(FLOOR({0}) AS BIGINT)"),
    "isnan": (1, 1, "COALESCE(ISNAN(CAST({0} AS DOUBLE)), FALSE)"),
    "ln": (1, 1, "CASE WHEN {0} > 0 THEN LN({0}) END"),
    "log": (
        1,
        2,
        "CASE WHEN {0} > 0 THEN LN({0}) END ; CASE WHEN {0} > 0 AND {1} > 0 THEN LN({1}) / LN({0}) END",
    ),
    "log10": (1, 1, "CASE WHEN {0} > 0 THEN LOG10({0}) END"),
    "log2": (1, 1, "CASE WHEN {0} > 0 THEN LOG2({0}) END"),
    "mod": (2, 2, "({0} % {1})"),
    "pi": (0, 0, "PI()"),
    "pow": (2, 2, "POWER({args})"),
    "power": (2, 2, "POWER({args})"),
    "radians": (1, 1, "RADIANS({0})"),
    "round": (1, 2, "ROUND({args})"),
    "shiftleft": (2, 2, "({0} << {1})"),
    "shiftright": (2, 2, "({0} >> {1})"),
    "sign": (1, 1, "CAST(SIGN({0}) AS DOUBLE)"),
    "signum": (1, 1, "CAST(SIGN({0}) AS DOUBLE)"),
    "sin": (1, 1, "SIN({0})"),
    "sqrt": (1, 1, "CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE SQRT({0}) END"),
    "tan": (1, 1, "TAN({0})"),
    # strings
    "ascii": (1, 1, "CAST(ASCII({0}) AS INTEGER)"),
    "char_length": (1, 1, "CAST(LENGTH({0}) AS INTEGER)"),
    "character_length": (1, 1, "CAST(LENGTH({0}) AS INTEGER)"),
    "chr": (1, 1, "CHR(CAST({0} AS INTEGER))"),
    "concat": (1, MANY, "({concat})"),
    "concat_ws": (2, MANY, "CONCAT_WS({args})"),
    "contains": (2, 2, "CONTAINS({args})"),
    "endswith": (2, 2, "ENDS_WITH({args})"),
    "instr": (2, 2, "CAST(INSTR({args}) AS INTEGER)"),
    "left": (2, 2, "LEFT({args})"),
    "length": (1, 1, "CAST(LENGTH({0}) AS INTEGER)"),
    "levenshtein": (2, 2, "CAST(LEVENSHTEIN({args}) AS INTEGER)"),
    "locate": (2, 2, "CAST(INSTR({1}, {0}) AS INTEGER)"),
    "lower": (1, 1, "LOWER({0})"),
    "lpad": (2, 3, "LPAD({0}, {1}, ' ') ; LPAD({args})"),
    "ltrim": (1, 1, "LTRIM({0})"),
    "md5": (1, 1, "MD5({0})"),
    "regexp_extract": (2, 3, "REGEXP_EXTRACT({0}, {1}, 1) ; REGEXP_EXTRACT({args})"),
    "regexp_like": (2, 2, "REGEXP_MATCHES({args})"),
    "regexp_replace": (3, 3, "REGEXP_REPLACE({args}, 'g')"),
    "repeat": (2, 2, "REPEAT({args})"),
    "replace": (3, 3, "REPLACE({args})"),
    "reverse": (1, 1, "REVERSE({0})"),
    "right": (2, 2, "RIGHT({args})"),
    "rpad": (2, 3, "RPAD({0}, {1}, ' ') ; RPAD({args})"),
    "rtrim": (1, 1, "RTRIM({0})"),
    "split": (2, 2, "STRING_SPLIT_REGEX({args})"),
    "split_part": (3, 3, "SPLIT_PART({args})"),
    "startswith": (2, 2, "STARTS_WITH({args})"),
    "substr": (2, 3, "SUBSTRING({args})"),
    "translate": (3, 3, "TRANSLATE({args})"),
    "upper": (1, 1, "UPPER({0})"),
    # dates and times
    "add_months": (2, 2, "CAST(CAST({0} AS DATE) + TO_MONTHS({1}) AS DATE)"),
    "date_add": (2, 2, "(CAST({0} AS DATE) + {1})"),
    "date_sub": (2, 2, "(CAST({0} AS DATE) - {1})"),
    "date_trunc": (2, 2, "CAST(DATE_TRUNC({args}) AS TIMESTAMP)"),
    "datediff": (2, 2, "CAST(DATE_DIFF('day', CAST({1} AS DATE), CAST({0} AS DATE)) AS INTEGER)"),
    "day": (1, 1, "CAST(DAY({0}) AS INTEGER)"),
    "dayofmonth": (1, 1, "CAST(DAY({0}) AS INTEGER)"),
    "dayofweek": (1, 1, "CAST(DAYOFWEEK({0}) + 1 AS INTEGER)"),
    "dayofyear": (1, 1, "CAST(DAYOFYEAR({0}) AS INTEGER)"),
    "hour": (1, 1, "CAST(HOUR({0}) AS INTEGER)"),
    "last_day": (1, 1, "LAST_DAY({0})"),
    "make_date": (3, 3, "MAKE_DATE({args})"),
    "minute": (1, 1, "CAST(MINUTE({0}) AS INTEGER)"),
    "month": (1, 1, "CAST(MONTH({0}) AS INTEGER)"),
    "quarter": (1, 1, "CAST(QUARTER({0}) AS INTEGER)"),
    "second": (1, 1, "CAST(SECOND({0}) AS INTEGER)"),
    "timestamp_micros": (1, 1, "MAKE_TIMESTAMP({0})"),
    "timestamp_millis": (1, 1, "MAKE_TIMESTAMP({0} * 1000)"),
    "timestamp_seconds": (1, 1, "MAKE_TIMESTAMP(CAST({0} * 1000000 AS BIGINT))"),
    "to_date": (1, 1, "CAST({0} AS DATE)"),
    "to_timestamp": (1, 1, "CAST({0} AS TIMESTAMP)"),
    "unix_micros": (1, 1, "EPOCH_US({0})"),
    "unix_millis": (1, 1, "CAST(FLOOR(EPOCH_US({0}) / 1000) AS BIGINT)"),
    "unix_seconds": (1, 1, "CAST(FLOOR(EPOCH({0})) AS BIGINT)"),
    "weekday": (1, 1, "CAST(ISODOW({0}) - 1 AS INTEGER)"),
    "weekofyear": (1, 1, "CAST(WEEKOFYEAR({0}) AS INTEGER)"),
    "year": (1, 1, "CAST(YEAR({0}) AS INTEGER)"),
    # arrays and structs
    "array": (1, MANY, "LIST_VALUE({args})"),
    "array_contains": (2, 2, "LIST_CONTAINS({args})"),
    "array_join": (2, 2, "ARRAY_TO_STRING({args})"),
    "array_max": (1, 1, "LIST_MAX({0})"),
    "array_min": (1, 1, "LIST_MIN({0})"),
    "cardinality": (1, 1, "CAST(LEN({0}) AS INTEGER)"),
    "element_at": (2, 2, "LIST_EXTRACT({args})"),
    "size": (1, 1, "CAST(LEN({0}) AS INTEGER)"),
}

SCALARS: dict[str, ScalarFunction] = {
    name: ScalarFunction(name, least, most, template) for name, (least, most, template) in _SCALARS.items()
}
UNREPEATABLE = frozenset(
    {
        *("current_date", "current_timestamp", "current_time", "localtime", "localtimestamp", "now", "unix_timestamp"),
        *("rand", "random", "randn", "uuid", "monotonically_increasing_id"),
    }
)
"""Functions that other systems have and this one refuses: the same input must always give the same answer."""

SPECIAL_FORMS = ("cast", "try_cast", "extract", "position", "substring", "trim")
"""Calls with a grammar of their own."""


# -- aggregates -------------------------------------------------------------------------------------------------------

Result = Callable[[pa.DataType], pa.DataType | None]


def _of_sum(type_: pa.DataType) -> pa.DataType | None:
    if pa.types.is_integer(type_):
        return pa.int64()
    if pa.types.is_floating(type_):
        return pa.float64()
    return pa.decimal128(38, type_.scale) if pa.types.is_decimal(type_) else None


def _of_moment(type_: pa.DataType) -> pa.DataType | None:
    return pa.float64() if is_numeric(type_) else None


def _of_extreme(type_: pa.DataType) -> pa.DataType | None:
    return None if is_nested(type_) else type_


def _of_strings(type_: pa.DataType) -> pa.DataType | None:
    return pa.string() if pa.types.is_string(type_) else None


@frozen
class AggregateFunction:
    """One aggregate: its name in the algebra, and the type of its result for a type of argument (None: not allowed)."""

    name: str
    result: Result
    takes: str
    """What its argument must be, for messages."""


AGGREGATES: dict[str, AggregateFunction] = {
    "count": AggregateFunction("COUNT", lambda _: pa.int64(), "any value"),
    "sum": AggregateFunction("SUM", _of_sum, "a number"),
    **dict.fromkeys(("avg", "mean"), AggregateFunction("AVG", _of_moment, "a number")),
    "min": AggregateFunction("MIN", _of_extreme, "a value that can be ordered"),
    "max": AggregateFunction("MAX", _of_extreme, "a value that can be ordered"),
    **dict.fromkeys(("var", "variance", "var_samp"), AggregateFunction("VAR_SAMP", _of_moment, "a number")),
    "var_pop": AggregateFunction("VAR_POP", _of_moment, "a number"),
    **dict.fromkeys(("std", "stddev", "stddev_samp"), AggregateFunction("STDDEV_SAMP", _of_moment, "a number")),
    "stddev_pop": AggregateFunction("STDDEV_POP", _of_moment, "a number"),
    "median": AggregateFunction("MEDIAN", _of_moment, "a number"),
    **dict.fromkeys(("array_agg", "collect_list"), AggregateFunction("ARRAY_AGG", pa.list_, "any value")),
    **dict.fromkeys(("listagg", "string_agg"), AggregateFunction("LISTAGG", _of_strings, "a STRING")),
}


def known_functions() -> list[str]:
    """All names, for suggestions."""
    return sorted({*SCALARS, *AGGREGATES, *SPECIAL_FORMS})
