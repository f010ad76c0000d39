"""What functions take: the types that Spark converts arguments to before it calls, as it does without being asked.

A number becomes any other number (its fraction is cut off, and what does not fit is refused), a text what it is read as,
a DATE a TIMESTAMP and the other way round. A text is not made of anything: that takes a CAST.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat

import pyarrow as pa
from attrs import evolve

from headwater.expressions.functions.record import Function
from headwater.expressions.nodes import Case, Literal
from headwater.expressions.rewrite import conjunction
from headwater.expressions.types import common_type, is_nested, is_numeric, is_temporal
from headwater.language.casts import as_time, converted
from headwater.language.predicates import is_there
from headwater.language.scope import Bound

Kind = Callable[[pa.DataType], pa.DataType | None]
"""The type that an argument of a type becomes; None if there is no such call."""


def _becomes(type_: pa.DataType) -> Kind:
    def kind(given: pa.DataType) -> pa.DataType | None:
        free = pa.types.is_null(given) or pa.types.is_string(given) or given == type_
        alike = any(is_alike(given) and is_alike(type_) for is_alike in (is_numeric, is_temporal))
        return type_ if free or alike else None

    return kind


def _stays(*kept: pa.DataType, otherwise: Kind | None = None) -> Kind:
    return lambda given: given if given in kept else otherwise(given) if otherwise else None


_DOUBLE, _INT, _BIGINT = (_becomes(type_) for type_ in (pa.float64(), pa.int32(), pa.int64()))
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_KINDS: dict[str, Kind] = {
    "any": lambda given: given,
    "array": lambda given: given if pa.types.is_list(given) or pa.types.is_null(given) else None,
    "ordered": lambda given: None if is_nested(given) else given,
    "boolean": _stays(pa.bool_()),
    "bits": _stays(*_INTEGERS, pa.bool_(), pa.null()),
    "digits": _stays(*_INTEGERS),
    "integer": _stays(*_INTEGERS, pa.null()),
    "int": _INT,
    "bigint": _BIGINT,
    "int or bigint": _stays(pa.int64(), otherwise=_INT),
    "bigint or bytes": _stays(pa.string(), pa.binary(), otherwise=_BIGINT),
    "double": _DOUBLE,
    "real": _stays(pa.float32(), otherwise=_DOUBLE),
    "real or NULL": _stays(pa.float32(), pa.null(), otherwise=_DOUBLE),
    "number": lambda given: given if is_numeric(given) else _DOUBLE(given),
    "only number": lambda given: given if is_numeric(given) or pa.types.is_null(given) else None,
    "string": lambda given: pa.string() if pa.types.is_string(given) or pa.types.is_null(given) else None,
    "date": _becomes(pa.date32()),
    "timestamp": _becomes(pa.timestamp("us")),
    "only time": _stays(pa.date32(), pa.timestamp("us"), pa.null()),
}


def as_parameters(function: Function, arguments: Sequence[Bound]) -> list[Bound] | None:
    """The arguments as the function takes them; None if it does not take them."""
    if "item" in function.takes:
        return _as_items(arguments)
    given: list[Bound] = []
    strict = not function.of_null
    attempt = strict and any(pa.types.is_null(a.type) for a in arguments)
    for value, kind in zip(arguments, chain(function.takes, repeat(function.further)), strict=False):
        argument = as_time(value) if kind == "only time" else value
        type_ = _KINDS[kind](argument.type)
        if type_ is None:
            return None
        made = converted(argument, type_, attempt=attempt)
        given.append(_if_needed(made, given) if strict and _can_fail(argument, type_) else made)
    return given


def _can_fail(argument: Bound, type_: pa.DataType) -> bool:
    """Are there values that the conversion refuses?"""
    given = argument.type
    if isinstance(argument.expression, Literal) or not (is_numeric(given) or pa.types.is_string(given)):
        return False
    wide_enough = pa.types.is_integer(given) and pa.types.is_integer(type_) and given.bit_width <= type_.bit_width
    return given != type_ and not wide_enough and not (is_numeric(given) and pa.types.is_floating(type_))


def _if_needed(value: Bound, before: Sequence[Bound]) -> Bound:
    """The value, which is not computed where one before it is NULL: then the result is NULL whatever it is."""
    present = [is_there(b).expression for b in before if b.nullable]
    if not present:
        return value
    return evolve(value, expression=Case(((conjunction(present), value.expression),), value.type))


def _as_items(arguments: Sequence[Bound]) -> list[Bound] | None:
    """An array and a value that is, or could be, one of its items: both as wide as the wider."""
    array, item = arguments
    if not pa.types.is_list(array.type):
        return list(arguments) if pa.types.is_null(array.type) else None
    kinds = {array.type.value_type, item.type}
    wider = common_type(*kinds) if len(kinds) == 2 else item.type
    if pa.float32() in kinds and any(pa.types.is_integer(kind) for kind in kinds):
        wider = pa.float32()  # unlike where values meet otherwise
    return None if wider is None else [converted(array, pa.list_(wider)), converted(item, wider)]
