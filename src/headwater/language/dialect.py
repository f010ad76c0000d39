"""The SQL dialect: sqlglot's Spark parser, extended by streams, windows and their statements (Krämer 7.2, CQL).

Types of sqlglot do not leave this package. A function call is parsed as a plain name with arguments: what it means, and
whether it exists at all, is said by ``functions`` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType

from headwater.errors import HeadwaterError, SqlError
from headwater.language.text import closest, error_at

BROKEN_PARSER_HINT = "Uninstall the compiled parser: pip uninstall sqlglotc"


def check_extensible(module: ModuleType) -> None:
    """Refuse a compiled sqlglot (``sqlglotc``): its classes cannot be extended in Python."""
    if not str(module.__file__).endswith(".py"):
        raise HeadwaterError(
            "BROKEN_PARSER", "the installed sqlglot cannot be extended by a dialect", hint=BROKEN_PARSER_HINT
        )


check_extensible(parser)


# -- syntax nodes -----------------------------------------------------------------------------------------------------


class Duration(exp.Expression):
    """``10 MINUTES`` or ``10``."""

    arg_types: ClassVar = {"this": True, "unit": False}


class StreamWindow(exp.Expression):
    """What stands in ``WINDOW( … )``; ``size`` is missing for UNBOUNDED and NOW."""

    arg_types: ClassVar = {"this": True, "size": False, "slide": False, "partition": False}


class Granularity(exp.Expression):
    arg_types: ClassVar = {"this": True}


class RelationToStream(exp.Expression):
    """``Istream(R)``, ``Dstream(R)`` or ``Rstream(R)`` in FROM; ``expression`` is the FROM item inside."""

    arg_types: ClassVar = {"this": True, "expression": True, "alias": False}


class CreateStream(exp.Expression):
    arg_types: ClassVar = {
        "this": True,
        "columns": False,
        "source": False,
        "time": False,
        "query": False,
        "consistency": False,
    }


class DropStream(exp.Expression):
    arg_types: ClassVar = {"this": True}


class SetOption(exp.Expression):
    arg_types: ClassVar = {"this": True, "value": True}


class SelectStatement(exp.Expression):
    arg_types: ClassVar = {"this": True, "consistency": False}


# -- the parser -------------------------------------------------------------------------------------------------------

_AFTER_STRAY_COMMA = frozenset({TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING})
_RELATION_TO_STREAM = frozenset({"ISTREAM", "DSTREAM", "RSTREAM"})
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


class HeadwaterParser(Spark.Parser):
    """Statements of our own; SELECT as in Spark but for the FROM clause."""

    STRICT_CAST = True
    ADD_JOIN_ON_TRUE = False
    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: Spark.Parser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "LISTAGG", "STRING_AGG")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "ANY": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["ANY"],
        "CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"],
    }

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        return self._parse(lambda _: self._parse_script_statement(), raw_tokens, sql)

    def error(
        self, code: str, message: str, token: Token | None = None, *, detail: str = "", hint: str = ""
    ) -> SqlError:
        """An error of ours at a token (the current one, or the last one at the end of a statement)."""
        token = token or self._curr or self._prev
        return error_at(self.sql, token.start, token.end + 1, code, message, detail=detail, hint=hint)

    def expected(self, what: str) -> SqlError:
        found = f'"{self._curr.text}"' if self._curr else "the end of the statement"
        return self.error("SYNTAX", f"expected {what}, found {found}")

    # -- statements -------------------------------------------------------------------------------------------------

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

    # -- the FROM clause --------------------------------------------------------------------------------------------

    def _parse_table(self, *args: Any, joins: bool = False, **options: Any) -> exp.Expr | None:
        """``ref [alias] [window] [granularity] [alias]``, where ref is a name, a sub-query or Istream(…)."""
        item = self._parse_reference()
        alias = self._parse_table_alias()
        window = self._parse_stream_window()
        granularity = self._parse_granularity()
        if window or granularity:
            alias = alias or self._parse_table_alias()
        for key, value in (("alias", alias), ("stream_window", window), ("granularity", granularity)):
            if value:
                item.set(key, value)
        if joins:
            for join in self._parse_joins():
                item.append("joins", join)
        return item

    def _parse_reference(self) -> exp.Expr:
        if self._match_set((TokenType.L_PAREN, TokenType.WITH), advance=False):
            query = self._parse_select(table=True, parse_subquery_alias=False)
            while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Subquery) and query.this.is_wrapper:
                query = query.this
            return query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
        if self._match(TokenType.SELECT, advance=False):
            return exp.Subquery(this=self._parse_statement())  # printed without parentheses in Krämer, Example 17.7
        if self._curr.text.upper() in _RELATION_TO_STREAM and self._next.token_type == TokenType.L_PAREN:
            return self._parse_relation_to_stream()
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
                hint="Only Istream(…), Dstream(…) and Rstream(…) can.",
            )
        return self._at(exp.Table(this=name), self._prev)

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
        if word == "GRANULARITY" and following == TokenType.L_PAREN:
            return None
        if word == "CONSISTENCY" and following in self.ID_VAR_TOKENS:
            return None
        return super()._parse_table_alias(alias_tokens)

    def _parse_stream_window(self) -> exp.Expr | None:
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
        size = slide = None
        if self._match_text_seq("NOW"):
            kind = "NOW"
        elif self._match_texts(("RANGE", "ROWS")):
            kind = self._prev.text.upper()
            if self._match_text_seq("UNBOUNDED"):
                kind = "UNBOUNDED"
            else:
                size = self._parse_duration()
            if self._match_text_seq("SLIDE"):
                slide = self._parse_duration()
        else:
            raise self.expected("RANGE, ROWS or NOW")
        window = StreamWindow(this=kind, size=size, slide=slide, partition=partition)
        return self._at(window, start, self._prev)

    def _parse_granularity(self) -> exp.Expr | None:
        if not (self._curr.text.upper() == "GRANULARITY" and self._next.token_type == TokenType.L_PAREN):
            return None
        start = self._curr
        self._advance(2)
        granule = self._parse_duration()
        if not self._match(TokenType.R_PAREN):
            raise self.expected('")" after the granularity')
        return self._at(Granularity(this=granule), start, self._prev)

    def _parse_duration(self) -> exp.Expr:
        """``10``, ``10 MINUTES``, ``INTERVAL '10' MINUTES``; the sign is read so that the binder can refuse it."""
        interval = self._match(TokenType.INTERVAL)
        start = self._curr
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._match_set((TokenType.NUMBER, TokenType.STRING) if interval else (TokenType.NUMBER,)):
            raise self.expected("a number")
        number = sign + self._prev.text
        unit = None
        if self._curr.text.upper() != "SLIDE" and self._match_set(self.ID_VAR_TOKENS):
            unit = self._at(exp.var(self._prev.text), self._prev)
        return self._at(Duration(this=number, unit=unit), start, self._prev)

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        if self._match(TokenType.COMMA):
            if self._match_set(_AFTER_STRAY_COMMA, advance=False):  # printed so in Krämer, Examples 7.3 and 7.4
                return None
            return self.expression(exp.Join(this=self._parse_table(), kind="COMMA"))
        return super()._parse_join(*args, **options)

    # -- expressions ------------------------------------------------------------------------------------------------

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:
        """As in the base, but every call knows the name it was written with, and where."""
        token, called = self._curr, self._next.token_type == TokenType.L_PAREN
        result = super()._parse_function_call(*args, **options)
        inner = result
        while isinstance(inner, (exp.Filter, exp.Window, exp.WithinGroup)):
            inner = inner.this
        if isinstance(inner, exp.Func) and called and "name" not in inner.meta:
            inner.meta["name"] = token.text
            inner.update_positions(token)
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


class Headwater(Spark):
    """Spark's SQL with the TIMESTAMP of the model (no time zone) and quotes doubled as in standard SQL."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'"]
        KEYWORDS: ClassVar = {**Spark.Tokenizer.KEYWORDS, "TIMESTAMP": TokenType.TIMESTAMP}
        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = HeadwaterParser


def _probe() -> None:
    """Find out at import, not in the middle of a script, that this sqlglot does not work with our dialect."""
    try:
        (tree,) = Headwater().parse("SELECT x FROM s WINDOW(RANGE 1 MINUTE)")
        assert isinstance(tree, SelectStatement)
        assert isinstance(tree.this.args["from_"].this.args["stream_window"], StreamWindow)
    except Exception as problem:
        raise HeadwaterError(
            "BROKEN_PARSER",
            "the installed sqlglot does not work with the dialect of this version",
            detail=f"{type(problem).__name__}: {problem}",
            hint="Install the version that Headwater asks for: pip install 'sqlglot~=30.30.0'",
        ) from problem


_probe()
