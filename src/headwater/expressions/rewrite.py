"""Trees taken apart and put together again: conditions that AND connects, the same over other columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import pyarrow as pa

from headwater.expressions.casts import can_fail as cast_can_fail
from headwater.expressions.functions.table import FUNCTIONS
from headwater.expressions.nodes import Call, Cast, Column, Expression, Literal, UserCall
from headwater.model.schema import Field


def column(field: Field) -> Column:
    """The plain column as an expression."""
    return Column(field.name, field.type)


def plain_column(expression: Expression) -> str | None:
    """The name of the column, if the expression is nothing but a column."""
    return expression.name if isinstance(expression, Column) else None


def is_constant(expression: Expression) -> bool:
    return not expression.columns


def rewritten(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with every part, from the root down, in the place of which ``change`` has another one."""
    changed = change(expression)
    if changed is not None:
        return changed
    before = expression.arguments
    after = tuple(rewritten(argument, change) for argument in before)
    return expression if all(a is b for a, b in zip(before, after, strict=True)) else expression.with_arguments(after)


def over(expression: Expression, replacements: Mapping[str, Expression]) -> Expression:
    """The expression with other expressions in the places of its columns; columns without one stay.

    >>> x = Column("x", pa.int64())
    >>> over(Call("*", (x, x), pa.int64()), {"x": Column("a", pa.int64())}).columns
    ('a',)
    """
    if isinstance(expression, Column):
        return replacements.get(expression.name, expression)
    return rewritten(expression, lambda e: _fixed(replacements.get(e.name)) if isinstance(e, Column) else None)


def _fixed(expression: Expression | None) -> Expression | None:
    """A constant that stands for a column has the column's type: as it is written it would take one that fits."""
    if isinstance(expression, Literal) and not pa.types.is_string(expression.type):
        return Cast(expression, expression.type)
    return expression


def renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression over columns of other names."""

    def change(part: Expression) -> Expression | None:
        return Column(names[part.name], part.type) if isinstance(part, Column) and part.name in names else None

    return rewritten(expression, change)


def typed_as(expression: Expression, type_: pa.DataType) -> Expression:
    """The expression as one of the type."""
    return expression if expression.type == type_ else Cast(expression, type_)


# -- conditions -------------------------------------------------------------------------------------------------------


def conjuncts(predicate: Expression) -> list[Expression]:
    """The conditions that AND connects."""
    if isinstance(predicate, Call) and predicate.name == "and":
        return [c for part in predicate.arguments for c in conjuncts(part)]
    return [predicate]


def conjunction(predicates: Iterable[Expression]) -> Expression:
    """All of the conditions (at least one), each once."""
    listed = list(dict.fromkeys(c for p in predicates for c in conjuncts(p)))
    return listed[0] if len(listed) == 1 else Call("and", tuple(listed), pa.bool_())


def is_call(expression: Expression, *names: str) -> bool:
    """Is it a call of one of these functions?"""
    return isinstance(expression, Call) and expression.name in names


@lru_cache(maxsize=4096)
def can_fail(expression: Expression) -> bool:
    """May a value stop the query: text that is read, a number that is cut, a function of a user?

    Such a condition must not meet rows that another one or a join would have dropped, so it stays behind them. Overflow of
    arithmetic is not counted: it would keep most conditions where they are.
    """
    return any(map(_fails, expression.walk()))


def _fails(part: Expression) -> bool:
    match part:
        case UserCall():
            return True
        case Call():
            return part.name in FUNCTIONS and FUNCTIONS[part.name].fails
        case Cast():
            constant = isinstance(part.argument, Literal)
            return not part.attempt and not constant and cast_can_fail(part.argument.type, part.type)
    return False


def equal_columns(predicate: Expression) -> tuple[str, str] | None:
    """The two columns of ``"a" = "b"``; None if the condition is another one."""
    match predicate:
        case Call("=", (Column(left), Column(right))):
            return left, right
    return None


_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared_with_number(predicate: Expression) -> tuple[str, str, int] | None:
    """Column, comparison and number of ``"n" <= 3`` or ``3 >= "n"``; None if the condition is another one."""
    match predicate:
        case Call(sign, (Column(name), Literal() as number)) if sign in _MIRRORED:
            pass
        case Call(sign, (Literal() as number, Column(name))) if sign in _MIRRORED:
            sign = _MIRRORED[sign]
        case _:
            return None
    return (name, sign, number.value) if isinstance(number.value, int) and number.value is not True else None
