"""What follows for the columns of rows where a predicate is true: which are not NULL, equal, or always the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
from attrs import frozen

from headwater.algebra.expressions import Token, conjuncts, tokens
from headwater.algebra.scalar import Scalar

_COMPARISONS = frozenset({"=", "==", "<", "<=", ">", ">=", "<>", "!="})
_EQUAL = frozenset({"=", "=="})
_CONSTANTS = ("string", "number")


@frozen
class Facts:
    """Of the rows where a predicate is true; a comparison with NULL is not true."""

    known: frozenset[str] = frozenset()
    """Columns that are not NULL."""
    equal: tuple[tuple[str, str], ...] = ()
    """Pairs of columns that are equal."""
    constants: tuple[tuple[str, Token], ...] = ()
    """Columns that equal a constant."""


@lru_cache(maxsize=4096)
def facts(predicate: Scalar) -> Facts:
    """What the conditions that AND connects say of single columns; anything unusual says nothing."""
    known: set[str] = set()
    equal: list[tuple[str, str]] = []
    constants: list[tuple[str, Token]] = []
    for condition in conjuncts(predicate):
        listed = tokens(condition.sql)
        known |= _not_null(listed)
        if len(listed) == 1 and listed[0].kind == "name":  # a BOOLEAN column
            constants.append((listed[0].name, Token("word", "TRUE", 0, 4)))
        elif len(listed) == 2 and listed[0].is_word("NOT") and listed[1].kind == "name":
            constants.append((listed[1].name, Token("word", "FALSE", 0, 5)))
        elif len(listed) == 3 and listed[1].text in _EQUAL:
            left, _, right = listed
            if left.kind == right.kind == "name":
                equal.append((left.name, right.name))
            elif {left.kind, right.kind} & set(_CONSTANTS) and "name" in (left.kind, right.kind):
                name, constant = (left, right) if left.kind == "name" else (right, left)
                constants.append((name.name, constant))
    return Facts(frozenset(known), tuple(equal), tuple(constants))


def _not_null(listed: Sequence[Token]) -> set[str]:
    """The columns that cannot be NULL where the condition is true."""
    names = {t.name for t in listed if t.kind == "name"}
    if len(listed) == 1 or (len(listed) == 2 and listed[0].is_word("NOT")):
        return names
    if len(listed) == 3 and (listed[1].text in _COMPARISONS or listed[1].is_word("LIKE")):
        return names if all(t.kind in ("name", *_CONSTANTS) for t in (listed[0], listed[2])) else set()
    if listed[0].kind != "name":
        return set()
    rest = listed[1:]
    if [t.text.upper() for t in rest] == ["IS", "NOT", "NULL"]:
        return {listed[0].name}
    if len(rest) == 4 and rest[0].is_word("BETWEEN") and rest[2].is_word("AND"):
        return {listed[0].name} if rest[1].kind in _CONSTANTS and rest[3].kind in _CONSTANTS else set()
    inside = rest[2:-1]
    if rest[0].is_word("IN") and rest[1].text == "(" and rest[-1].text == ")":
        return {listed[0].name} if all(t.kind in _CONSTANTS or t.text == "," for t in inside) else set()
    return set()


def constants(found: Facts, types: Mapping[str, pa.DataType]) -> dict[str, str]:
    """The columns that hold one value only, with its text.

    A comparison may convert the column: many strings equal the number 1, and two large BIGINTs one DOUBLE. So the
    constant must be of the column's own kind.
    """
    return {name: token.text for name, token in found.constants if _same_kind(token, types.get(name))}


def _same_kind(token: Token, type_: pa.DataType | None) -> bool:
    if type_ is None:
        return False
    if token.kind == "string":
        return pa.types.is_string(type_)
    if token.kind == "word":
        return pa.types.is_boolean(type_)
    return pa.types.is_floating(type_) or (pa.types.is_integer(type_) and token.text.isdecimal())


def equal_pairs(found: Facts, types: Mapping[str, pa.DataType]) -> list[tuple[str, str]]:
    """The pairs of columns of one type that are equal."""
    return [(a, b) for a, b in found.equal if a != b and a in types and types[a] == types.get(b)]


# -- expressions ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def is_never_null(sql: str) -> bool:
    """Is the value of an expression known not to be NULL, whatever its columns are?"""
    listed = tokens(sql)
    if not listed:
        return False
    first, last = listed[0], listed[-1]
    if len(listed) == 1:
        return _is_value(first)
    if len(listed) in (3, 4) and first.kind == "name" and listed[1].is_word("IS"):
        return last.is_word("NULL") and (len(listed) == 3 or listed[2].is_word("NOT"))
    if len(listed) > 5 and first.is_word("CAST") and listed[1].text == "(" and listed[3].is_word("AS"):
        return first.text.upper() == "CAST" and _is_value(listed[2]) and _is_one_call(listed)
    if first.is_word("COALESCE") and len(listed) > 4 and _is_one_call(listed):
        return listed[-3].text == "," and _is_value(listed[-2])
    return False


def _is_value(token: Token) -> bool:
    return token.kind in _CONSTANTS or token.is_word("TRUE", "FALSE")


def _is_one_call(listed: Sequence[Token]) -> bool:
    """Does the parenthesis after the first word close at the end?"""
    depth = 0
    for i, token in enumerate(listed[1:], 1):
        if token.kind == "sign":
            depth += (token.text in "([{") - (token.text in ")]}")
        if depth == 0:
            return i == len(listed) - 1
    return False
