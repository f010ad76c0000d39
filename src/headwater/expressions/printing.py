"""Trees as text: which operators bind stronger, and so where parentheses are needed; engines differ in the rest."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.expressions.nodes import Call, Case, Cast, Column, Expression, Field, Literal, UserCall
from headwater.model.types import quote, string_literal

OR, AND, NOT, TEST, JOINED, SUM, PRODUCT, SIGN, ATOM = range(1, 10)
"""How strongly text holds together: a part that holds less than its place asks for is put in parentheses."""

_SIGNS = {"=": "=", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "IS NOT DISTINCT FROM"}
_SIGNS |= {"is distinct from": "IS DISTINCT FROM", "like": "LIKE", "ilike": "ILIKE"}
INFIX: dict[str, tuple[str, int, int, int]] = {
    **{name: (sign, TEST, JOINED, JOINED) for name, sign in _SIGNS.items()},
    "||": ("||", JOINED, JOINED, SUM),
    "+": ("+", SUM, SUM, PRODUCT),
    "-": ("-", SUM, SUM, PRODUCT),
    **{name: (name.upper(), PRODUCT, PRODUCT, SIGN) for name in ("*", "/", "%", "div")},
    **{name: (name, JOINED, SUM, SUM) for name in ("&", "|", "^")},
}
"""By name: the sign between two operands, how strongly the whole holds, and what it asks of its left and right side."""

_TESTS = {"is null": "IS NULL", "is true": "IS TRUE", "is false": "IS FALSE"}


def quoted(name: str) -> str:
    """The name of a column, in double quotes."""
    return quote(name, '"')


class Printer:
    """Walks a tree. What is left to subclasses: names of types, and calls of functions."""

    name_quote = '"'

    def text(self, expression: Expression, least: int = 0) -> str:
        """The expression, in parentheses if it holds together less than asked for."""
        text, strength = self.written(expression)
        return f"({text})" if strength < least else text

    def texts(self, expressions: Sequence[Expression], least: int = 0) -> list[str]:
        return [self.text(e, least) for e in expressions]

    def written(self, expression: Expression) -> tuple[str, int]:
        """The text, and how strongly it holds together."""
        match expression:
            case Column():
                return quote(expression.name, self.name_quote), ATOM
            case Literal():
                return self.literal(expression)
            case Cast():
                return self.cast(expression), ATOM
            case Case():
                return self._case(expression), ATOM
            case Field():
                return self.field(expression), ATOM
            case UserCall():
                listed = ", ".join(self.texts(expression.arguments))
                return f"{self.user_function(expression)}({listed})", ATOM
            case Call():
                return self._operator(expression) or self.call(expression)
        raise TypeError(type(expression).__name__)

    def literal(self, expression: Literal) -> tuple[str, int]:
        text = expression.text
        if text is None:
            return "NULL", ATOM
        if pa.types.is_string(expression.type):
            return string_literal(text), ATOM
        return text, SIGN if text.startswith("-") else ATOM

    def _case(self, expression: Case) -> str:
        subject = "" if expression.subject is None else f" {self.text(expression.subject)}"
        pairs = ((self.text(condition), self.text(result)) for condition, result in expression.branches)
        branches = "".join(f" WHEN {condition} THEN {result}" for condition, result in pairs)
        default = "" if expression.default is None else f" ELSE {self.text(expression.default)}"
        return f"CASE{subject}{branches}{default} END"

    def _operator(self, call: Call) -> tuple[str, int] | None:
        name, arguments = call.name, call.arguments
        if name in ("and", "or"):
            strength = AND if name == "and" else OR
            return f" {name.upper()} ".join(self.texts(arguments, strength + 1)), strength
        if name == "not":
            return f"NOT {self.text(arguments[0], NOT)}", NOT
        if name in _TESTS:
            return f"{self.text(arguments[0], JOINED)} {_TESTS[name]}", TEST
        if name == "between":
            value, low, high = self.texts(arguments, JOINED)
            return f"{value} BETWEEN {low} AND {high}", TEST
        if name == "in":
            value, *options = self.texts(arguments, JOINED)
            return f"{value} IN ({', '.join(options)})", TEST
        if name == "negative":
            return f"-{self.text(arguments[0], ATOM)}", SIGN
        if name in INFIX and len(arguments) == 2:
            sign, strength, left, right = INFIX[name]
            return f"{self.text(arguments[0], left)} {sign} {self.text(arguments[1], right)}", strength
        return None

    # -- what engines and people write differently --------------------------------------------------------------------

    def cast(self, expression: Cast) -> str:
        raise NotImplementedError

    def field(self, expression: Field) -> str:
        raise NotImplementedError

    def user_function(self, expression: UserCall) -> str:
        raise NotImplementedError

    def call(self, call: Call) -> tuple[str, int]:
        raise NotImplementedError
