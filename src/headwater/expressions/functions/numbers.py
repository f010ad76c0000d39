"""Functions of numbers.

What a number line does not have is NULL or NaN, as in Spark without its ANSI mode, and no error: one row must not stop a
stream. Differences between the two engines that the texts bridge are named where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.expressions.functions.operators import remainder
from headwater.expressions.functions.record import Function, Texts
from headwater.expressions.nodes import Expression

_WHOLE = (
    "CASE WHEN ISNAN({0}) THEN 0 WHEN {0} >= 9223372036854775807 THEN 9223372036854775807 "
    "WHEN {0} <= -9223372036854775808 THEN (-9223372036854775807 - 1) ELSE CAST(%s({0}) AS BIGINT) END"
)
"""A DOUBLE as a BIGINT: what does not fit stops at the end, as in Java."""

_SPARK_WHOLE = (
    "CASE WHEN isnan({0}) THEN 0L WHEN {0} >= 9.223372036854775807E18D THEN 9223372036854775807L "
    "WHEN {0} <= -9.223372036854775808E18D THEN CAST('-9223372036854775808' AS BIGINT) ELSE %s({0}) END"
)


def _of_float(text: str) -> str:
    return text.replace("{0}", "CAST({0} AS DOUBLE)")


_SPARK_BIT = (
    "CAST(CASE WHEN {1} BETWEEN 0 AND 63 THEN shiftright(CAST({0} AS BIGINT), {1}) "
    "WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN 0L END & 1L AS TINYINT)"
)


def _spark_positive_remainder(arguments: Sequence[Expression]) -> str:
    if not all(pa.types.is_integer(a.type) or pa.types.is_float64(a.type) for a in arguments):
        return ""
    rest = "({0} % nullif({1}, 0))"
    return f"CASE WHEN {rest} < 0 THEN (({rest} + {{1}}) % nullif({{1}}, 0)) ELSE {rest} END"


_WHOLES = {"": "CAST({0} AS BIGINT)", "bigint": "({0})"}

_ROUNDED = (
    "CASE WHEN ABS({0}) < 1e16 THEN "
    "CAST(CAST(%(round)s(CAST(CAST({0} AS VARCHAR) AS DECIMAL(38,22)), %(digits)s) AS VARCHAR) AS DOUBLE) "
    "WHEN ABS({0}) < 1e37 AND %(digits)s < 0 THEN "
    "CAST(CAST(%(round)s(CAST(CAST({0} AS VARCHAR) AS DECIMAL(38,0)), %(digits)s) AS VARCHAR) AS DOUBLE) ELSE {0} END"
)
"""Spark rounds the decimal digits that a DOUBLE is shown with, not the binary ones: 1.005 has two 5s. It is read again from
text, for DuckDB makes a DOUBLE of a long DECIMAL that is not the nearest."""


def _rounded(function: str) -> dict[str, str]:
    whole, rounded = (_ROUNDED % {"round": function, "digits": digits} for digits in ("0", "{1}"))
    return {"real": f"{whole} ; {rounded}", "float": f"CAST({whole} AS FLOAT) ; CAST({rounded} AS FLOAT)"}


_SIGN = "CASE WHEN {0} = 0 OR ISNAN({0}) THEN {0} ELSE CAST(SIGN({0}) AS DOUBLE) END"
_SHIFTED_LEFT: Texts = {
    "": "CAST(XOR(((CAST({0} AS BIGINT) & 4294967295) << ({1} & 31)) & 4294967295, 2147483648) - 2147483648 AS INTEGER)",
    "bigint": "CAST(XOR((CAST({0} AS HUGEINT) * (CAST(1 AS HUGEINT) << ({1} & 63))) & 18446744073709551615, "
    "CAST(9223372036854775808 AS HUGEINT)) - 9223372036854775808 AS BIGINT)",
}
"""What leaves at the left is lost, and the first of the bits left is the sign; DuckDB's own stops the query."""

_POWER = "CASE WHEN ABS({0}) = 1 AND NOT ISFINITE({1}) THEN CAST('NaN' AS DOUBLE) ELSE POWER({args}) END"
"""To Java 1 to a power that is no number is none either; to C, and DuckDB, it is 1."""


def _positive_remainder(arguments: Sequence[Expression]) -> str:
    rest = remainder(arguments)
    again = rest.replace("({0} %", f"(({rest} + {{1}}) %", 1)
    return f"CASE WHEN {rest} < 0 THEN {again} ELSE {rest} END"


NUMBERS: dict[str, Function] = {
    "abs": Function(1, 1, "ABS({0})", takes=("number",), spark="abs({args})"),
    "acos": Function(1, 1, "CASE WHEN ABS({0}) > 1 THEN CAST('NaN' AS DOUBLE) ELSE ACOS({0}) END", takes=("double",)),
    "acosh": Function(1, 1, "ACOSH({0})", takes=("double",)),
    "asin": Function(1, 1, "CASE WHEN ABS({0}) > 1 THEN CAST('NaN' AS DOUBLE) ELSE ASIN({0}) END", takes=("double",)),
    "asinh": Function(1, 1, "ASINH({0})", takes=("double",)),
    "atan": Function(1, 1, "ATAN({0})", takes=("double",)),
    "atan2": Function(2, 2, "ATAN2({0} + 0e0, {1} + 0e0)", takes=("double", "double")),
    "atanh": Function(
        1,
        1,
        "CASE WHEN ABS({0}) > 1 THEN CAST('NaN' AS DOUBLE) WHEN {0} = 1 THEN CAST('Infinity' AS DOUBLE) "
        "WHEN {0} = -1 THEN CAST('-Infinity' AS DOUBLE) ELSE ATANH({0}) END",
        takes=("double",),
    ),
    "bin": Function(1, 1, "BIN({0})", takes=("bigint",), spark="bin({args})"),
    "bit_count": Function(
        1, 1, "CAST(BIT_COUNT(CAST({0} AS BIGINT)) AS INTEGER)", takes=("bits",), spark="bit_count({args})"
    ),
    "bit_get": Function(
        2,
        2,
        "CAST((CAST({0} AS BIGINT) >> {1}) & 1 AS TINYINT)",
        takes=("integer", "int"),
        also=("getbit",),
        spark=_SPARK_BIT,
    ),
    "bround": Function(
        1, 2, {"": "ROUND_EVEN({0}, 0) ; ROUND_EVEN({args})", **_rounded("ROUND_EVEN")}, takes=("number", "digits")
    ),
    "cbrt": Function(1, 1, "CBRT({0})", takes=("double",)),
    "ceil": Function(
        1,
        1,
        {**_WHOLES, "real": _WHOLE % "CEIL", "decimal": "CEIL({0})"},
        takes=("number",),
        also=("ceiling",),
        spark={
            "": "ceil({0})",
            "real": _SPARK_WHOLE % "ceil",
            "float": _of_float(_SPARK_WHOLE % "ceil"),
            "decimal": "",
        },
    ),
    "cos": Function(1, 1, "COS({0})", takes=("double",)),
    "cosh": Function(1, 1, "COSH({0})", takes=("double",)),
    "cot": Function(1, 1, "COT({0})", takes=("double",)),
    "csc": Function(1, 1, "(1 / SIN({0}))", takes=("double",)),
    "degrees": Function(1, 1, "DEGREES({0})", takes=("double",), spark="({0} * 57.29577951308232D)"),
    "e": Function(0, 0, "EXP(1)"),
    "exp": Function(1, 1, "EXP({0})", takes=("double",)),
    "expm1": Function(  # EXP(x) - 1 loses digits near 0
        1,
        1,
        "CASE WHEN ABS({0}) < 1e-15 THEN {0} WHEN ABS({0}) < 1 THEN 2 * SINH({0} / 2) * EXP({0} / 2) ELSE EXP({0}) - 1 END",
        takes=("double",),
    ),
    "factorial": Function(
        1, 1, "CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(FACTORIAL({0}) AS BIGINT) END", takes=("int",)
    ),
    "floor": Function(
        1,
        1,
        {**_WHOLES, "real": _WHOLE % "FLOOR", "decimal": "FLOOR({0})"},
        takes=("number",),
        spark={
            "": "floor({0})",
            "real": _SPARK_WHOLE % "floor",
            "float": _of_float(_SPARK_WHOLE % "floor"),
            "decimal": "",
        },
    ),
    "isnan": Function(1, 1, "COALESCE(ISNAN({0}), FALSE)", takes=("real",), spark="isnan({args})"),
    "hypot": Function(
        2,
        2,
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN ISINF({0}) OR ISINF({1}) "
        "THEN CAST('Infinity' AS DOUBLE) WHEN {0} = 0 THEN ABS({1}) "
        "WHEN ABS({0}) >= ABS({1}) THEN ABS({0}) * SQRT(1 + ({1} / {0}) * ({1} / {0})) "
        "ELSE ABS({1}) * SQRT(1 + ({0} / {1}) * ({0} / {1})) END",
        takes=("double", "double"),
    ),
    "ln": Function(1, 1, "CASE WHEN {0} > 0 THEN LN({0}) END", takes=("double",)),
    "log": Function(2, 2, "CASE WHEN LEAST({0}, {1}) > 0 THEN LN({1}) / LN({0}) END", takes=("double", "double")),
    "log10": Function(1, 1, "CASE WHEN {0} > 0 THEN LOG10({0}) END", takes=("double",)),
    "log1p": Function(  # LN(1 + x) loses digits near 0
        1,
        1,
        "CASE WHEN {0} <= -1 THEN NULL WHEN ABS({0}) < 1e-15 THEN {0} "
        "WHEN ABS({0}) < 0.5 THEN 2 * ATANH({0} / (2 + {0})) ELSE LN(1 + {0}) END",
        takes=("double",),
    ),
    "log2": Function(1, 1, "CASE WHEN {0} > 0 THEN LOG2({0}) END", takes=("double",)),
    "nanvl": Function(
        2,
        2,
        "CASE WHEN ISNAN({0}) THEN {1} ELSE {0} END",
        takes=("real", "real or NULL"),
        of_null=True,
        spark="CASE WHEN isnan({0}) THEN {1} ELSE {0} END",
    ),
    "negative": Function(1, 1, "(-{0})", takes=("number",)),
    "pi": Function(0, 0, "PI()", spark="pi({args})"),
    "pmod": Function(2, 2, _positive_remainder, spark=_spark_positive_remainder),
    "power": Function(2, 2, _POWER, takes=("double", "double"), also=("pow",)),
    "radians": Function(1, 1, "RADIANS({0})", takes=("double",), spark="({0} * 0.017453292519943295D)"),
    "rint": Function(1, 1, "ROUND_EVEN({0}, 0)", takes=("double",), spark="rint({args})"),
    "round": Function(1, 2, {"": "ROUND({args})", **_rounded("ROUND")}, takes=("number", "digits")),
    "sec": Function(1, 1, "(1 / COS({0}))", takes=("double",)),
    "shiftleft": Function(2, 2, _SHIFTED_LEFT, takes=("int or bigint", "int"), spark="shiftleft({args})"),
    "shiftright": Function(
        2,
        2,
        {"": "({0} >> ({1} & 31))", "bigint": "({0} >> ({1} & 63))"},
        takes=("int or bigint", "int"),
        spark="shiftright({args})",
    ),
    "sign": Function(1, 1, _SIGN, takes=("double",), also=("signum",), spark="signum({0})"),
    "sin": Function(1, 1, "SIN({0})", takes=("double",)),
    "sinh": Function(1, 1, "SINH({0})", takes=("double",)),
    "sqrt": Function(
        1, 1, "CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE SQRT({0}) END", takes=("double",), spark="sqrt({args})"
    ),
    "tan": Function(1, 1, "TAN({0})", takes=("double",)),
    "tanh": Function(1, 1, "TANH({0})", takes=("double",)),
    "truncate": Function(1, 2, "TRUNC({args})", takes=("number", "int")),  # Flink's
}
