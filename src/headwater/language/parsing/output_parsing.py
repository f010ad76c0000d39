"""What a query does with its answer: ``Istream(…)``, ``Rstream-restore(…)``, ``Wstream(…)[ROWS 10]`` (CQL, Golab 3.4)."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from headwater.language.parsing.from_parsing import FromParser
from headwater.language.parsing.output_windows import windowed_output
from headwater.language.parsing.syntax import OutputWindow

_RELATION_TO_STREAM = frozenset({"ISTREAM", "DSTREAM", "RSTREAM"})
_RESTORED = frozenset({"ISTREAM-RESTORE", "RSTREAM-RESTORE"})
_BEGINS_A_LIST = frozenset(
    {TokenType.NUMBER, TokenType.STRING, TokenType.CASE, TokenType.DISTINCT, TokenType.NOT, TokenType.NULL}
)
_AFTER_A_COLUMN = frozenset({TokenType.ALIAS, TokenType.FROM, TokenType.IS, TokenType.DIV})
_NOT_DEFINED = {
    "DSTREAM": ("What came and went between two refreshes was in no answer that it could leave.", ""),
    "WSTREAM": (
        "A refresh may bring more results than the window holds (Golab 3.4).",
        "Window what Istream-restore gives, in FROM.",
    ),
}


class OutputParser(FromParser):
    """The select list as a stream of its own."""

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        """``SELECT ISTREAM a, b`` is the same as CQL's ``SELECT Istream(a, b)``."""
        token = self._curr
        if self._at_restore():
            return [self._parse_restore()], None
        if token.text.upper() not in _RELATION_TO_STREAM or not self._is_followed_by_a_list():
            return super()._parse_projections()
        self._advance()
        distinct = self._match(TokenType.DISTINCT)
        listed, exclude = super()._parse_projections()
        inside = [exp.Distinct(expressions=listed)] if distinct else listed
        return [self._at(exp.Anonymous(this=token.text, expressions=inside), token)], exclude

    def _is_followed_by_a_list(self) -> bool:
        """Else it is a column of that name, or the function that CQL has."""
        following = self._next.token_type
        if following == TokenType.STAR:
            after = self._ahead(2)
            return after is not None and after.token_type in (TokenType.FROM, TokenType.COMMA, TokenType.EXCEPT)
        return following in _BEGINS_A_LIST or following in self.ID_VAR_TOKENS - _AFTER_A_COLUMN

    def _ahead(self, number: int) -> Any:
        return self._tokens[self._index + number] if self._index + number < len(self._tokens) else None

    def _parse_select_query(self, *args: Any, **options: Any) -> exp.Expr | None:
        """``Istream(DISTINCT a)``: the DISTINCT belongs to the query."""
        query = super()._parse_select_query(*args, **options)
        if isinstance(query, exp.Select) and len(query.expressions) == 1:
            (only,) = query.expressions
            inside = only.expressions if isinstance(only, exp.Anonymous) else []
            streams = _RELATION_TO_STREAM | _RESTORED
            if only.name.upper() in streams and len(inside) == 1 and isinstance(inside[0], exp.Distinct):
                only.set("expressions", inside[0].expressions)
                query.set("distinct", exp.Distinct())
        return query

    # -- restore ----------------------------------------------------------------------------------------------------

    def _at_restore(self) -> bool:
        """``Rstream-restore(``: with a blank, or without parentheses, it is a subtraction."""
        dash, word, opening = (self._ahead(number) for number in (1, 2, 3))
        return (
            self._curr.text.upper() in _RELATION_TO_STREAM | {"WSTREAM"}
            and opening is not None
            and dash.token_type == TokenType.DASH
            and word.text.upper() == "RESTORE"
            and word.start == self._curr.end + 2
            and opening.token_type == TokenType.L_PAREN
        )

    def _parse_reference(self) -> exp.Expr:
        if self._at_restore():
            name = f"{self._curr.text.capitalize()}-restore"
            hint = f"Write it into the select list of a sub-query: (SELECT {name}(*) FROM …)."
            raise self.error("UNSUPPORTED", f"{name} cannot be used in FROM", hint=hint)
        return super()._parse_reference()

    def _parse_restore(self) -> exp.Expr:
        start, word = self._curr, self._curr.text
        if word.upper() in _NOT_DEFINED:
            detail, hint = _NOT_DEFINED[word.upper()]
            raise self.error("UNSUPPORTED", f"{word.capitalize()}-restore is not defined", detail=detail, hint=hint)
        self._advance(2)
        call = self._parse_function_call()
        assert call is not None
        if self._match(TokenType.COMMA, advance=False):
            hint = f"Put all columns into the parentheses: {word}-restore(a, b)."
            raise self.error("SYNTAX", f"{word.capitalize()}-restore stands alone in a select list", hint=hint)
        return self._at(exp.Anonymous(this=f"{word}-restore", expressions=call.expressions), start, self._prev)

    # -- windows over the answer ------------------------------------------------------------------------------------

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:
        if self._curr and self._curr.text.upper() == "WSTREAM" and self._next.token_type == TokenType.L_PAREN:
            return self._parse_output_window()
        return super()._parse_function_call(*args, **options)

    def _parse_output_window(self) -> exp.Expr:
        start = self._curr
        self._advance(2)
        distinct = bool(self._match(TokenType.DISTINCT))
        listed = self._parse_expressions()
        if not listed:
            raise self.expected("the columns of Wstream, or *")
        if not self._match(TokenType.R_PAREN):
            raise self.expected('")" after the columns of Wstream')
        closing = self._prev
        window = self._parse_stream_window()
        if window is None:
            raise self.error(
                "SYNTAX", "Wstream needs a window over the answer", closing, hint="For example: Wstream(*)[ROWS 10]."
            )
        return self._at(OutputWindow(expressions=listed, window=window, distinct=distinct), start, self._prev)

    def _parse_query_modifiers(self, this: Any) -> Any:
        """Here a SELECT is complete, before set operations take it."""
        query = super()._parse_query_modifiers(this)
        return windowed_output(self.sql, query) if isinstance(query, exp.Select) else query
