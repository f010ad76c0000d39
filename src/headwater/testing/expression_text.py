"""Expressions as plans show them, read again: our SQL with names in double quotes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from headwater.errors import HeadwaterError
from headwater.expressions.levenshtein import LEVENSHTEIN
from headwater.expressions.nodes import Expression
from headwater.language.expressions import ExpressionBinder
from headwater.language.parsing.dialect import Headwater
from headwater.language.parsing.statements import deep_recursion
from headwater.language.scope import Column, Item, Scope
from headwater.model.functions import UserFunction
from headwater.model.schema import Schema


class _QuotedNames(Headwater):
    class Tokenizer(Headwater.Tokenizer):
        QUOTES: ClassVar = ["'"]
        IDENTIFIERS: ClassVar = ['"', "`"]
        STRING_ESCAPES: ClassVar = ["'"]


_DIALECT = _QuotedNames()


def bind_text(text: str, schema: Schema, functions: Iterable[UserFunction] = ()) -> Expression:
    """The expression over the columns of a schema that ``to_text`` writes so.

    >>> from headwater.expressions.text import to_text
    >>> to_text(bind_text('"x" > 1 AND abs("y") < 2', Schema.of(x="INT", y="INT")))
    '"x" > 1 AND ABS("y") < 2'
    """
    columns = tuple(Column(f.name, f.name, f.type, f.nullable) for f in schema)
    known = {function.name: function for function in (LEVENSHTEIN, *functions)}
    with deep_recursion():
        binder = ExpressionBinder(Scope(text, (Item(columns),)), "an expression", functions=known)
        return binder.bind(_parsed(text)).expression


def _parsed(text: str) -> exp.Expr:
    try:
        (node,) = _DIALECT.parse_into(exp.Condition, text)
    except (ParseError, TokenError) as problem:
        raise HeadwaterError("SYNTAX", f"this is no expression: {text}", detail=str(problem)) from problem
    assert node is not None
    return node
