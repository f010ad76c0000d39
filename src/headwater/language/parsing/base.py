"""Sqlglot's Spark parser as ours begin from it.

A function call is parsed as a plain name with arguments: what it means, and whether it exists at all, is said by
``functions`` alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType

from headwater.errors import HeadwaterError, SqlError
from headwater.expressions.aggregates import BY_SQL_NAME
from headwater.language.parsing.json_parsing import json_call
from headwater.language.parsing.syntax import Duration
from headwater.language.text import error_at, quoted_name_hint

_NUMBER_AND_UNIT = re.compile(r"\s*([-+]?[\d.]+)\s+([A-Za-z]+)\s*")
_AFTER_A_LENGTH = frozenset({"SLIDE", "INTERNAL"})
_SEPARATED = tuple(name.upper() for name, aggregate in BY_SQL_NAME.items() if aggregate.form == "list")
BROKEN_PARSER_HINT = "Uninstall the compiled parser: pip uninstall sqlglotc"


def check_extensible(module: ModuleType) -> None:
    """Refuse a compiled sqlglot (``sqlglotc``): its classes cannot be extended in Python."""
    if not str(module.__file__).endswith(".py"):
        raise HeadwaterError(
            "BROKEN_PARSER", "the installed sqlglot cannot be extended by a dialect", hint=BROKEN_PARSER_HINT
        )


check_extensible(parser)


def _is_list(arguments: list[exp.Expr]) -> bool:
    """Is it one array, written out?"""
    first = arguments[0] if len(arguments) == 1 else None
    return isinstance(first, exp.Array) or (isinstance(first, exp.Anonymous) and first.name.upper() == "ARRAY")


class BaseParser(Spark.Parser):
    """What all parts of our parser use: errors with their place, names, lengths of time, calls of functions."""

    STRICT_CAST = True
    ADD_JOIN_ON_TRUE = False
    FUNC_TOKENS: ClassVar[set[TokenType]] = {*Spark.Parser.FUNC_TOKENS, TokenType.SESSION}
    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: Spark.Parser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", *_SEPARATED)
    } | {name: partial(json_call, name=name) for name in ("JSON_VALUE", "JSON_QUERY", "JSON_EXISTS")}
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "ANY": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["ANY"],
        "CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"],
    }

    def error(
        self, code: str, message: str, token: Token | None = None, *, detail: str = "", hint: str = ""
    ) -> SqlError:
        """An error of ours at a token (the current one, or the last one at the end of a statement)."""
        token = token or self._curr or self._prev
        return error_at(self.sql, token.start, token.end + 1, code, message, detail=detail, hint=hint)

    def expected(self, what: str) -> SqlError:
        found = f'"{self._curr.text}"' if self._curr else "the end of the statement"
        quoted = self._curr and self._curr.token_type == TokenType.STRING and self.sql[self._curr.start] == '"'
        hint = quoted_name_hint(self._curr.text) if quoted else ""
        return self.error("SYNTAX", f"expected {what}, found {found}", hint=hint)

    # -- expressions ------------------------------------------------------------------------------------------------

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:
        """As in the base, but every call knows the name it was written with, and where."""
        token, called = self._curr, self._next.token_type == TokenType.L_PAREN
        result = super()._parse_function_call(*args, **options)
        inner = result
        while isinstance(inner, (exp.Filter, exp.Window, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
            inner = inner.this
        if isinstance(inner, exp.Func) and called and "name" not in inner.meta:
            inner.meta["name"] = token.text
            inner.update_positions(token)
        if isinstance(result, exp.Anonymous) and result.name.upper() == "SOME" and _is_list(result.expressions):
            return exp.Any(this=exp.Tuple(expressions=result.expressions[0].expressions))  # no aggregate of a condition
        return result

    # -- names and places -------------------------------------------------------------------------------------------

    def _parse_name(self, what: str) -> exp.Identifier:
        name = self._parse_id_var(any_token=False)
        if not isinstance(name, exp.Identifier):
            raise self.expected(what)
        return name.update_positions(self._prev)

    def _at(self, node: exp.Expr, start: Token, end: Token | None = None) -> exp.Expr:
        """Notes where the node stands in the text."""
        node.update_positions(line=start.line, col=start.col, start=start.start, end=(end or start).end)
        return node

    def _parse_duration(self) -> exp.Expr:
        """``10``, ``10 MINUTES``, ``INTERVAL '10' MINUTES``, ``INTERVAL '10 minutes'``; the binder judges the sign."""
        interval = self._match(TokenType.INTERVAL)
        start = self._curr
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._match_set((TokenType.NUMBER, TokenType.STRING) if interval else (TokenType.NUMBER,)):
            raise self.expected("a number")
        number = sign + self._prev.text
        unit = None
        if together := _NUMBER_AND_UNIT.fullmatch(number):  # INTERVAL '10 minutes'
            number, unit = together[1], self._at(exp.var(together[2]), self._prev)
        elif self._curr.text.upper() not in _AFTER_A_LENGTH and self._match_set(self.ID_VAR_TOKENS):
            unit = self._at(exp.var(self._prev.text), self._prev)
        return self._at(Duration(this=number, unit=unit), start, self._prev)
