"""TUMBLE, HOP, CUMULATE and SESSION in FROM, as users of Flink write them, and Spark's ``GROUP BY window(…)``."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from headwater.errors import SqlError
from headwater.language.parsing.base import BaseParser
from headwater.language.parsing.syntax import TableFunction
from headwater.language.text import error_at

PARAMETERS: dict[str, tuple[str, ...]] = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
"""In the order of positional arguments; HOP has the slide first, as in Flink, and CUMULATE the step."""
_OPTIONAL = frozenset({"OFFSET"})
_EXAMPLES = {
    "TUMBLE": "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' MINUTES)",
    "HOP": "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES), the slide before the size",
    "CUMULATE": "CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY), the step before the size",
    "SESSION": "SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '10' MINUTES)",
}


class TableFunctionParser(BaseParser):
    """``TUMBLE(TABLE s, DESCRIPTOR(ts), …)``, with positional or named arguments, in ``TABLE( … )`` or not."""

    def _at_table_function(self) -> bool:
        if self._curr.token_type == TokenType.TABLE and self._next.token_type == TokenType.L_PAREN:
            return True
        return self._curr.text.upper() in PARAMETERS and self._next.token_type == TokenType.L_PAREN

    def _parse_table_function(self) -> exp.Expr:
        wrapped = self._match(TokenType.TABLE)
        if wrapped:
            self._match(TokenType.L_PAREN)
            if not self._at_table_function():
                raise self.expected(f"one of {', '.join(PARAMETERS)} in TABLE(…)")
        start, name = self._curr, self._curr.text.upper()
        self._advance(2)
        arguments = self._parse_function_arguments(name)
        function = self._at(TableFunction(this=exp.var(name), **arguments), start)
        closing = self._match(TokenType.R_PAREN)
        if not closing or (wrapped and not self._match(TokenType.R_PAREN)):
            raise self.expected(f'")" at the end of {"TABLE(…)" if closing else name}')
        missing = [p for p in PARAMETERS[name] if p not in _OPTIONAL and p.lower() not in arguments]
        if missing:
            raise self._misused(function, f"{name} needs {_listed(missing)}", name)
        return function

    def _parse_group(self, *args: Any, **options: Any) -> exp.Group | None:
        """As in the base, but GROUP BY may begin with Spark's ``window(…)``, which is no WINDOW clause."""
        after = self._tokens[self._index + 2 : self._index + 3]
        if self._next.token_type == TokenType.WINDOW and after and after[0].token_type == TokenType.L_PAREN:
            self._next.token_type = TokenType.VAR
        return super()._parse_group(*args, **options)

    def _parse_function_arguments(self, name: str) -> dict[str, exp.Expr]:
        found: dict[str, exp.Expr] = {}
        named, number = False, 0
        while not self._match(TokenType.R_PAREN, advance=False):
            start = self._curr
            if self._next.token_type == TokenType.FARROW:
                named, parameter = True, self._parse_named_argument(name)
            elif named:
                raise self.error("SYNTAX", "after a named argument all others must have names, too")
            elif number == len(PARAMETERS[name]):
                raise self.error("WRONG_ARGUMENTS", f"{name} takes no more arguments", hint=_example(name))
            else:
                parameter = PARAMETERS[name][number]
            if parameter.lower() in found:
                raise self.error("WRONG_ARGUMENTS", f"{parameter} is given more than once", start)
            found[parameter.lower()] = self._parse_argument(parameter, found)
            number += 1
            if not self._match(TokenType.COMMA):
                break
        return found

    def _parse_named_argument(self, name: str) -> str:
        parameter = self._curr.text.upper()
        if parameter not in PARAMETERS[name]:
            hint = f"It has {_listed(PARAMETERS[name])}."
            raise self.error("WRONG_ARGUMENTS", f'{name} has no argument "{self._curr.text}"', hint=hint)
        self._advance(2)
        return parameter

    def _parse_argument(self, parameter: str, found: dict[str, exp.Expr]) -> exp.Expr:
        if parameter == "DATA":
            self._match(TokenType.TABLE)
            data = self._parse_table()
            if self._match(TokenType.PARTITION_BY):
                found["partition"] = self._parse_table_partition()
            assert data is not None
            return data
        if parameter == "TIMECOL":
            return self._parse_descriptor()
        return self._parse_duration()

    def _parse_table_partition(self) -> exp.Expr:
        """One column or several, with or without parentheses; what comes after the next comma may be no column."""
        wrapped = self._match(TokenType.L_PAREN)
        start = self._curr
        columns = [self._parse_partition_column()]
        while self._curr.token_type == TokenType.COMMA and not self._before_argument():
            self._advance()
            columns.append(self._parse_partition_column())
        if wrapped and not self._match(TokenType.R_PAREN):
            raise self.expected('")" after the columns of PARTITION BY')
        return self._at(exp.Tuple(expressions=columns), start, self._prev)

    def _before_argument(self) -> bool:
        """Does the next argument of the function come after this comma?"""
        after = self._tokens[self._index + 2 : self._index + 3]
        return self._next.text.upper() == "DESCRIPTOR" or any(t.token_type == TokenType.FARROW for t in after)

    def _parse_partition_column(self) -> exp.Expr:
        column = self._parse_column()
        if column is None:
            raise self.expected("a column to partition by")
        return column

    def _parse_descriptor(self) -> exp.Expr:
        if not (self._match_text_seq("DESCRIPTOR") and self._match(TokenType.L_PAREN)):
            raise self.expected("DESCRIPTOR(…) with the time column")
        column = self._parse_column()
        if not isinstance(column, exp.Column) or not self._match(TokenType.R_PAREN):
            raise self.expected("one column in DESCRIPTOR(…)")
        return column

    def _misused(self, node: exp.Expr, message: str, name: str) -> SqlError:
        start, end = node.meta["start"], node.meta["end"] + 1
        return error_at(self.sql, start, end, "WRONG_ARGUMENTS", message, hint=_example(name))


def _example(name: str) -> str:
    return f"For example: {_EXAMPLES[name]}."


def _listed(words: list[str] | tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
