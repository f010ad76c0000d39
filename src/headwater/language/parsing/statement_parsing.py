"""The statements of a script; a query is parsed as in Spark but for its FROM clause."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from headwater.errors import SqlError
from headwater.language.parsing.create_parsing import KINDS, CreateParser
from headwater.language.parsing.foreign_statements import EXPLAINED, STATEMENTS, STREAM_AS
from headwater.language.parsing.syntax import AlterQuery, Describe, ExplainStatement, SelectStatement, SetOption, Show
from headwater.language.system_views import SYSTEM_VIEWS
from headwater.language.text import closest
from headwater.settings import Settings

_STATEMENTS = ("SELECT", "CREATE", "ALTER", "DROP", "EXPLAIN", "SHOW", "DESCRIBE", "SET")
_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN)
_LEVELS = ("LOGICAL", "OPTIMIZED", "PHYSICAL", "HEARTBEAT")
_FORMATS = ("TREE", "TEXT", "JSON", "MERMAID")
_SHOWN = {
    "STREAMS": "STREAMS",
    "TABLES": "TABLES",
    "RELATIONS": "TABLES",
    "VIEWS": "VIEWS",
    "SINKS": "SINKS",
    "QUERIES": "QUERIES",
    "FUNCTIONS": "FUNCTIONS",
}
"""What SHOW takes besides the names of system views, and what it is called."""


class StatementParser(CreateParser):
    """A script is statements, one after the other."""

    _explaining = False

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        return self._parse(lambda _: self._parse_script_statement(), raw_tokens, sql)

    def _parse_script_statement(self) -> exp.Expr | None:
        self._explaining = False
        if not self._curr or self._match(TokenType.SEMICOLON):
            return None
        if self._match_text_seq("CREATE"):
            return self._parse_create_statement()
        if self._match_text_seq("DROP"):
            return self._parse_drop_statement()
        if self._match_text_seq("ALTER"):
            return self._parse_alter_query()
        if self._match_text_seq("SET"):
            return self._parse_set_option()
        if self._match_text_seq("EXPLAIN"):
            return self._parse_explain()
        if self._match_text_seq("SHOW"):
            return self._parse_show_statement()
        if self._match_texts(("DESCRIBE", "DESC")):
            return self._parse_describe_statement()
        if self._match_set(_QUERY_STARTS, advance=False):
            start = self._curr
            query = self._parse_statement()
            return self._at(SelectStatement(this=query, **self._parse_output_clauses()), start)
        raise self._unknown_statement()

    def _unknown_statement(self) -> SqlError:
        word = self._curr.text
        near = closest(word.upper(), _STATEMENTS, cutoff=0.7)
        hint = f"Did you mean {near}?" if near else f"Statements begin with {', '.join(_STATEMENTS)}."
        if word.upper() in STATEMENTS:
            hint = STATEMENTS[word.upper()] or self._instead_of_insert()
            return self.error("UNKNOWN_STATEMENT", f"there is no statement {word.upper()}", hint=hint)
        return self.error("UNKNOWN_STATEMENT", f'unknown statement "{word}"', hint=hint)

    def _instead_of_insert(self) -> str:
        """``INSERT INTO t SELECT …`` is a query with a name; ``INSERT INTO t VALUES …`` brings rows."""
        words = [token for token in self._tokens[self._index + 1 :] if token.token_type != TokenType.SEMICOLON]
        named = [token for token in words[:4] if token.text.upper() not in ("INTO", "OVERWRITE", "TABLE")]
        name = named[0].text if named else "name"
        if "SELECT" not in {token.text.upper() for token in words} and any(t.text.upper() == "VALUES" for t in words):
            return f"Rows come from a SOURCE, from engine.push('{name}', rows), or CREATE TABLE {name} AS VALUES (…)."
        sink = f"CREATE SINK {name} TO parquet('folder') AS SELECT …"
        return f"Write {STREAM_AS.format(name)}, a query with a name; or {sink} for files."

    def _parse_alter_query(self) -> exp.Expr:
        """``ALTER QUERY name SET CONSISTENCY …``"""
        start = self._prev
        if not self._match_texts(("QUERY", "STREAM")):
            raise self.expected("QUERY")
        name = self._parse_name("the name of a query")
        self._expect("SET")
        level = self._parse_consistency()
        if level is None:
            raise self.expected("CONSISTENCY")
        return self._at(AlterQuery(this=name, consistency=level), start)

    def _parse_set_option(self) -> exp.Expr:
        start = self._prev
        if self._match(TokenType.STRING, advance=False):
            hint = (
                f"Settings are names without quotes: {', '.join(Settings.names())}. For example: SET optimizer = off."
            )
            raise self.error("UNKNOWN_SETTING", f'setting "{self._curr.text}" does not exist', hint=hint)
        name = self._parse_name("the name of a setting")
        if self._match(TokenType.DOT, advance=False):
            hint = f"There are {', '.join(Settings.names())}."
            raise self.error("UNKNOWN_SETTING", f'setting "{name.name}.…" does not exist', self._prev, hint=hint)
        if not (self._match(TokenType.EQ) or self._match_text_seq("TO")):
            raise self.expected('"="')
        token = self._curr
        value = self._parse_string() or self._parse_number() or self._parse_id_var()
        if value is None:
            raise self.expected(f'a value for setting "{name.name}"')
        return self._at(SetOption(this=name, value=self._at(value, token)), start)

    # -- EXPLAIN ----------------------------------------------------------------------------------------------------

    def _parse_explain(self) -> exp.Expr:
        """Options stand before or after what is explained, plain or in parentheses (as in PostgreSQL and DuckDB)."""
        start = self._prev
        self._explaining = True
        options: dict[str, Any] = {}
        word = self._curr.text.upper() if self._next and self._next.token_type != TokenType.SEMICOLON else ""
        if word in EXPLAINED:
            raise self.error("UNSUPPORTED", f"EXPLAIN {word} is not supported", hint=EXPLAINED[word])
        while self._next and self._parse_explain_option(options):  # the last word is a name, whatever it is
            pass
        if self._match_set(_QUERY_STARTS, advance=False):
            target = self._parse_statement()
            options |= self._parse_output_clauses()
        else:
            target = self._parse_name("a query or the name of one")
        while self._curr and self._parse_explain_option(options):
            pass
        return self._at(ExplainStatement(this=target, **options), start)

    def _parse_explain_option(self, options: dict[str, Any]) -> bool:
        if self._match(TokenType.L_PAREN, advance=False) and self._is_option(self._next):
            self._advance()
            while self._parse_explain_option(options) and self._match(TokenType.COMMA):
                pass
            if not self._match(TokenType.R_PAREN):
                raise self.expected("LOGICAL, OPTIMIZED, PHYSICAL, HEARTBEAT, VERBOSE or FORMAT")
            return True
        if not self._is_option(self._curr):
            return False
        word = self._curr.text.upper()
        name = "level" if word in _LEVELS else word.lower()
        if name in options:
            raise self.error("SYNTAX", f"EXPLAIN takes one {name.upper()} only")
        self._advance()
        options[name] = True if name == "verbose" else word if name == "level" else self._parse_format()
        return True

    @staticmethod
    def _is_option(token: Token) -> bool:
        return bool(token) and token.text.upper() in (*_LEVELS, "VERBOSE", "FORMAT")

    def _parse_format(self) -> str:
        self._match(TokenType.EQ)
        if not self._match_texts(_FORMATS):
            raise self.expected(f"{', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}")
        return self._prev.text.upper()

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        """In EXPLAIN the words of its options are no aliases."""
        if self._explaining and self._is_option(self._curr):
            return None
        return super()._parse_table_alias(alias_tokens)

    # -- SHOW and DESCRIBE ------------------------------------------------------------------------------------------

    def _parse_show_statement(self) -> exp.Expr:
        start = self._prev
        if self._match_text_seq("CREATE"):
            hint = "Write DESCRIBE name; SHOW STREAMS lists columns, sources and promises."
            raise self.error("UNKNOWN_STATEMENT", "SHOW CREATE is not supported", self._prev, hint=hint)
        origin = self._prev.text.upper() if self._match_texts(("ALL", "USER", "SYSTEM")) else None
        views = map(str.upper, SYSTEM_VIEWS)
        allowed = ("FUNCTIONS",) if origin else (*_SHOWN, *views)
        if not self._match_texts(allowed):
            if not self._curr:
                raise self.expected("what to show")
            near = closest(self._curr.text.upper(), allowed, cutoff=0.6)
            hint = f"Did you mean {near}?" if near else f"There are {', '.join(allowed)}."
            raise self.error("UNKNOWN_STATEMENT", f'cannot show "{self._curr.text}"', hint=hint)
        what = self._prev.text.upper()
        shown = Show(this=_SHOWN.get(what, what), origin=origin)
        if self._match_text_seq("LIKE") or self._match(TokenType.STRING, advance=False):
            if not self._match(TokenType.STRING):
                raise self.expected("a pattern in quotes")
            shown.set("like", self._at(exp.Literal.string(self._prev.text), self._prev))
        return self._at(shown, start)

    def _parse_describe_statement(self) -> exp.Expr:
        start = self._prev
        kind = None
        if self._next and self._next.token_type != TokenType.SEMICOLON and self._match_texts(("EXTENDED", "FORMATTED")):
            hint = (
                f"Write DESCRIBE {self._curr.text}; SHOW STREAMS lists sources and promises, EXPLAIN what a query does."
            )
            raise self.error(
                "UNSUPPORTED", f"DESCRIBE {self._prev.text.upper()} is not supported", self._prev, hint=hint
            )
        if self._next and self._match_texts((*KINDS, "QUERY")):
            kind = KINDS.get(self._prev.text.upper(), "QUERY")
        if kind in (None, "QUERY") and self._match_set(_QUERY_STARTS, advance=False):
            target = self._parse_statement()
            self._parse_output_clauses()
        else:
            target = self._parse_name("the name of a stream, table, query or function")
        return self._at(Describe(this=target, kind=kind), start)
