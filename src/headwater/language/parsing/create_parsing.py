"""CREATE and DROP: streams, tables, views, sinks and functions."""

from __future__ import annotations

from itertools import pairwise

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from headwater.language.parsing.foreign_statements import CREATED, EMISSIONS, source_of
from headwater.language.parsing.syntax import (
    ConsistencyClause,
    CreateFunction,
    CreateStream,
    Drop,
    EmitClause,
    Statistic,
)
from headwater.language.parsing.time_parsing import TimeClauseParser
from headwater.language.text import closest, error_on

KINDS = {
    "STREAM": "STREAM",
    "TABLE": "TABLE",
    "RELATION": "TABLE",
    "VIEW": "VIEW",
    "SINK": "SINK",
    "FUNCTION": "FUNCTION",
}
"""A relation is a table under Krämer's name for it (17.4)."""

_LEVELS = ("STRONG", "MIDDLE", "WEAK")


class CreateParser(TimeClauseParser):
    """``CREATE [OR REPLACE] kind [IF NOT EXISTS] name …`` and ``DROP kind [IF EXISTS] name``."""

    def _parse_create_statement(self) -> exp.Expr:
        start = self._prev
        replace = self._match_text_seq("OR", "REPLACE") or False
        aggregate = self._match_text_seq("AGGREGATE") or False
        if aggregate and not self._match(TokenType.FUNCTION, advance=False):
            raise self.expected("FUNCTION")
        self._match_texts(("TEMPORARY", "TEMP"))  # everything lasts as long as its engine
        self._match_text_seq("SYSTEM")
        kind = self._parse_kind("create")
        if_not_exists = self._match_text_seq("IF", "NOT", "EXISTS") or False
        if replace and if_not_exists:
            message = "OR REPLACE and IF NOT EXISTS exclude each other"
            raise self.error("SYNTAX", message, self._prev, hint="Leave out one of them.")
        created = (
            self._parse_create_function(aggregate=aggregate) if kind == "FUNCTION" else self._parse_create_stream(kind)
        )
        created.set("replace", replace)
        created.set("if_not_exists", if_not_exists)
        return self._at(created, start)

    def _parse_drop_statement(self) -> exp.Expr:
        start = self._prev
        kind = "QUERY" if self._match_text_seq("QUERY") else self._parse_kind("drop")
        if_exists = self._match_text_seq("IF", "EXISTS") or False
        name = self._parse_name(f"the name of a {kind.lower()}")
        return self._at(Drop(this=name, kind=kind, if_exists=if_exists), start)

    def _parse_kind(self, verb: str) -> str:
        if self._match_text_seq("MATERIALIZED", "VIEW"):  # a view that is kept up to date is a stream
            return "STREAM"
        if self._match_texts(KINDS):
            return KINDS[self._prev.text.upper()]
        if verb == "create" and self._curr and (hint := CREATED.get(self._curr.text.upper())):
            raise self.error("UNKNOWN_STATEMENT", f"CREATE {self._curr.text.upper()} is not supported", hint=hint)
        if not self._curr:
            raise self.expected(f"what to {verb}")
        near = closest(self._curr.text, KINDS, cutoff=0.7)
        hint = f"Did you mean {near}?" if near else f"There are {', '.join(KINDS)}."
        raise self.error("UNKNOWN_STATEMENT", f'cannot {verb} "{self._curr.text}"', hint=hint)

    # -- streams, tables, views -------------------------------------------------------------------------------------

    def _parse_create_stream(self, kind: str) -> exp.Expr:
        name = self._parse_name(f"the name of a {kind.lower()}")
        created = CreateStream(this=name, kind=kind)
        if kind == "SINK":
            return self._parse_sink(created)
        listed = self._match(TokenType.L_PAREN, advance=False)
        if listed:
            self._parse_columns(created)
        if self._match(TokenType.ALIAS):
            return self._parse_definition(created)
        if not listed or kind == "VIEW":
            raise self.expected("AS with a query" if kind == "VIEW" else '"(" with the columns, or AS with a query')
        columns = created.args.get("columns") or ()
        untyped = next((c for c in columns if c.args.get("kind") is None and not c.args.get("computed")), None)
        if untyped is not None:
            raise error_on(self.sql, untyped.this, "SYNTAX", f'column "{untyped.name}" has no type')
        self._parse_clauses(created)
        return created

    def _parse_sink(self, created: exp.Expr) -> exp.Expr:
        """``TO function(…) [EVERY t] AS SELECT …``"""
        if not self._match_text_seq("TO"):
            raise self.expected("TO with the place that its rows go to, for example TO parquet('folder')")
        created.set("target", self._parse_connector("sink"))
        if self._match_text_seq("EVERY"):
            created.set("every", self._parse_amount())
        if not self._match(TokenType.ALIAS):
            raise self.expected("AS with a query" if created.args.get("every") else "EVERY, or AS with a query")
        return self._parse_definition(created)

    def _parse_definition(self, created: exp.Expr) -> exp.Expr:
        """``AS SELECT …``, or a table ``AS VALUES (…), (…)`` with or without parentheses."""
        constant = created.args["kind"] == "TABLE"
        wrapped = constant and self._next.text.upper() == "VALUES" and self._match(TokenType.L_PAREN)
        if constant and self._match_text_seq("VALUES"):
            start = self._prev
            rows = self._parse_csv(self._parse_value)
            if wrapped and not self._match(TokenType.R_PAREN):
                raise self.expected('")" after the rows')
            created.set("values", self._at(exp.Values(expressions=rows), start))
            return created
        created.set("query", self._parse_statement())
        for name, clause in self._parse_output_clauses().items():
            created.set(name, clause)
        return created

    def _parse_columns(self, created: exp.Expr) -> None:
        """``(column type [NOT NULL] [PRIMARY KEY], …, column AS expression, PRIMARY KEY (…), WATERMARK FOR …)``"""
        for part in self._parse_wrapped_csv(self._parse_column_or_rule):
            if isinstance(part, exp.ColumnDef):
                created.append("columns", part)
            elif not isinstance(part, exp.PrimaryKey):
                created.append("clauses", part)
            elif created.args.get("key"):
                raise error_on(self.sql, part, "SYNTAX", "there is a second PRIMARY KEY")
            else:
                created.set("key", part)
        for column in created.args.get("columns") or ():
            if column.args.get("key"):
                if created.args.get("key"):
                    raise error_on(self.sql, column, "SYNTAX", "there is a second PRIMARY KEY")
                created.set("key", exp.PrimaryKey(expressions=[column.this.copy()]))

    def _parse_column_or_rule(self) -> exp.Expr | None:
        start = self._curr
        if self._match(TokenType.PRIMARY_KEY):
            names = self._parse_wrapped_csv(lambda: self._parse_name("the name of a column"))
            self._match_text_seq("NOT", "ENFORCED")  # as Flink spells what is true of all keys here
            return self._at(exp.PrimaryKey(expressions=names), start, self._prev)
        if self._curr.text.upper() == "WATERMARK" and self._next.text.upper() == "FOR":
            return self._parse_time_clause()
        return self._parse_column_definition()

    def _parse_column_definition(self) -> exp.Expr:
        name = self._parse_name("the name of a column")
        token = self._curr
        if self._match_set((TokenType.COMMA, TokenType.R_PAREN), advance=False):
            return self._at(exp.ColumnDef(this=name, constraints=[]), self._prev)
        if self._match(TokenType.ALIAS):
            computed = self._parse_disjunction()
            if computed is None:
                raise self.expected(f'what column "{name.name}" is computed as')
            column = exp.ColumnDef(this=name, constraints=[])
            column.args["computed"] = computed
            return self._at(column, token)
        kind = self._parse_type_at(f'the type of column "{name.name}"')
        column = exp.ColumnDef(this=name, kind=kind, constraints=[])
        if self._match_text_seq("NOT", "NULL"):
            column.set("constraints", [exp.Null()])
        elif self._match_text_seq("NULL"):
            pass
        if self._match(TokenType.PRIMARY_KEY):
            self._match_text_seq("NOT", "ENFORCED")
            column.args["key"] = True
        return self._at(column, token)

    def _parse_type_at(self, what: str) -> exp.Expr:
        token = self._curr
        self._read_rows_as_structs()
        kind = self._parse_types(schema=True, allow_identifiers=False)
        if kind is None:
            raise self.expected(what)
        return self._at(kind, token)

    def _read_rows_as_structs(self) -> None:
        """Flink's ROW<name type, …> is STRUCT<…>: in the types that follow, up to an expression."""
        for token, after in pairwise(self._tokens[self._index :]):
            if token.text.upper() in ("AS", "WATERMARK", ";"):
                break
            if token.text.upper() == "ROW" and after.token_type == TokenType.LT:
                token.token_type = TokenType.STRUCT

    def _parse_clauses(self, created: exp.Expr) -> None:
        """SOURCE, STATISTICS and the time clauses, in any order."""
        while self._curr and not self._match(TokenType.SEMICOLON, advance=False):
            token = self._curr
            self._refuse_options(created)
            if self._match_texts(("SOURCE", "FROM")):
                if created.args.get("source"):
                    raise self.error("DUPLICATE_CLAUSE", "there is a second SOURCE", token)
                created.set("source", self._parse_connector())
            elif self._match_text_seq("STATISTICS"):
                if created.args.get("statistics"):
                    raise self.error("DUPLICATE_CLAUSE", "there is a second STATISTICS", token)
                created.set("statistics", self._parse_wrapped_csv(self._parse_statistic))
            elif clause := self._parse_time_clause():
                created.append("clauses", clause)
            else:
                raise self._unknown_clause()

    def _refuse_options(self, created: exp.Expr) -> None:
        """``WITH ('connector' = 'kafka', …)`` of Flink and ksqlDB, ``USING parquet`` of Spark: which SOURCE to write."""
        word, start = self._curr.text.upper(), self._curr
        if word == "USING":
            self._advance()
            format_ = self._curr.text.lower() if self._curr else "parquet"
            hint = source_of({"connector": "filesystem", "format": format_}, created.this.name)
            raise self.error("UNSUPPORTED", "USING is not supported", start, hint=hint.replace("WITH (…)", "USING"))
        if word != "WITH" or self._next.token_type != TokenType.L_PAREN:
            return
        texts, options = [t.text for t in self._tokens[self._index + 2 :]], {}
        for place, text in enumerate(texts):
            if text == "=" and place and place + 1 < len(texts):
                options[texts[place - 1].lower()] = texts[place + 1]
        raise self.error("UNSUPPORTED", "WITH (…) is not supported", start, hint=source_of(options, created.this.name))

    def _parse_statistic(self) -> exp.Expr:
        """``rate => 5000``, ``distinct(column) => 20000``"""
        start = self._curr
        if self._match_set((TokenType.R_PAREN, TokenType.COMMA, TokenType.STRING), advance=False) or not self._curr:
            raise self.expected("what is known, for example rate => 1000")
        self._advance()
        found = Statistic(this=self._at(exp.to_identifier(start.text), start))
        if self._match(TokenType.L_PAREN):
            found.set("column", self._parse_name("the name of a column"))
            self._expect(")")
        if not self._match_set((TokenType.EQ, TokenType.FARROW)):
            raise self.expected("=>")
        number = self._curr
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._match(TokenType.NUMBER):
            raise self.expected("a number")
        found.set("expression", self._at(exp.Literal.number(sign + self._prev.text), number, self._prev))
        return self._at(found, start, self._prev)

    def _parse_connector(self, what: str = "source") -> exp.Expr:
        start = self._curr
        name = self._parse_name(f"the name of a {what}")
        if not self._match(TokenType.L_PAREN, advance=False):
            raise self.expected(f'"(" with the arguments of the {what}')
        arguments = self._parse_wrapped_csv(self._parse_connector_argument, optional=True)
        return self._at(exp.Anonymous(this=name, expressions=arguments), start)

    def _parse_connector_argument(self) -> exp.Expr | None:
        if self._next.token_type in (TokenType.EQ, TokenType.FARROW) and (name := self._parse_id_var()):
            self._advance()
            return self.expression(exp.PropertyEQ(this=name, expression=self._parse_unary()))
        return self._parse_unary()

    # -- functions --------------------------------------------------------------------------------------------------

    def _parse_create_function(self, *, aggregate: bool) -> exp.Expr:
        name = self._parse_name("the name of a function")
        if not self._match(TokenType.L_PAREN, advance=False):
            if self._match(TokenType.ALIAS, advance=False):
                written = f"CREATE FUNCTION {name.name}(s STRING) RETURNS BIGINT AS 'module:name'"
                hint = f"Functions are Python, with their types: {written}."
                raise self.error("SYNTAX", "a function needs its parameters and what it returns", hint=hint)
            raise self.expected('"(" with the parameters')
        parameters = self._parse_wrapped_csv(self._parse_created_parameter, optional=True)
        self._parse_language()
        self._expect("RETURNS")
        returns = self._parse_type_at("the type of the result")
        self._parse_language()
        self._expect("AS")
        if not self._match(TokenType.STRING):
            raise self.expected("the place of the function in quotes, for example 'module:name'")
        path = self._at(exp.Literal.string(self._prev.text), self._prev)
        return CreateFunction(this=name, parameters=parameters, returns=returns, path=path, aggregate=aggregate)

    def _parse_created_parameter(self) -> exp.Expr | None:
        if self._match(TokenType.R_PAREN, advance=False):
            return None
        name = self._parse_name("the name of a parameter")
        kind = self._parse_type_at(f'the type of parameter "{name.name}"')
        return exp.ColumnDef(this=name, kind=kind)

    def _parse_language(self) -> None:
        if self._match_text_seq("LANGUAGE") and not self._match_text_seq("PYTHON"):
            raise self.error("UNSUPPORTED", f'functions cannot be written in "{self._curr.text}"', hint="Use PYTHON.")

    # -- queries ----------------------------------------------------------------------------------------------------

    def _parse_statement(self) -> exp.Expr | None:
        """A query with all that may follow it; also what stands after WITH."""
        query = self._parse_select(nested=True, parse_subquery_alias=False)
        query = self._parse_query_modifiers(self._parse_set_operations(query))
        if query is None:
            raise self.expected("SELECT")
        return query

    def _parse_output_clauses(self) -> dict[str, exp.Expr | None]:
        """``[CONSISTENCY …] [EMIT …]``, in either order."""
        emission = self._parse_emission()
        level = self._parse_consistency()
        return {"consistency": level, "emission": emission or self._parse_emission()}

    def _parse_emission(self) -> exp.Expr | None:
        """``EMIT ON START | ON CLOSE | EVERY t``"""
        start: Token = self._curr
        if not self._match_text_seq("EMIT"):
            return None
        if self._match_text_seq("EVERY"):
            return self._at(EmitClause(this="EVERY", period=self._parse_amount()), start, self._prev)
        on = self._match_text_seq("ON")
        if self._curr and (hint := EMISSIONS.get(self._curr.text.upper())):
            raise self.error(
                "UNSUPPORTED", f"EMIT {'ON ' if on else ''}{self._curr.text.upper()} is not supported", hint=hint
            )
        if not on:
            raise self.expected("ON START, ON CLOSE or EVERY")
        if not self._match_texts(("START", "CLOSE")):
            raise self.expected("START or CLOSE")
        return self._at(EmitClause(this=f"ON {self._prev.text.upper()}"), start, self._prev)

    def _parse_consistency(self) -> exp.Expr | None:
        """``CONSISTENCY STRONG | MIDDLE | WEAK [REMEMBER t] | BLOCK t REMEMBER t``, lengths ``[BY WALL CLOCK]``"""
        start: Token = self._curr
        if not self._match_text_seq("CONSISTENCY"):
            return None
        if self._match_texts(_LEVELS):
            level = ConsistencyClause(this=self._prev.text.upper())
            if level.this != "WEAK" or not self._match_text_seq("REMEMBER"):
                return self._at(level, start, self._prev)
        elif self._match_text_seq("BLOCK"):
            level = ConsistencyClause(this="BLOCK", block=self._parse_reach())
            self._expect("REMEMBER")
        else:
            raise self.expected("STRONG, MIDDLE, WEAK or BLOCK")
        level.set("remember", self._parse_reach())
        if self._match_text_seq("BY"):
            self._expect("WALL")
            self._expect("CLOCK")
            level.set("wall", True)
        return self._at(level, start, self._prev)

    def _parse_reach(self) -> exp.Expr:
        """A length of time, or UNBOUNDED."""
        start = self._curr
        if self._match_text_seq("UNBOUNDED"):
            return self._at(exp.var("UNBOUNDED"), start)
        return self._parse_amount()
