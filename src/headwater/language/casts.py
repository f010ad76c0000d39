"""Conversions that Spark makes without being asked."""

from __future__ import annotations

import pyarrow as pa
from attrs import evolve

from headwater.expressions.casts import read_constant
from headwater.expressions.nodes import Cast, Expression, Literal
from headwater.expressions.types import is_nested
from headwater.language.scope import Bound


def string_constant(expression: Expression) -> str | None:
    """The letters of a string as written; None if it is something else."""
    return expression.text if isinstance(expression, Literal) and pa.types.is_string(expression.type) else None


def converted(value: Bound, type_: pa.DataType, *, attempt: bool = False) -> Bound:
    """The value as one of a type that Spark converts it to; with ``attempt`` NULL where that fails."""
    if value.type == type_:
        return value
    text = string_constant(value.expression)
    read = None if text is None else read_constant(text, type_)
    if read is not None:  # as DuckDB writes it, so that it is plain to see that it cannot fail
        return evolve(value, expression=Cast(Literal(read, pa.string()), type_), nullable=False)
    return evolve(value, expression=Cast(value.expression, type_, attempt))


def as_text(value: Bound) -> Bound:
    """A number, a time, a truth or bytes as the text that it is joined to; what is none of these as it is."""
    return value if is_nested(value.type) or pa.types.is_null(value.type) else converted(value, pa.string())


def as_date(value: Bound) -> Bound:
    """Text where a DATE must be."""
    return converted(value, pa.date32()) if pa.types.is_string(value.type) else value
