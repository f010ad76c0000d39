"""Queries: streams and sub-queries with their windows in FROM (Krämer 7.2.3, CQL brackets), and what is done with an answer.

``Istream(…)``, ``Rstream-restore(…)``, ``Wstream(…)[ROWS 10]`` stand around a select list (CQL, Golab 3.4).
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from headwater.language.parsing.array_parsing import GENERATORS, array_rows, with_array_rows
from headwater.language.parsing.foreign_statements import AS_WINDOW, EMISSIONS, IN_FROM
from headwater.language.parsing.output_windows import windowed_output
from headwater.language.parsing.syntax import Granularity, OutputWindow, RelationToStream, StreamWindow
from headwater.language.parsing.table_function_parsing import TableFunctionParser
from headwater.language.text import error_at

_AFTER_STRAY_COMMA = frozenset({TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING})
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


class QueryParser(TableFunctionParser):
    """``ref [alias] [window] [granularity] [alias]`` and joins of them; the select list as a stream of its own."""

    # -- FROM -------------------------------------------------------------------------------------------------------

    def _parse_table(self, *args: Any, joins: bool = False, **options: Any) -> exp.Expr | None:
        """``ref [alias] [window] [granularity] [alias]``, where ref is a name, a sub-query or Istream(…)."""
        item = self._parse_reference()
        version = self._parse_as_of()
        alias = self._parse_table_alias()
        version = version or self._parse_as_of()
        window = self._parse_stream_window()
        if window and self._match_set((TokenType.WINDOW, TokenType.L_BRACKET), advance=False):
            hint = "Window the result of a sub-query: FROM (SELECT * FROM s WINDOW(…)) WINDOW(…)."
            raise self.error("SYNTAX", "a stream has one window", hint=hint)
        granularity = self._parse_granularity()
        if window or granularity:
            alias = alias or self._parse_table_alias()
        marks = (("alias", alias), ("stream_window", window), ("granularity", granularity), ("as_of", version))
        for key, value in marks:
            if value:
                item.set(key, value)
        if joins:
            for join in self._parse_joins():
                item.append("joins", join)
        return item

    def _parse_as_of(self) -> exp.Expr | None:
        """``FOR SYSTEM_TIME AS OF b.ts``, as Flink's temporal joins have it."""
        if not self._match_text_seq("FOR", "SYSTEM_TIME"):
            return None
        if not self._match_text_seq("AS", "OF"):
            raise self.expected("AS OF")
        version = self._parse_bitwise()
        if version is None:
            raise self.expected("the time column of the stream on the left")
        return version

    def _parse_reference(self) -> exp.Expr:
        if self._at_restore():
            name = f"{self._curr.text.capitalize()}-restore"
            hint = f"Write it into the select list of a sub-query: (SELECT {name}(*) FROM …)."
            raise self.error("UNSUPPORTED", f"{name} cannot be used in FROM", hint=hint)
        if self._match_pair(TokenType.L_PAREN, TokenType.VALUES):
            rows = self._parse_rows()
            if not self._match(TokenType.R_PAREN):
                raise self.expected('")" after the rows of VALUES')
            return rows
        if self._match_set((TokenType.L_PAREN, TokenType.WITH), advance=False):
            query = self._parse_select(table=True, parse_subquery_alias=False)
            while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Subquery) and query.this.is_wrapper:
                query = query.this
            return query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
        if self._match(TokenType.SELECT, advance=False):
            return exp.Subquery(this=self._parse_statement())  # printed without parentheses in Krämer, Example 17.7
        if self._curr.text.upper() in _RELATION_TO_STREAM and self._next.token_type == TokenType.L_PAREN:
            return self._parse_relation_to_stream()
        if self._at_table_function():
            return self._parse_table_function()
        if self._match(TokenType.VALUES):
            return self._parse_rows()
        if self._match(TokenType.LATERAL) and self._match_set((TokenType.L_PAREN, TokenType.SELECT), advance=False):
            hint = "Join with a sub-query that has the key: JOIN (SELECT k, … FROM s GROUP BY k) AS d ON d.k = b.k."
            raise self.error("UNSUPPORTED", "LATERAL is not supported for sub-queries", self._prev, hint=hint)
        if self._curr.text.upper() in GENERATORS and self._next.token_type == TokenType.L_PAREN:
            return self._parse_array_rows()
        name = self._parse_name("the name of a stream or a sub-query")
        if self._match(TokenType.DOT, advance=False):
            raise self.error("SYNTAX", "a stream has a plain name, without a dot")
        if self._match(TokenType.L_PAREN, advance=False):
            raise error_at(
                self.sql,
                name.meta["start"],
                name.meta["end"] + 1,
                "UNKNOWN_FUNCTION",
                f'function "{name.name}" cannot be used in FROM',
                hint="Only TUMBLE, HOP, CUMULATE, SESSION, UNNEST, explode, Istream, Dstream and Rstream can.",
            )
        return self._at(exp.Table(this=name), self._prev)

    def _parse_array_rows(self) -> exp.Expr:
        """``UNNEST(a) [WITH ORDINALITY]``, ``explode(a)`` and their like."""
        start = self._curr
        self._advance(2)
        call = exp.Anonymous(this=start.text, expressions=self._parse_csv(self._parse_assignment))
        if not self._match(TokenType.R_PAREN):
            raise self.expected(f'")" after the argument of {start.text.upper()}')
        self._at(call, start, self._prev)
        ordinality = self._match_text_seq("WITH", "ORDINALITY")
        if ordinality and start.text.upper() != "UNNEST":
            hint = "posexplode(a) gives the places of items; UNNEST(a) WITH ORDINALITY does, too."
            raise self.error("UNSUPPORTED", "only UNNEST can have WITH ORDINALITY", self._prev, hint=hint)
        return array_rows(self.sql, call, ordinality=bool(ordinality))

    def _parse_rows(self) -> exp.Expr:
        start = self._prev
        return self._at(exp.Values(expressions=self._parse_csv(self._parse_value)), start)

    def _parse_relation_to_stream(self) -> exp.Expr:
        start = self._curr
        kind = self._curr.text.upper()
        self._advance(2)
        inner = self._parse_table()
        if not self._match(TokenType.R_PAREN):
            raise self.expected(f'")" after the argument of {kind}')
        return self._at(RelationToStream(this=exp.var(kind), expression=inner), start)

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        word, following = self._curr.text.upper(), self._next.token_type
        if word in IN_FROM and following in (TokenType.L_PAREN, TokenType.NUMBER, TokenType.VAR):
            raise self.error("UNSUPPORTED", f"{word} is not supported", hint=IN_FROM[word])
        if word == "GRANULARITY" and following == TokenType.L_PAREN:
            return None
        if word == "CONSISTENCY" and following in self.ID_VAR_TOKENS:
            return None
        if word == "EMIT" and self._begins_emission():
            return None
        return super()._parse_table_alias(alias_tokens)

    def _begins_emission(self) -> bool:
        """Is EMIT the clause, and not the name of a table that is joined?"""
        following = [token.text.upper() for token in self._tokens[self._index + 1 : self._index + 3]]
        if following[:1] == ["ON"]:
            return following[1:] in (["START"], ["CLOSE"], ["WINDOW"], ["UPDATE"])
        return following[:1] == ["EVERY"] or (following[:1] or [""])[0] in EMISSIONS

    def _parse_stream_window(self) -> exp.Expr | None:
        if self._curr.token_type == TokenType.WINDOW and (hint := AS_WINDOW.get(self._next.text.upper())):
            raise self.error("UNSUPPORTED", f"WINDOW {self._next.text.upper()} is not supported", hint=hint)
        if self._match_pair(TokenType.WINDOW, TokenType.L_PAREN):
            closing, shown = TokenType.R_PAREN, ")"
        elif self._match(TokenType.L_BRACKET):
            closing, shown = TokenType.R_BRACKET, "]"
        else:
            return None
        window = self._parse_window_frame()
        if not self._match(closing):
            raise self.expected(f'"{shown}" at the end of the window')
        return window

    def _parse_window_frame(self) -> exp.Expr:
        start = self._curr
        partition = None
        if self._match(TokenType.PARTITION_BY):
            partition = self._parse_csv(self._parse_column)
        size = least = slide = None
        internal = False
        if self._match_text_seq("NOW"):
            kind = "NOW"
        elif self._match_text_seq("SESSION"):
            kind, size = "SESSION", self._parse_duration()
        elif self._match_texts(("RANGE", "ROWS", "WINDOW")):  # WINDOW as in Golab chapter 8: a RANGE
            kind = "ROWS" if self._prev.text.upper() == "ROWS" else "RANGE"
            if self._match_text_seq("UNBOUNDED"):
                kind = "UNBOUNDED"
            elif self._match_text_seq("MIN"):
                least = self._parse_duration()
                size = self._parse_other_bound("MAX", "the smallest size")
            else:
                size = self._parse_duration()
            if self._match_text_seq("SLIDE"):
                slide = self._parse_duration()
            internal = bool(self._match_text_seq("INTERNAL"))
        else:
            raise self.expected("RANGE, ROWS, SESSION or NOW")
        window = StreamWindow(this=kind, size=size, least=least, slide=slide, partition=partition, internal=internal)
        return self._at(window, start, self._prev)

    def _parse_other_bound(self, word: str, after: str) -> exp.Expr:
        """The second of two bounds between which the system may choose (Krämer 21.2)."""
        if not (self._match(TokenType.COMMA) and self._match_text_seq(word)):
            raise self.expected(f'", {word}" and a bound after {after}')
        return self._parse_duration()

    def _parse_granularity(self) -> exp.Expr | None:
        if not (self._curr.text.upper() == "GRANULARITY" and self._next.token_type == TokenType.L_PAREN):
            return None
        start = self._curr
        self._advance(2)
        coarsest = self._parse_duration() if self._match_text_seq("COARSEST") else None
        granule = self._parse_other_bound("FINEST", "the coarsest one") if coarsest else self._parse_duration()
        if not self._match(TokenType.R_PAREN):
            raise self.expected('")" after the granularity')
        return self._at(Granularity(this=granule, coarsest=coarsest), start, self._prev)

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        if self._match(TokenType.COMMA):
            if self._match_set(_AFTER_STRAY_COMMA, advance=False):  # printed so in Krämer, Examples 7.3 and 7.4
                return None
            return self.expression(exp.Join(this=self._parse_table(), kind="COMMA"))
        return super()._parse_join(*args, **options)

    # -- the answer as a stream --------------------------------------------------------------------------------------

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
        if self._match(TokenType.VALUES):
            return self._parse_values_query(*args, **options)
        query = super()._parse_select_query(*args, **options)
        if isinstance(query, exp.Select) and len(query.expressions) == 1:
            (only,) = query.expressions
            inside = only.expressions if isinstance(only, exp.Anonymous) else []
            streams = _RELATION_TO_STREAM | _RESTORED
            if only.name.upper() in streams and len(inside) == 1 and isinstance(inside[0], exp.Distinct):
                only.set("expressions", inside[0].expressions)
                query.set("distinct", exp.Distinct())
        return query

    def _parse_values_query(self, *args: Any, parse_set_operation: bool = True, **options: Any) -> exp.Expr | None:
        """``VALUES (1, 'a'), (2, 'b')`` where a query stands."""
        select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=self._parse_rows()))
        query = self._parse_query_modifiers(select)
        return self._parse_set_operations(query) if parse_set_operation else query

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
        if not isinstance(query, exp.Select):
            return query
        return windowed_output(self.sql, with_array_rows(self.sql, query))
