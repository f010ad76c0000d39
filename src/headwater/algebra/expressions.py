"""The text of expressions, taken apart and put together again.

A scalar is DuckDB SQL text with its columns in double quotes. What laws need of it (which columns it reads, the same over
other columns, the conditions that AND connects) follows from its tokens alone: the text in between stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import pyarrow as pa
from attrs import evolve

from headwater.algebra.scalar import Scalar
from headwater.model.expression_text import CLOSING, OPENING, Token, closing, split_at_and, tokens, without_parentheses
from headwater.model.schema import Field


@lru_cache(maxsize=4096)
def _column_tokens(sql: str) -> tuple[Token, ...]:
    """The tokens that may be columns: not functions, nor fields (``.f``, ``f :=``, the names inside a STRUCT type)."""
    listed = tokens(sql)
    result = []
    inside_type = 0
    for i, token in enumerate(listed):
        before = listed[i - 1].text if i else ""
        after = listed[i + 1].text if i + 1 < len(listed) else ""
        if inside_type:
            inside_type += (token.text == "(") - (token.text == ")")
        elif token.text == "(" and i and listed[i - 1].is_word("STRUCT"):
            inside_type = 1
        elif token.kind == "name" and after not in ("(", ":=") and before != ".":
            result.append(token)
    return tuple(result)


def column_names(sql: str) -> tuple[str, ...]:
    """The names that the text uses as columns, each once, in order of appearance."""
    return tuple(dict.fromkeys(t.name for t in _column_tokens(sql)))


def quoted(name: str) -> str:
    """The name as a column in the text of an expression."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def column(field: Field) -> Scalar:
    """The plain column as an expression."""
    return Scalar(quoted(field.name), field.type, (field.name,))


def plain_column(scalar: Scalar) -> str | None:
    """The name of the column, if the expression is nothing but a column."""
    listed = tokens(scalar.sql)
    if len(listed) == 1 and listed[0].kind == "name" and listed[0].name in scalar.columns:
        return listed[0].name
    return None


def is_constant(scalar: Scalar) -> bool:
    return not scalar.columns


def over(scalar: Scalar, replacements: Mapping[str, Scalar]) -> Scalar:
    """The expression with other expressions in the places of its columns; columns without one stay.

    >>> doubled = Scalar('"x" * 2', pa.int64(), ("x",))
    >>> over(doubled, {"x": Scalar('"a" + "b"', pa.int64(), ("a", "b"))}).sql
    '("a" + "b") * 2'
    """
    read = [t for t in _column_tokens(scalar.sql) if t.name in scalar.columns]
    pieces, at = [], 0
    for token in read:
        pieces.append(scalar.sql[at : token.start])
        replacement = replacements.get(token.name)
        pieces.append(token.text if replacement is None else operand(replacement.sql))
        at = token.end
    pieces.append(scalar.sql[at:])
    sources = [replacements.get(name, Scalar("", scalar.type, (name,))) for name in scalar.columns]
    columns = dict.fromkeys(c for s in sources for c in s.columns)
    functions = dict.fromkeys([*scalar.functions, *(f for s in sources for f in s.functions)])
    sql = without_parentheses("".join(pieces))
    return evolve(scalar, sql=sql, columns=tuple(columns), functions=tuple(functions))


def renamed(scalar: Scalar, names: Mapping[str, str]) -> Scalar:
    """The expression over columns of other names."""
    return over(scalar, {old: Scalar(quoted(new), scalar.type, (new,)) for old, new in names.items()})


def operand(sql: str) -> str:
    """The text in parentheses unless it is a column, a constant or a call."""
    return sql if _is_atom(sql) else f"({sql})"


@lru_cache(maxsize=4096)
def _is_atom(sql: str) -> bool:
    listed = tokens(sql)
    if len(listed) == 1:
        return True
    first = 1 if listed[0].kind in ("word", "name") and not listed[0].is_word("NOT") else 0
    return closing(listed, first) == len(listed) - 1


# -- conditions -------------------------------------------------------------------------------------------------------


def conjuncts(predicate: Scalar) -> list[Scalar]:
    """The conditions that AND connects, outermost parentheses taken off.

    >>> [c.sql for c in conjuncts(Scalar('("x" BETWEEN 1 AND 2) AND ("y" = 1 OR "x" = 2)', pa.bool_(), ("x", "y")))]
    ['"x" BETWEEN 1 AND 2', '"y" = 1 OR "x" = 2']
    """
    sql = without_parentheses(predicate.sql)
    parts = split_at_and(sql)
    if len(parts) == 1:
        return [evolve(predicate, sql=sql)]
    return [c for part in parts for c in conjuncts(_part(predicate, part))]


_READING = ("REGEXP_REPLACE", "REPLACE", "TRIM", "CASE", "TRUNC")
"""How the operand of a CAST begins that reads text or cuts a number off (``language/casts``)."""
_FAILING = ("DECODE", "FROM_BASE64", "UNHEX", "ERROR")


@lru_cache(maxsize=4096)
def can_fail(scalar: Scalar) -> bool:
    """May a value stop the query: text that is read, a number that is cut, a function of the user's?

    Such a condition must not meet rows that another one or a join would have dropped, so it stays behind them. Overflow of
    arithmetic is not counted: it would keep most conditions where they are.
    """
    if scalar.functions:
        return True
    listed = tokens(scalar.sql)
    casts = any(a.is_word("CAST") and b.is_word(*_READING) for a, b in zip(listed, listed[2:], strict=False))
    return casts or any(t.is_word(*_FAILING) for t in listed)


def conjunction(predicates: Iterable[Scalar]) -> Scalar:
    """All of the conditions (at least one), each once."""
    listed = list(dict.fromkeys(predicates))
    if len(listed) == 1:
        return listed[0]
    sql = " AND ".join(f"({p.sql})" if _is_loose(p.sql) else p.sql for p in listed)
    columns = dict.fromkeys(c for p in listed for c in p.columns)
    functions = dict.fromkeys(f for p in listed for f in p.functions)
    return Scalar(sql, pa.bool_(), tuple(columns), tuple(functions))


def _part(whole: Scalar, sql: str) -> Scalar:
    """A piece of an expression reads only some of its columns and calls only some of its functions."""
    names = column_names(sql)
    called = {t.name for t in tokens(sql) if t.kind == "name"}
    columns = tuple(c for c in names if c in whole.columns)
    return evolve(
        whole,
        sql=sql,
        type=pa.bool_(),
        columns=columns,
        functions=tuple(f for f in whole.functions if f.name in called),
    )


@lru_cache(maxsize=4096)
def _is_loose(sql: str) -> bool:
    """Does an OR stand outside of parentheses, so that AND would bind stronger?"""
    depth = 0
    for token in tokens(sql):
        if (token.kind == "sign" and token.text in OPENING) or token.is_word("CASE"):
            depth += 1
        elif (token.kind == "sign" and token.text in CLOSING) or token.is_word("END"):
            depth -= 1
        elif depth == 0 and token.is_word("OR"):
            return True
    return False


_EQUALS = ("=", "==")


def equal_columns(predicate: Scalar) -> tuple[str, str] | None:
    """The two columns of ``"a" = "b"``; None if the condition is another one."""
    listed = tokens(without_parentheses(predicate.sql))
    if len(listed) == 3 and listed[1].text in _EQUALS and listed[0].kind == listed[2].kind == "name":
        return listed[0].name, listed[2].name
    return None


def compared_with_number(predicate: Scalar) -> tuple[str, str, int] | None:
    """Column, comparison and number of ``"n" <= 3`` or ``3 >= "n"``; None if the condition is another one."""
    listed = tokens(without_parentheses(predicate.sql))
    if len(listed) != 3 or listed[1].text not in _MIRRORED:
        return None
    left, sign, right = listed
    if left.kind == "number" and right.kind == "name":
        return _with_number(right, _MIRRORED[sign.text], left)
    return _with_number(left, sign.text, right)


_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _with_number(name: Token, sign: str, number: Token) -> tuple[str, str, int] | None:
    if name.kind != "name" or number.kind != "number" or not number.text.isdecimal():
        return None
    return name.name, sign, int(number.text)
