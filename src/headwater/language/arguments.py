"""The arguments of functions after SOURCE and TO: found by place or name, checked, converted; errors say what to type."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from attrs import frozen

from headwater.errors import InputError
from headwater.language.catalog import Connector
from headwater.language.text import did_you_mean
from headwater.model.time import MICROSECONDS, unit_of

Convert = Callable[[Any], Any]
_LENGTH = re.compile(r"\s*(?:INTERVAL\s+)?'?\s*([0-9.]+)\s*'?\s*([A-Za-z]+)\s*", re.IGNORECASE)


class WrongArgumentError(ValueError):
    """The text says what the value would have to be."""


@frozen
class Parameter:
    """One argument that a function takes."""

    name: str
    convert: Convert
    required: bool = False
    default: Any = None
    place: int | None = None
    """Where it stands without its name; None: only by name."""


@frozen
class Arguments:
    """What a function was given."""

    whose: str
    """Its place in messages: ``source csv of stream "bid"``."""
    connector: Connector

    @property
    def function(self) -> str:
        return self.connector.name

    def bound(self, parameters: Sequence[Parameter]) -> dict[str, Any]:
        """The values by name, defaults for what is missing."""
        given = self._given(parameters)
        values: dict[str, Any] = {}
        for parameter in parameters:
            if given.get(parameter.name) is None:
                if parameter.required:
                    raise self.error(
                        "MISSING_ARGUMENT", f'argument "{parameter.name}" is missing', _usage(self.function, parameters)
                    )
                values[parameter.name] = parameter.default
                continue
            values[parameter.name] = self._converted(parameter, given[parameter.name])
        return values

    def error(self, code: str, message: str, hint: str = "", *, detail: str = "") -> InputError:
        """A mistake in what it was given."""
        return InputError(code, f"{self.whose}: {message}", detail=detail, hint=hint)

    def _given(self, parameters: Sequence[Parameter]) -> dict[str, Any]:
        placed = sorted((p for p in parameters if p.place is not None), key=lambda p: p.place or 0)
        values = self.connector.arguments
        if len(values) > len(placed):
            most = f"at most {len(placed)}" if placed else "no"
            hint = f"Others are given by name. {_usage(self.function, parameters)}"
            raise self.error(
                "WRONG_ARGUMENT", f"it takes {most} argument{'s' * (len(placed) != 1)} without a name", hint
            )
        given = {p.name: value for p, value in zip(placed, values, strict=False)}
        names = {p.name for p in parameters}
        for option, value in self.connector.options:
            name = option.casefold()
            if name not in names:
                hint = did_you_mean(name, sorted(names), all_of_them="There are")
                raise self.error("UNKNOWN_OPTION", f'there is no option "{option}"', hint)
            if name in given:
                raise self.error("WRONG_ARGUMENT", f'"{name}" is given twice')
            given[name] = value
        return given

    def _converted(self, parameter: Parameter, value: Any) -> Any:
        try:
            return parameter.convert(value)
        except WrongArgumentError as problem:
            message = f'"{parameter.name}" must be {problem}, not {value!r}'
            raise self.error("WRONG_ARGUMENT", message) from None


def _usage(function: str, parameters: Sequence[Parameter]) -> str:
    placed = [p.name for p in parameters if p.place is not None]
    named = [p.name for p in parameters if p.place is None]
    shown = f"{function}({', '.join([*placed, *(f'{n} => …' for n in named[:2])])})"
    return f"It is used so: {shown}."


# -- kinds of values --------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongArgumentError("a string")
    return value


def one_character(value: Any) -> str:
    found = {"\\t": "\t"}.get(value, value) if isinstance(value, str) else value
    if not isinstance(found, str) or len(found.encode()) != 1:
        raise WrongArgumentError("one character")
    return found


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongArgumentError("true or false")
    return value


def between(least: int, most: int) -> Convert:
    def convert(value: Any) -> int:
        number = _number(value)
        if number is None or not least <= number <= most:
            raise WrongArgumentError(f"a whole number from {least} to {most}")
        return number

    return convert


count = between(1, 10**15)
"""Rows or events."""
rate = between(1, 10**9)
"""So many per second."""
port = between(1, 65_535)


def whole(value: Any) -> int:
    number = _number(value)
    if number is None:
        raise WrongArgumentError("a whole number")
    return number


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or value != int(value):
        return None
    return int(value)


def one_of(*choices: str) -> Convert:
    def convert(value: Any) -> str:
        if not isinstance(value, str) or value.casefold() not in choices:
            raise WrongArgumentError(" or ".join(f"'{c}'" for c in choices))
        return value.casefold()

    return convert


def duration(value: Any) -> int:
    """``'2 seconds'`` in microseconds. Zero needs no unit."""
    if value in (0, "0"):
        return 0
    found = _LENGTH.fullmatch(value) if isinstance(value, str) else None
    unit = MICROSECONDS.get(unit_of(found[2], {"S": "SECOND", "H": "HOUR", "D": "DAY"})) if found else None
    try:
        length = Decimal(found[1]) * unit if found and unit else None
    except InvalidOperation:
        length = None
    if length is None or length != int(length):
        raise WrongArgumentError("a length of time such as '2 seconds'")
    return int(length)


def moment(value: Any) -> int:
    """``'2026-01-01 00:00:00'`` in microseconds since the epoch, in UTC unless it says otherwise."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise WrongArgumentError("a time such as '2026-01-01 00:00:00'") from None
    aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def texts(value: Any) -> tuple[str, ...]:
    """Several strings in one, separated by bars."""
    return tuple(part.strip() for part in text(value).split("|"))
