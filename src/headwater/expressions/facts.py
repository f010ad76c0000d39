"""What follows for the columns of rows where a predicate is true: which are not NULL, equal, or always the same."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa
from attrs import frozen

from headwater.expressions.nodes import FALSE, TRUE, Call, Cast, Column, Expression, Literal
from headwater.expressions.rewrite import conjuncts, equal_columns

_STRICT = frozenset({"=", "<>", "<", "<=", ">", ">=", "like", "ilike", "not", "+", "-", "*", "/", "%", "||"})
_STRICT |= {"negative", "rlike"}
"""NULL where an argument is."""


@frozen
class Facts:
    """Of the rows where a predicate is true; a comparison with NULL is not true."""

    known: frozenset[str] = frozenset()
    """Columns that are not NULL."""
    equal: tuple[tuple[str, str], ...] = ()
    """Pairs of columns that are equal."""
    constants: tuple[tuple[str, Literal], ...] = ()
    """Columns that equal a constant."""


@lru_cache(maxsize=4096)
def facts(predicate: Expression) -> Facts:
    """What the conditions that AND connects say of single columns; anything unusual says nothing."""
    known: set[str] = set()
    equal: list[tuple[str, str]] = []
    constants: list[tuple[str, Literal]] = []
    for condition in conjuncts(predicate):
        known |= _not_null(condition)
        match condition:
            case Column(name):
                constants.append((name, TRUE))
            case Call("not", (Column(name),)):
                constants.append((name, FALSE))
            case Call("=", (Column(name), Literal() as constant) | (Literal() as constant, Column(name))):
                constants.append((name, constant))
        if (pair := equal_columns(condition)) is not None:
            equal.append(pair)
    return Facts(frozenset(known), tuple(equal), tuple(constants))


def _not_null(condition: Expression) -> frozenset[str]:
    """The columns that cannot be NULL where the condition is true."""
    match condition:
        case Call("not", (Call("is null", (value,)),)):
            return _carriers(value)
        case Call("in", (value, *_)):
            return _carriers(value)
        case Call("is true" | "is false", (value,)):
            return _carriers(value)
        case Call("between", parts):  # true; where it is false a bound may be NULL
            return frozenset().union(*map(_carriers, parts))
        case Call("and" | "guarded and", parts):
            return frozenset().union(*map(_not_null, parts))
        case Call("or" | "guarded or", parts):
            return frozenset.intersection(*map(_not_null, parts))
    return _carriers(condition)


def _carriers(expression: Expression) -> frozenset[str]:
    """The columns whose NULL makes the expression NULL."""
    match expression:
        case Column(name):
            return frozenset({name})
        case Cast(argument, _, attempt) if not attempt:
            return _carriers(argument)
        case Call(name, arguments) if name in _STRICT:
            return frozenset().union(*map(_carriers, arguments))
    return frozenset()


def fixed_columns(found: Facts, types: Mapping[str, pa.DataType]) -> dict[str, Literal]:
    """The columns that hold one value only, and the value.

    A comparison may convert the column: many strings equal the number 1, and two large BIGINTs one DOUBLE. So the
    constant must be of the column's own kind.
    """
    return {name: constant for name, constant in found.constants if _same_kind(constant, types.get(name))}


def _same_kind(constant: Literal, type_: pa.DataType | None) -> bool:
    if type_ is None or constant.text is None:
        return False
    tests = pa.types.is_string, pa.types.is_boolean
    if any(test(constant.type) for test in tests):
        return any(test(constant.type) and test(type_) for test in tests)
    return pa.types.is_floating(type_) or (pa.types.is_integer(type_) and pa.types.is_integer(constant.type))


def equal_pairs(found: Facts, types: Mapping[str, pa.DataType]) -> list[tuple[str, str]]:
    """The pairs of columns of one type that are equal."""
    return [(a, b) for a, b in found.equal if a != b and a in types and types[a] == types.get(b)]


def is_never_null(expression: Expression) -> bool:
    """Is the value of an expression known not to be NULL, whatever its columns are?"""
    match expression:
        case Literal(text):
            return text is not None
        case Cast(argument, _, attempt):
            return not attempt and isinstance(argument, Literal) and argument.text is not None
        case Call("is null" | "is true" | "is false" | "<=>" | "is distinct from"):
            return True
        case Call("not", (argument,)):
            return is_never_null(argument)
        case Call("coalesce", arguments):
            return any(map(is_never_null, arguments))
    return False
