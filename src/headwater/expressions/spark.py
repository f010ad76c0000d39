"""Trees as Spark's SQL, where Spark computes exactly what DuckDB does.

NULL, overflow, NaN, -0.0, the smallest and largest values and their types come out alike, or both engines refuse; anything
else is left to DuckDB. Functions say in their row what Spark's text is (``functions.Function.spark``). What is missing is
missing on purpose: libraries of mathematics differ in the last bit (SIN, LN, POWER), of Unicode in letters (UPPER), of
regular expressions in nearly everything; DOUBLE as text differs, and so do dates far away.

The session must be as ``SETTINGS`` says. Two values count as impossible: the largest and smallest TIMESTAMP and DATE that
the types hold mean infinity to DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import pyarrow as pa

from headwater.expressions import spark_conversions as to
from headwater.expressions.functions.table import FUNCTIONS
from headwater.expressions.nodes import Call, Case, Cast, Column, Expression, Field, Literal
from headwater.expressions.rewrite import conjunction, conjuncts
from headwater.expressions.spark_conversions import comparable, constant, is_folded, widened
from headwater.expressions.spark_values import NotNativeError, literal, quoted, spark_type
from headwater.model.types import INTERVAL

SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
"""What a session must have for expressions to mean what they must: UTC, errors instead of wrong numbers."""

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_REALS = (pa.float32(), pa.float64())
_MOMENT = pa.timestamp("us")
_MOST_DIGITS = 37
"""Spark gives sums one digit more than DuckDB, and takes from the fraction what would go beyond 38."""


@lru_cache(maxsize=4096)
def to_spark(expression: Expression) -> str | None:
    """The expression in Spark SQL over columns of the same names; None if it stays in Python.

    >>> to_spark(Call("+", (Column("x", pa.int64()), Literal("1", pa.int32())), pa.int64()))
    '(`x` + 1L)'
    """
    try:
        guarded = _guards_first(expression)
        return widened(guarded, guarded.type, _text)
    except NotNativeError:
        return None


def _guards_first(predicate: Expression) -> Expression:
    """Conditions that cannot fail before those that can: Spark computes them in order, and no further than it must."""
    parts = conjuncts(predicate)
    fragile = [p for p in parts if any(map(_is_fragile, p.walk()))]
    if not fragile or len(fragile) == len(parts):
        return predicate
    return conjunction([*(p for p in parts if p not in fragile), *fragile])


def _is_fragile(part: Expression) -> bool:
    return isinstance(part, Cast) or (isinstance(part, Call) and part.name in ("+", "-", "*", "abs"))


def _text(expression: Expression) -> str:
    """The expression as one of its type. Raises ``NotNativeError`` if that cannot be."""
    if is_folded(expression):
        return constant(expression).text
    match expression:
        case Column(name, type_):
            spark_type(type_)
            return quoted(name)
        case Literal():
            return constant(expression).text
        case Cast(argument, type_, attempt):
            return to.cast(argument, type_, _text, attempt=attempt)
        case Case():
            return _case(expression)
        case Field(argument, name):
            return _field(argument, name)
        case Call(name):
            return _OPERATORS[name](expression) if name in _OPERATORS else _call(expression)
    raise NotNativeError(type(expression).__name__)


def _as(expression: Expression, type_: pa.DataType) -> str:
    return widened(expression, type_, _text)


# -- logic ----------------------------------------------------------------------------------------------------------------


def _connective(call: Call) -> str:
    return f"({f' {call.name.upper()} '.join(_as(a, pa.bool_()) for a in call.arguments)})"


def _guarded(call: Call) -> str:
    left, right = (_as(a, pa.bool_()) for a in call.arguments)
    if call.name == "guarded and":
        return f"CASE WHEN ({left}) IS FALSE THEN FALSE ELSE ({left} AND {right}) END"
    return f"CASE WHEN {left} THEN TRUE ELSE ({left} OR {right}) END"


def _negation(call: Call) -> str:
    return f"(NOT {_as(call.arguments[0], pa.bool_())})"


def _test(call: Call) -> str:
    """IS NULL, IS TRUE, IS FALSE."""
    return f"({_text(call.arguments[0])} {call.name.upper()})"


def _comparison(call: Call) -> str:
    return _compared(call.name, *call.arguments)


def _compared(sign: str, left: Expression, right: Expression) -> str:
    type_ = comparable(left, right)
    if pa.types.is_nested(type_) or pa.types.is_null(type_):
        raise NotNativeError(f"a comparison of {type_}")
    sides = _as(left, type_), _as(right, type_)
    return f"(NOT {sides[0]} <=> {sides[1]})" if sign == "is distinct from" else f"({sides[0]} {sign} {sides[1]})"


def _between(call: Call) -> str:
    value, low, high = call.arguments
    return f"({_compared('>=', value, low)} AND {_compared('<=', value, high)})"


def _membership(call: Call) -> str:
    """As single comparisons: Spark looks a DOUBLE up in a table of bits, where -0.0 is not 0.0."""
    value, *options = call.arguments
    if value.type not in _REALS and all(comparable(value, one) == value.type for one in options):
        _compared("=", value, options[0])
        return f"({_text(value)} IN ({', '.join(_as(one, value.type) for one in options)}))"
    return f"({' OR '.join(_compared('=', value, one) for one in options)})"


_ESCAPE = "!"


def _like(call: Call) -> str:
    value, pattern, *escape = call.arguments
    signs = [e.text for e in (pattern, *escape) if isinstance(e, Literal) and e.text is not None]
    if len(signs) <= len(escape) or value.type != pa.string():
        raise NotNativeError("LIKE")
    text = literal(_like_pattern(signs[0], signs[1] if escape else ""), pa.string())
    return f"({_text(value)} LIKE {text} ESCAPE '{_ESCAPE}')"


def _like_pattern(pattern: str, escape: str) -> str:
    """The pattern with our own sign of escape; the engines differ in what a stray one means."""
    made, rest = [], iter(pattern)
    for sign in rest:
        if sign == escape:
            escaped = next(rest, "")
            if escaped == "" or escaped not in ("%", "_", escape):
                raise NotNativeError("LIKE with a stray sign of escape")
            made.append(f"{_ESCAPE}{escaped}" if escaped in ("%", "_", _ESCAPE) else escaped)
        else:
            made.append(_ESCAPE * 2 if sign == _ESCAPE else sign)
    return "".join(made)


def _case(case: Case) -> str:
    branches = []
    for condition, result in case.branches:
        test = _as(condition, pa.bool_()) if case.subject is None else _compared("=", case.subject, condition)
        branches.append(f" WHEN {test} THEN {_as(result, case.type)}")
    default = Literal(None, pa.null()) if case.default is None else case.default
    return f"CASE{''.join(branches)} ELSE {_as(default, case.type)} END"


# -- arithmetic -----------------------------------------------------------------------------------------------------------


def _arithmetic(call: Call) -> str:
    left, right = call.arguments
    type_, sign = call.type, call.name
    if left.type in (pa.date32(), _MOMENT):
        return _moved(left, sign, right, type_)
    if type_ in _INTEGERS or type_ in _REALS:
        return f"({_as(left, type_)} {sign} {_as(right, type_)})"
    if not pa.types.is_decimal(type_) or type_.precision > _MOST_DIGITS:
        raise NotNativeError(f"{sign} of type {type_}")
    if sign == "*":
        return _product(left, right, type_)
    return f"CAST({_as(left, type_)} {sign} {_as(right, type_)} AS {spark_type(type_)})"


def _product(left: Expression, right: Expression, type_: pa.DataType) -> str:
    sizes = [to.as_decimal(side.type) for side in (left, right)]
    if sum(precision for precision, _ in sizes) > _MOST_DIGITS:
        raise NotNativeError("* of long DECIMALs")
    factors = [_as(side, pa.decimal128(*size)) for side, size in zip((left, right), sizes, strict=True)]
    return f"CAST({factors[0]} * {factors[1]} AS {spark_type(type_)})"


def _divisor(expression: Expression, type_: pa.DataType) -> str:
    """NULL where it is 0."""
    text = _as(expression, type_)
    if isinstance(expression, Literal) and constant(expression).never_zero:
        return text
    return f"nullif({text}, {literal(0 if type_ in _INTEGERS else 0.0, type_)})"


def _quotient(call: Call) -> str:
    left, right = call.arguments
    if call.type != pa.float64():
        raise NotNativeError("/")
    return f"({_as(left, call.type)} / {_divisor(right, call.type)})"


def _whole_quotient(call: Call) -> str:
    left, right = call.arguments
    if left.type not in _INTEGERS or right.type not in _INTEGERS:
        raise NotNativeError("div")
    return f"({_as(left, pa.int64())} div {_divisor(right, pa.int64())})"


def _remainder(call: Call) -> str:
    left, right = call.arguments
    if call.type not in (*_INTEGERS, *_REALS):
        raise NotNativeError("%")
    return f"({_as(left, call.type)} % {_divisor(right, call.type)})"


def _opposite(call: Call) -> str:
    if call.type not in (*_INTEGERS, *_REALS) and not pa.types.is_decimal(call.type):
        raise NotNativeError("-")
    return f"(- {_as(call.arguments[0], call.type)})"


def _bits(call: Call) -> str:
    left, right = call.arguments
    if call.type not in _INTEGERS:
        raise NotNativeError(call.name)
    return f"({_as(left, call.type)} {call.name} {_as(right, call.type)})"


def _complement(call: Call) -> str:
    (value,) = call.arguments
    if value.type not in _INTEGERS or isinstance(value, Literal):
        raise NotNativeError("~")
    return f"(~ {_text(value)})"


def _joined_text(call: Call) -> str:
    if call.type != pa.string():
        raise NotNativeError("||")
    return f"concat({', '.join(_as(a, pa.string()) for a in call.arguments)})"


def _moved(moment: Expression, sign: str, by: Expression, type_: pa.DataType) -> str:
    """A time and a length of time, or a date and days."""
    if by.type == INTERVAL and isinstance(by, Literal):
        months, days, nanoseconds = to.interval(by)
        text = _as(moment, _MOMENT)
        if months:
            text = f"({text} {sign} INTERVAL '{months}' MONTH)"
        if microseconds := days * 86_400_000_000 + nanoseconds // 1000:
            text = f"timestamp_micros(unix_micros({text}) {sign} {literal(microseconds, pa.int64())})"
        return text if type_ == _MOMENT else f"CAST({text} AS {spark_type(type_)})"
    if moment.type != pa.date32() or by.type not in _INTEGERS or sign == "*":
        raise NotNativeError(f"{moment.type} {sign} {by.type}")
    return f"date_from_unix_date(unix_date({_text(moment)}) {sign} {_as(by, pa.int32())})"


# -- calls ----------------------------------------------------------------------------------------------------------------


def _field(struct: Expression, name: str) -> str:
    names = [f.name for f in struct.type]
    if name not in names or len({n.casefold() for n in names}) < len(names):
        raise NotNativeError("a field")
    return f"{_text(struct)}.{quoted(name)}"


def _null_if(call: Call) -> str:
    value, other = call.arguments
    return f"CASE WHEN {_compared('=', value, other)} THEN NULL ELSE {_as(value, call.type)} END"


def _round(call: Call) -> str:
    """Of a DECIMAL, to as many digits as a constant says, halves away from 0; an integer is round already."""
    value, *more = call.arguments
    digits = more[0].value if more and isinstance(more[0], Literal) else 0 if not more else None
    if not isinstance(digits, int) or digits < 0:
        raise NotNativeError("round")
    if value.type in _INTEGERS and call.type == value.type:
        return _text(value)
    if not pa.types.is_decimal(value.type) or not pa.types.is_decimal(call.type):
        raise NotNativeError("round")
    return f"CAST(round({_text(value)}, {digits}) AS {spark_type(call.type)})"


def _call(call: Call) -> str:
    text = FUNCTIONS[call.name].spark_text(call.arguments)
    if not text:
        raise NotNativeError(call.name)
    texts = _arguments(call)
    listed = {"args": ", ".join(texts), "rest": ", ".join(texts[1:])}
    return text.format(*texts, **listed)


def _arguments(call: Call) -> Sequence[str]:
    """Those that go together in the type of the result; places and numbers of letters as INTs."""
    alike = FUNCTIONS[call.name].alike
    if alike is None:
        return [_text(a) for a in call.arguments]
    type_ = call.type.value_type if call.name == "array" else call.type
    first = [_text(a) for a in call.arguments[:alike]]
    return [*first, *(_as(a, type_) for a in call.arguments[alike:])]


_OPERATORS: dict[str, Callable[[Call], str]] = {
    **dict.fromkeys(("and", "or"), _connective),
    **dict.fromkeys(("guarded and", "guarded or"), _guarded),
    "not": _negation,
    **dict.fromkeys(("is null", "is true", "is false"), _test),
    **dict.fromkeys(("=", "<>", ">", ">=", "<", "<=", "<=>", "is distinct from"), _comparison),
    "between": _between,
    "in": _membership,
    "like": _like,
    **dict.fromkeys(("+", "-", "*"), _arithmetic),
    "/": _quotient,
    "div": _whole_quotient,
    "%": _remainder,
    "negative": _opposite,
    **dict.fromkeys(("&", "|", "^"), _bits),
    "~": _complement,
    "||": _joined_text,
    "nullif": _null_if,
    "round": _round,
}
