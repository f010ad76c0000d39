"""Statements of our own; a query is parsed as in Spark but for its FROM clause."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from headwater.errors import SqlError
from headwater.language.from_parsing import FromParser
from headwater.language.syntax import CreateStream, DropStream, SelectStatement, SetOption
from headwater.language.text import closest

_CONSISTENCIES = ("STRONG", "MIDDLE")
_LATER = {
    "EXPLAIN": "EXPLAIN is not available in this version",
    "SHOW": "SHOW is not available in this version",
}
_TIME_CLAUSES = frozenset(
    {
        *("STRICTLY", "IN", "DISORDER", "ROWS", "SKEW", "LAGS", "CLOCK", "TOKENS", "TRANSITIVE", "HEARTBEAT"),
        *("TIMEOUT", "IDLE", "LATE", "LATENCY", "SENT", "PARTITION", "WATERMARK", "ORDERED"),
    }
)
"""What may follow the time column (all that DISORDER, LATE ROWS and the like need is in the clock)."""
_STATEMENTS = ("SELECT", "CREATE STREAM", "DROP STREAM", "SET")


class StatementParser(FromParser):
    """A script is statements, one after the other."""

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        return self._parse(lambda _: self._parse_script_statement(), raw_tokens, sql)

    def _parse_script_statement(self) -> exp.Expr | None:
        if not self._curr or self._match(TokenType.SEMICOLON):
            return None
        if self._match_text_seq("CREATE", "STREAM"):
            return self._parse_create_stream()
        if self._match_text_seq("DROP", "STREAM"):
            return self._at(DropStream(this=self._parse_name("the name of a stream")), self._prev)
        if self._match_text_seq("SET"):
            return self._parse_set_option()
        if self._match_set((TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN), advance=False):
            start = self._curr
            query = self._parse_statement()
            return self._at(SelectStatement(this=query, consistency=self._parse_consistency()), start)
        raise self._unknown_statement()

    def _unknown_statement(self) -> SqlError:
        words = self._curr.text.upper()
        if words in _LATER:
            return self.error("UNSUPPORTED", _LATER[words])
        if words in ("CREATE", "DROP"):
            hint = f"Only streams can be {'created' if words == 'CREATE' else 'dropped'}: {words} STREAM name."
            return self.error("UNKNOWN_STATEMENT", f'cannot {words.lower()} "{self._next.text}"', self._next, hint=hint)
        near = closest(words, [s.split()[0] for s in _STATEMENTS], cutoff=0.7)
        hint = f"Did you mean {near}?" if near else f"Statements begin with {', '.join(_STATEMENTS)}."
        return self.error("UNKNOWN_STATEMENT", f'unknown statement "{self._curr.text}"', hint=hint)

    def _parse_statement(self) -> exp.Expr | None:
        """A query with all that may follow it; also what stands after WITH."""
        query = self._parse_select(nested=True, parse_subquery_alias=False)
        query = self._parse_query_modifiers(self._parse_set_operations(query))
        if query is None:
            raise self.expected("SELECT")
        return query

    def _parse_create_stream(self) -> exp.Expr:
        start = self._tokens[self._index - 2]
        name = self._parse_name("the name of a stream")
        if self._match(TokenType.ALIAS):
            query = self._parse_statement()
            return self._at(CreateStream(this=name, query=query, consistency=self._parse_consistency()), start)
        if not self._match(TokenType.L_PAREN, advance=False):
            raise self.expected('"(" with the columns, or AS with a query')
        columns = self._parse_wrapped_csv(self._parse_stream_column)
        source = self._parse_connector() if self._match_text_seq("SOURCE") else None
        time = None
        if self._match_text_seq("ORDERED", "BY") or self._match_text_seq("TIMESTAMP", "BY"):
            time = self._parse_name("the name of the time column")
        if self._curr and self._curr.text.upper() in _TIME_CLAUSES:
            raise self.error("UNSUPPORTED", f"the clause {self._curr.text.upper()} is not available in this version")
        return self._at(CreateStream(this=name, columns=columns, source=source, time=time), start)

    def _parse_stream_column(self) -> exp.Expr:
        name = self._parse_name("the name of a column")
        token = self._curr
        kind = self._parse_types(schema=True, allow_identifiers=False)
        if kind is None:
            raise self.expected(f'the type of column "{name.name}"')
        self._at(kind, token)
        nullable = not self._match_text_seq("NOT", "NULL")
        return self._at(exp.ColumnDef(this=name, kind=kind, constraints=[] if nullable else [exp.Null()]), token)

    def _parse_connector(self) -> exp.Expr:
        start = self._curr
        name = self._parse_name("the name of a source")
        if not self._match(TokenType.L_PAREN, advance=False):
            raise self.expected('"(" with the arguments of the source')
        arguments = self._parse_wrapped_csv(self._parse_connector_argument, optional=True)
        return self._at(exp.Anonymous(this=name, expressions=arguments), start)

    def _parse_connector_argument(self) -> exp.Expr | None:
        if self._next.token_type in (TokenType.EQ, TokenType.FARROW) and (name := self._parse_id_var()):
            self._advance()
            return self.expression(exp.PropertyEQ(this=name, expression=self._parse_unary()))
        return self._parse_unary()

    def _parse_set_option(self) -> exp.Expr:
        start = self._prev
        name = self._parse_name("the name of a setting")
        if not (self._match(TokenType.EQ) or self._match_text_seq("TO")):
            raise self.expected('"="')
        token = self._curr
        value = self._parse_string() or self._parse_number() or self._parse_id_var()
        if value is None:
            raise self.expected(f'a value for setting "{name.name}"')
        return self._at(SetOption(this=name, value=self._at(value, token)), start)

    def _parse_consistency(self) -> exp.Expr | None:
        if not self._match_text_seq("CONSISTENCY"):
            return None
        if self._match_texts(_CONSISTENCIES):
            return exp.var(self._prev.text.upper())
        if self._match_texts(("WEAK", "BLOCK"), advance=False):
            raise self.error("UNSUPPORTED", f"CONSISTENCY {self._curr.text.upper()} is not available in this version")
        raise self.expected("STRONG or MIDDLE")
