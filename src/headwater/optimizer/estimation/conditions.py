"""A predicate as a small tree of conditions: what estimates need to know of it, and no more."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from headwater.expressions.nodes import Call, Case, Cast, Column, Expression, Literal


class Condition(NamedTuple):
    """A condition as the estimate sees it; ``kind`` decides what the other fields mean."""

    kind: str
    """and, or, not (of ``parts``); equal, same, range, in, remainder, null, like, truth (of ``columns``); always,
    never, neither (NULL), unknown."""
    columns: tuple[str, ...] = ()
    parts: tuple[Condition, ...] = ()
    options: int = 1
    """How many constants an IN has, or what a remainder is taken of."""
    plain: bool = True
    """Is it about the columns themselves, not about something computed from them?"""


_SEARCHES = ("like", "ilike", "rlike", "contains", "startswith", "endswith", "regexp_like")
_CONSTANTS = {"TRUE": Condition("always"), "FALSE": Condition("never"), None: Condition("neither")}


@lru_cache(maxsize=4096)
def read(predicate: Expression) -> Condition:
    """The conditions of a predicate."""
    columns, plain = predicate.columns, all(map(_is_plain, predicate.arguments))
    match predicate:
        case Column():
            return Condition("truth", columns)
        case Literal(text) | Cast(Literal(None as text)):
            return _CONSTANTS.get(text, Condition("unknown"))
        case Call("and" | "or" | "guarded and" | "guarded or" as name, arguments):
            return Condition(name.removeprefix("guarded "), parts=tuple(map(read, arguments)))
        case Call("not", (argument,)):
            return _negated(read(argument))
        case Call("<>", arguments):
            return _negated(read(Call("=", arguments, predicate.type)))
        case Call("is distinct from", arguments):
            return _negated(read(Call("<=>", arguments, predicate.type)))
        case Call("=", (Call("%", (_, Literal() as divisor)), _)) if isinstance(divisor.value, int) and divisor.value:
            return Condition("remainder", columns, options=divisor.value)
        case Call("=" | "<" | "<=" | ">" | ">=" as name):
            return Condition("equal" if name == "=" else "range", columns, plain=plain)
        case Call("<=>"):
            return Condition("same", columns, plain=False)
        case Call("is null"):
            return Condition("null", columns, plain=plain)
        case Call("is true", (argument,)):
            return read(argument)
        case Call("is false", (argument,)):
            return _negated(read(argument))
        case Call("between", (value, *_)):
            side = Condition("range", value.columns, plain=_is_plain(value))
            return Condition("and", parts=(side, side))
        case Call("in", (value, *options)):
            return Condition("in", value.columns, options=len(options), plain=_is_plain(value))
        case Call(name, (value, *_)) if name in _SEARCHES:
            return Condition("like", columns, plain=_is_plain(value))
    return Condition("unknown", columns)


def _negated(condition: Condition) -> Condition:
    return Condition("not", parts=(condition,))


def _is_plain(expression: Expression) -> bool:
    """A column, perhaps cast, or a constant."""
    if isinstance(expression, Cast):
        return _is_plain(expression.argument)
    return isinstance(expression, (Column, Literal)) or (not expression.columns and not isinstance(expression, Case))
