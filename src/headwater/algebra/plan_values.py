"""Constants in plan text: Python values as SQL literals, and back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.model.types import string_literal

_INFINITIES = {float("inf"): "infinity", float("-inf"): "-infinity"}


def literal(value: object, type_: pa.DataType | None = None) -> str:
    """The value as a literal; in a DECIMAL column a decimal is a plain number.

    >>> literal("it's"), literal(None), literal(date(2026, 1, 2)), literal((1, 2.5))
    ("'it''s'", 'NULL', "DATE '2026-01-02'", '[1, 2.5]')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return _INFINITIES.get(value, repr(value))
        case str():
            return string_literal(value)
        case bytes():
            return f"X'{value.hex()}'"
        case Decimal():
            in_column = type_ is not None and pa.types.is_decimal(type_) and value.is_finite()
            return str(value) if in_column else f"DECIMAL '{value}'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case list() | tuple():
            return f"[{', '.join(literal(item, item_type(type_, i)) for i, item in enumerate(value))}]"
    raise HeadwaterError("PLAN_TEXT", f"plan text has no constants of the Python type {type(value).__name__}")


def unquoted_string(text: str) -> str:
    return text[1:-1].replace("''", "'")


TYPED: dict[str, Callable[[str], object]] = {
    "DATE": date.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "DECIMAL": Decimal,
    "X": bytes.fromhex,
}
"""By the word before a string, what the two together stand for."""

WORDS: dict[str, object] = {
    "NULL": None,
    "TRUE": True,
    "FALSE": False,
    "INFINITY": float("inf"),
    "NAN": float("nan"),
    "INF": float("inf"),
}


def number(text: str, type_: pa.DataType | None) -> object:
    """A number by the looks of it, or by the column that it is for."""
    if type_ is not None and pa.types.is_decimal(type_):
        return Decimal(text)
    return float(text) if not text.lstrip("-").isdigit() else int(text)


def item_type(type_: pa.DataType | None, place: int) -> pa.DataType | None:
    """The type of an item of a list or of a field of a struct; both are written as a list."""
    if type_ is None:
        return None
    if pa.types.is_struct(type_):
        return type_.field(place).type if place < type_.num_fields else None
    return type_.value_type if pa.types.is_list(type_) else None
