"""The text of a predicate as a small tree of conditions: what estimates need to know of it, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from headwater.algebra.expressions import Token, tokens


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


_ALWAYS, _NEVER, _NEITHER = Condition("always"), Condition("never"), Condition("neither")
_COMPARISONS = {"=": "equal", "==": "equal", "<>": "differs", "!=": "differs"}
_COMPARISONS |= dict.fromkeys(("<", "<=", ">", ">="), "range")
_PATTERNS = ("LIKE", "ILIKE", "GLOB", "SIMILAR")
_SEARCHES = ("CONTAINS", "STARTS_WITH", "ENDS_WITH", "PREFIX", "SUFFIX", "REGEXP_MATCHES")


@lru_cache(maxsize=4096)
def read(sql: str) -> Condition:
    """The conditions of a predicate's text."""
    return _read(tokens(sql))


def _read(listed: Sequence[Token]) -> Condition:
    while len(listed) > 2 and listed[0].text == "(" and _close(listed, 0) == len(listed) - 1:
        listed = listed[1:-1]
    for word, kind in (("OR", "or"), ("AND", "and")):
        pieces = _pieces(listed, word)
        if len(pieces) > 1:
            return Condition(kind, parts=tuple(map(_read, pieces)))
    if listed and listed[0].is_word("NOT"):
        return Condition("not", parts=(_read(listed[1:]),))
    return _comparison(listed)


def _close(listed: Sequence[Token], opening: int) -> int:
    """Where the parenthesis that opens there closes (or the end)."""
    depth = 0
    for i in range(opening, len(listed)):
        depth += _step(listed[i])
        if depth == 0:
            return i
    return len(listed) - 1


def _step(token: Token) -> int:
    """+1 where something opens, -1 where it closes: parentheses of all kinds and CASE … END."""
    if token.kind == "sign":
        return (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
    return token.is_word("CASE") - token.is_word("END")


def _outside(listed: Sequence[Token]) -> list[int]:
    """The places of the tokens that stand in no parentheses and in no CASE."""
    depth, places = 0, []
    for i, token in enumerate(listed):
        step = _step(token)
        if depth == 0 and step == 0:
            places.append(i)
        depth += step
    return places


def _pieces(listed: Sequence[Token], word: str) -> list[Sequence[Token]]:
    """Cut at a word outside of parentheses; the AND of a BETWEEN is not one."""
    pieces, start, between = [], 0, 0
    for i in _outside(listed):
        if listed[i].is_word("BETWEEN"):
            between += 1
        elif listed[i].is_word("AND") and between:
            between -= 1
        elif listed[i].is_word(word):
            pieces.append(listed[start:i])
            start = i + 1
    return [*pieces, listed[start:]]


def _comparison(listed: Sequence[Token]) -> Condition:
    """One condition without AND, OR and NOT around it."""
    if len(listed) == 1:
        return _single(listed[0])
    for i in _outside(listed):
        token = listed[i]
        if token.kind == "sign" and token.text in _COMPARISONS:
            return _compared(_COMPARISONS[token.text], listed[:i], listed[i + 1 :])
        if token.is_word("IS"):
            return _is(listed[:i], listed[i + 1 :])
        if token.is_word("IN", "BETWEEN", *_PATTERNS):
            negated = i > 0 and listed[i - 1].is_word("NOT")
            found = _searched(token.text.upper(), listed[: i - negated], listed[i + 1 :])
            return Condition("not", parts=(found,)) if negated else found
    if listed and listed[0].is_word(*_SEARCHES):
        return Condition("like", _columns(listed))
    return Condition("unknown", _columns(listed))


def _single(token: Token) -> Condition:
    if token.kind == "name":
        return Condition("truth", (token.name,))
    if token.is_word("TRUE", "FALSE"):
        return _ALWAYS if token.is_word("TRUE") else _NEVER
    return _NEITHER if token.is_word("NULL") else Condition("unknown")


def _columns(listed: Sequence[Token]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t.name for t in listed if t.kind == "name"))


def _is_plain(listed: Sequence[Token]) -> bool:
    """A column, perhaps cast, or a constant."""
    while len(listed) > 2 and listed[0].text == "(" and _close(listed, 0) == len(listed) - 1:
        listed = listed[1:-1]
    if len(listed) > 3 and listed[0].is_word("CAST", "TRY_CAST") and listed[3].is_word("AS"):
        return True
    return len(listed) == 1 or not _columns(listed)


def _compared(kind: str, left: Sequence[Token], right: Sequence[Token]) -> Condition:
    if kind == "differs":
        return Condition("not", parts=(_compared("equal", left, right),))
    columns = tuple(dict.fromkeys((*_columns(left), *_columns(right))))
    if kind == "equal":
        for a, b in pairwise((*left, *right)):
            if a.text == "%" and b.text.isdecimal() and int(b.text):
                return Condition("remainder", columns, options=int(b.text))
    return Condition(kind, columns, plain=_is_plain(left) and _is_plain(right))


def _is(left: Sequence[Token], right: Sequence[Token]) -> Condition:
    """IS [NOT] NULL, IS [NOT] TRUE, IS [NOT] DISTINCT FROM."""
    negated = bool(right) and right[0].is_word("NOT")
    rest = right[negated:]
    if rest and rest[0].is_word("DISTINCT"):
        found = Condition("same", tuple(dict.fromkeys((*_columns(left), *_columns(rest[2:])))), plain=False)
        return found if negated else Condition("not", parts=(found,))
    if rest and rest[0].is_word("NULL"):
        found = Condition("null", _columns(left), plain=_is_plain(left))
    else:
        found = _read(left)
        found = Condition("not", parts=(found,)) if rest and rest[0].is_word("FALSE") else found
    return Condition("not", parts=(found,)) if negated else found


def _searched(word: str, left: Sequence[Token], right: Sequence[Token]) -> Condition:
    columns, plain = _columns(left), _is_plain(left)
    if word == "BETWEEN":
        side = Condition("range", columns, plain=plain)
        return Condition("and", parts=(side, side))
    if word == "IN":
        inside = right[1:-1]
        commas = sum(inside[i].text == "," for i in _outside(inside))
        return Condition("in", columns, options=commas + 1, plain=plain)
    return Condition("like", columns, plain=plain)
