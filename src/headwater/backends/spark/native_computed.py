"""Columns that a declaration computes, in Spark's SQL: only such as no value can stop, for one would stop the whole job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from headwater.expressions.nodes import Call, Cast, Column, Expression, Literal
from headwater.expressions.rewrite import can_fail
from headwater.expressions.spark import to_spark
from headwater.expressions.spark_values import literal
from headwater.sources.intake import Intake

_LAST_SECOND = 9_223_372_022_000
"""Of the times that every engine has; those beyond are left to the intake."""
_EPOCHS = {"timestamp_seconds": 1, "timestamp_millis": 10**3, "timestamp_micros": 10**6}
_NEVER_FAIL = frozenset(
    {"coalesce", "lower", "upper", "||", "=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is null"}
)


class NativeColumn(NamedTuple):
    """One column: its text, and of which rows it can be computed."""

    name: str
    text: str
    fits: str = "TRUE"


def is_native(intake: Intake) -> bool:
    """Is a row just its columns, of which Spark can tell what the intake does?"""
    return intake.is_plain and native_columns(intake) is not None


def native_columns(intake: Intake) -> Sequence[NativeColumn] | None:
    """The computed columns; None if Spark cannot be asked for one of them."""
    expressions = () if intake.computed is None else intake.computed.expressions
    found = [_native(name, expression) for name, expression in expressions]
    native = [column for column in found if column is not None]
    return native if len(native) == len(found) else None


def _native(name: str, expression: Expression) -> NativeColumn | None:
    text = to_spark(expression)
    if text is None:
        return None
    match expression:
        case Call(function, (number,)) if function in _EPOCHS and pa.types.is_integer(number.type) and _is_safe(number):
            most = literal(_LAST_SECOND * _EPOCHS[function], pa.int64())
            fits = f"coalesce(CAST({to_spark(number)} AS BIGINT) BETWEEN -{most} AND {most}, TRUE)"
            return NativeColumn(name, f"CASE WHEN {fits} THEN {text} END", fits)
    return NativeColumn(name, text) if _is_safe(expression) else None


def _is_safe(expression: Expression) -> bool:
    """Arithmetic may overflow, which ``can_fail`` does not count."""
    parts = list(expression.walk())
    known = all(isinstance(part, Column | Literal | Cast) or _never_fails(part) for part in parts)
    narrowing = (part for part in parts if isinstance(part, Cast) and pa.types.is_integer(part.type))
    return known and not can_fail(expression) and all(_widens(part) for part in narrowing)


def _never_fails(part: Expression) -> bool:
    return isinstance(part, Call) and part.name in _NEVER_FAIL


def _widens(cast: Cast) -> bool:
    old = cast.argument.type
    return pa.types.is_integer(old) and old.bit_width <= cast.type.bit_width
