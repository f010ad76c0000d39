"""Lengths of time as they are written, in instants or in microseconds of the wall clock."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from headwater.errors import SqlError
from headwater.language.text import did_you_mean, error_on
from headwater.model.time import INFINITY, MICROSECONDS, unit_of

_NO_FIXED_LENGTH = ("MONTH", "QUARTER", "YEAR")


def application_time(text: str, node: exp.Expr, what: str) -> int:
    """A length of the stream's own time: with a unit in microseconds, without one in instants. Zero is allowed."""
    number = _number(text, node, what)
    unit = node.args.get("unit")
    return _whole(text, node, number if unit is None else number * microseconds(text, unit), what)


def wall_clock(text: str, node: exp.Expr, what: str) -> int:
    """A length of the engine's own time, in microseconds: it always has a unit."""
    number = _number(text, node, what)
    unit = node.args.get("unit")
    if unit is None:
        raise error_on(
            text,
            node,
            "TIME_BOUND",
            f"{what} is wall-clock time and needs a unit",
            hint=f"For example: {node.this} SECONDS.",
        )
    return _whole(text, node, number * microseconds(text, unit), what)


def shown_duration(length: int, *, unit: bool) -> str:
    """The length as a person writes it: with the largest unit that divides it, if it has one."""
    if length == INFINITY:
        return "UNBOUNDED"
    if not unit:
        return str(length)
    name, size = next((n, s) for n, s in reversed(MICROSECONDS.items()) if length % s == 0 and (length or s == 10**6))
    count = length // size
    return f"{count} {name}{'' if count == 1 else 'S'}"


def microseconds(text: str, unit: exp.Expr, *, code: str = "TIME_BOUND") -> int:
    """How long a unit is."""
    singular = unit_of(unit.name)
    if singular in MICROSECONDS:
        return MICROSECONDS[singular]
    if singular in _NO_FIXED_LENGTH:
        raise error_on(text, unit, code, f"a {singular} has no fixed length", hint="Use DAYS or a shorter unit.")
    names = [f"{name}S" for name in MICROSECONDS]
    hint = did_you_mean(unit.name.upper(), names, all_of_them="There are")
    raise error_on(text, unit, "UNKNOWN_UNIT", f'unknown unit of time "{unit.name}"', hint=hint)


def _number(text: str, node: exp.Expr, what: str) -> Decimal:
    try:
        number = Decimal(node.this)
    except ArithmeticError:
        raise error_on(text, node, "TIME_BOUND", f"{what} must be a number") from None
    if number < 0:
        raise error_on(text, node, "TIME_BOUND", f"{what} cannot be negative, as {node.this} is")
    return number


def _whole(text: str, node: exp.Expr, number: Decimal, what: str) -> int:
    if number != int(number):
        raise _not_whole(text, node, what)
    if number >= INFINITY:
        raise error_on(text, node, "TIME_BOUND", f"{what} is too large")
    return int(number)


def _not_whole(text: str, node: exp.Expr, what: str) -> SqlError:
    smallest = "instants" if node.args.get("unit") is None else "microseconds"
    return error_on(text, node, "TIME_BOUND", f"{what} must be a whole number of {smallest}")
