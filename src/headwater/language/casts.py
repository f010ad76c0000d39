"""Conversions that Spark makes without being asked."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve

from headwater.expressions.casts import read_constant
from headwater.expressions.nodes import Cast, Expression, Literal
from headwater.expressions.types import is_nested, is_temporal
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


def as_time(value: Bound) -> Bound:
    """A text constant that is a time as a TIMESTAMP; anything else as it is."""
    text = string_constant(value.expression)
    moment = pa.timestamp("us")
    return converted(value, moment) if text is not None and read_constant(text, moment) is not None else value


def with_times(values: Sequence[Bound]) -> list[Bound]:
    """Values that meet: where one of them is a time, text constants are read as such."""
    times = [v.type for v in values if is_temporal(v.type)]
    if not times:
        return list(values)
    type_ = times[0] if len(set(times)) == 1 else pa.timestamp("us")
    texts = (string_constant(v.expression) for v in values)
    return [
        v if text is None or read_constant(text, type_) is None else converted(v, type_)
        for v, text in zip(values, texts, strict=True)
    ]
