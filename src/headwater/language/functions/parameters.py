"""What functions take: the types that Spark converts arguments to before it calls, as it does without being asked.

A number becomes any other number (its fraction is cut off, and what does not fit is refused), a text what it is read as,
a DATE a TIMESTAMP and the other way round. A text is not made of anything: that takes a CAST.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.language.casts import converted
from headwater.language.rendering import Template
from headwater.language.scope import Bound
from headwater.language.types import common_type, is_nested, is_numeric, is_temporal

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
    "only time": _stays(pa.date32(), pa.timestamp("us"), pa.null()),
}

_ONE = {
    "double": "acos acosh asin asinh atan atanh cbrt cos cosh cot csc degrees exp ln log10 log2 radians rint sec sign "
    "signum sin sinh sqrt tan tanh",
    "number": "abs ceil ceiling floor negative positive",
    "only number": "nullifzero timestamp_seconds",
    "integer": "timestamp_micros timestamp_millis",
    "bits": "bit_count",
    "int": "date_from_unix_date factorial space",
    "bigint": "bin char chr",
    "bigint or bytes": "hex",
    "real": "isnan",
    "date": "day dayname dayofmonth dayofweek dayofyear last_day month monthname quarter weekday weekofyear year",
    "only time": "hour minute second unix_date unix_micros unix_millis unix_seconds",
}
PARAMETERS: dict[str, tuple[str, ...]] = {
    **{name: (kind,) for kind, names in _ONE.items() for name in names.split()},
    **dict.fromkeys(("atan2", "log", "pow", "power"), ("double", "double")),
    "nanvl": ("real", "real or NULL"),
    **dict.fromkeys(("bround", "round"), ("number", "digits")),
    **dict.fromkeys(("bit_get", "getbit"), ("integer", "int")),
    **dict.fromkeys(("shiftleft", "shiftright"), ("int or bigint", "int")),
    **dict.fromkeys(("add_months", "date_sub"), ("date", "int")),
    "make_date": ("integer", "integer", "integer"),
    "make_timestamp": ("integer", "integer", "integer", "integer", "integer"),
    **dict.fromkeys(("left", "right", "repeat"), ("string", "int")),
    **dict.fromkeys(("lpad", "rpad"), ("string", "int", "string")),
    "substr": ("string", "int", "int"),
    "locate": ("string", "string", "int"),
    "overlay": ("string", "string", "int", "int"),
    **dict.fromkeys(("split_part", "substring_index"), ("string", "string", "int")),
    **dict.fromkeys(("regexp_extract", "regexp_extract_all"), ("string", "string", "int")),
    "elt": ("int",),
    **dict.fromkeys(("array_repeat", "element_at", "get"), ("any", "int")),
    "slice": ("any", "int", "int"),
    "sort_array": ("any", "boolean"),
}
"""By name, the kinds of the parameters; of those that are not named here DuckDB decides."""

_EVERY = {"greatest": "ordered", "least": "ordered"}
"""The kind of all parameters, however many."""

_WITH_ITEMS = ("array_append", "array_contains", "array_position", "array_prepend", "array_remove")
"""Functions of an array and a value that is, or could be, one of its items."""

_OF_NULL = ("array_repeat", "elt", "locate", "nanvl")
"""Functions that look at all arguments even if one is NULL; the others are NULL then, whatever else they are given."""


def as_parameters(name: str, arguments: Sequence[Bound]) -> list[Bound] | None:
    """The arguments as the function takes them; None if it does not take them."""
    if name in _WITH_ITEMS:
        return _as_items(arguments)
    given: list[Bound] = []
    strict = name not in _OF_NULL
    attempt = strict and any(pa.types.is_null(a.type) for a in arguments)
    kinds = chain(PARAMETERS.get(name, ()), repeat(_EVERY.get(name, "any")))
    for argument, kind in zip(arguments, kinds, strict=False):
        type_ = _KINDS[kind](argument.type)
        if type_ is None:
            return None
        value = converted(argument, type_, attempt=attempt)
        given.append(_if_needed(value, given) if strict and _can_fail(argument, type_) else value)
    return given


def _can_fail(argument: Bound, type_: pa.DataType) -> bool:
    """Are there values that the conversion refuses?"""
    given = argument.type
    if isinstance(argument.node, exp.Literal) or not (is_numeric(given) or pa.types.is_string(given)):
        return False
    wide_enough = pa.types.is_integer(given) and pa.types.is_integer(type_) and given.bit_width <= type_.bit_width
    return given != type_ and not wide_enough and not (is_numeric(given) and pa.types.is_floating(type_))


def _if_needed(value: Bound, before: Sequence[Bound]) -> Bound:
    """The value, which is not computed where one before it is NULL: then the result is NULL whatever it is."""
    unsure = [b.node.copy() for b in before if b.nullable]
    if not unsure:
        return value
    present = " AND ".join(f"{{{i + 1}}} IS NOT NULL" for i in range(len(unsure)))
    return evolve(value, node=Template(this=f"CASE WHEN {present} THEN {{0}} END", expressions=[value.node, *unsure]))


def _as_items(arguments: Sequence[Bound]) -> list[Bound] | None:
    """The array and the value: both as wide as the wider."""
    array, item = arguments
    if not pa.types.is_list(array.type):
        return list(arguments)
    kinds = {array.type.value_type, item.type}
    wider = common_type(*kinds) if len(kinds) == 2 else item.type
    if pa.float32() in kinds and any(pa.types.is_integer(kind) for kind in kinds):
        wider = pa.float32()  # unlike where values meet otherwise
    return None if wider is None else [converted(array, pa.list_(wider)), converted(item, wider)]
