"""Expressions without columns: their values, and the literals that stand for them."""

from __future__ import annotations

import datetime
import decimal
import math
from functools import lru_cache

import duckdb
import pyarrow as pa
from attrs import frozen

from headwater.expressions.duckdb import computed
from headwater.expressions.nodes import Call, Cast, Expression, Literal
from headwater.model.types import INTERVAL

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})


@frozen
class Known:
    """A value that has been computed; it may be NULL."""

    value: object


@lru_cache(maxsize=1024)
def value(expression: Expression) -> Known | None:
    """The value of an expression without columns; None if it cannot be computed now."""
    if expression.columns or expression.functions:
        return None
    try:
        return Known(computed(expression))
    except duckdb.Error:
        return None  # it fails at run time, if a row gets there


def is_literal(expression: Expression) -> bool:
    """Is there nothing to compute: a constant as written, or a cast of one?"""
    return isinstance(expression, Literal) or (
        isinstance(expression, Cast) and isinstance(expression.argument, Literal)
    )


def literal(expression: Expression) -> Expression | None:
    """The value as a constant of the same type; None for what is not simply written."""
    known = value(expression)
    return None if known is None else typed_literal(known.value, expression.type)


def typed_literal(found: object, type_: pa.DataType) -> Expression | None:
    """A Python value as a constant of the type; None for what is not simply written."""
    match found:
        case None:
            return Cast(Literal(None, pa.null()), type_)
        case bool():
            return Literal("TRUE" if found else "FALSE", pa.bool_())
        case int():
            natural = pa.int32() if -(2**31) <= found < 2**31 else pa.int64()
            return Cast(Literal(str(found), natural), type_)
        case str() if pa.types.is_string(type_):  # times that Python cannot hold come as texts, too
            return Literal(found, pa.string()) if found.isprintable() else None
        case float() if math.isfinite(found):
            return Cast(_real(found), type_)
        case decimal.Decimal() | datetime.datetime() | datetime.date():
            return Cast(Literal(str(found), pa.string()), type_)
    return None


def _real(found: float) -> Literal:
    text = repr(found)
    return Literal(text if "e" in text else f"{text}e0", pa.float64())


def with_folded_sides(predicate: Expression) -> Expression:
    """``"x" < 1 + 2`` as ``"x" < 3``: a side of a comparison that reads no column is computed."""
    if not isinstance(predicate, Call) or predicate.name not in _COMPARISONS:
        return predicate
    sides = tuple(map(_folded, predicate.arguments))
    return predicate if sides == predicate.arguments else predicate.with_arguments(sides)


def _folded(side: Expression) -> Expression:
    if side.columns or side.functions or is_literal(side) or side.type == INTERVAL:
        return side
    return literal(side) or side
