"""Operators that DuckDB does not have, or means otherwise: called by their sign, not by a name that a query can call."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.expressions.functions.record import Function
from headwater.expressions.nodes import Expression, Literal

_MOST_DIGITS = 38


def is_whole_constant(expression: Expression) -> bool:
    """Is it an integer as written, perhaps with a sign?"""
    if not isinstance(expression, Literal) or expression.text is None or pa.types.is_string(expression.type):
        return False
    return expression.text.removeprefix("-").isdecimal()


def remainder(arguments: Sequence[Expression]) -> str:
    """NULL where there is none; for a DOUBLE DuckDB gives NaN, and of the least integer by -1 it refuses 0."""
    divisor = arguments[1]
    if isinstance(divisor, Literal) and divisor.text not in (None, "0") and not divisor.text.startswith("-"):
        return "({0} % {1})"
    if all(pa.types.is_integer(a.type) for a in arguments):
        return "({0} % CASE {1} WHEN 0 THEN NULL WHEN -1 THEN 1 ELSE {1} END)"
    return "({0} % NULLIF({1}, 0))"


def _whole_quotient(arguments: Sequence[Expression]) -> str:
    """Of integers or DECIMALs, towards zero, a BIGINT."""
    left, right = (a.type for a in arguments)
    if not pa.types.is_decimal(left) and not pa.types.is_decimal(right):
        wide = pa.types.is_int64(left) and not is_whole_constant(arguments[0])
        return "({0} // {1})" if wide else "(CAST({0} AS BIGINT) // {1})"
    scale = max(t.scale for t in (left, right) if pa.types.is_decimal(t))
    dividend, divisor = (_unscaled(i, scale) for i in range(2))
    return f"CAST({dividend} // NULLIF({divisor}, 0) AS BIGINT)"


def _unscaled(operand: int, scale: int) -> str:
    """All digits of a DECIMAL as one integer: exact, where a quotient of DECIMALs would be a DOUBLE."""
    value = f"CAST({{{operand}}} AS DECIMAL({_MOST_DIGITS},{scale}))"
    return f"CAST(REPLACE(CAST({value} AS VARCHAR), '.', '') AS HUGEINT)"


OPERATORS: dict[str, Function] = {
    "%": Function(2, 2, remainder),
    "div": Function(2, 2, _whole_quotient),
    # In parentheses: to DuckDB these operators are all alike, and ``~`` binds looser than arithmetic.
    "&": Function(2, 2, "({0} & {1})"),
    "|": Function(2, 2, "({0} | {1})"),
    "^": Function(2, 2, "XOR({args})"),
    "~": Function(1, 1, "(~{0})"),
    # From 0 on; a negative place is none.
    "[]": Function(2, 2, "CASE WHEN {1} >= 0 THEN LIST_EXTRACT({0}, {1} + 1) END", spark="get({args})"),
    "like": Function(2, 3, "({0} LIKE {1}) ; ({0} LIKE {1} ESCAPE {2})"),
    "ilike": Function(2, 3, "({0} ILIKE {1}) ; ({0} ILIKE {1} ESCAPE {2})"),
    # Where the second side can fail: not computed where the first decides. DuckDB would compute both.
    "guarded and": Function(2, 2, "CASE WHEN ({0}) IS FALSE THEN FALSE ELSE ({0} AND {1}) END"),
    "guarded or": Function(2, 2, "CASE WHEN {0} THEN TRUE ELSE ({0} OR {1}) END"),
    "trim leading": Function(
        2, 2, "LTRIM({args})", written="TRIM(LEADING {1} FROM {0})", spark="trim(LEADING {1} FROM {0})"
    ),
    "trim trailing": Function(
        2, 2, "RTRIM({args})", written="TRIM(TRAILING {1} FROM {0})", spark="trim(TRAILING {1} FROM {0})"
    ),
}
