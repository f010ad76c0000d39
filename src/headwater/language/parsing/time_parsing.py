"""The time clauses of CREATE STREAM: how far rows may be out of order, late or silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokens import TokenType

from headwater.errors import SqlError
from headwater.language.parsing.foreign_statements import CLAUSES
from headwater.language.parsing.query_parsing import QueryParser
from headwater.language.parsing.syntax import Duration, TimeClause
from headwater.language.text import closest

_NO_UNITS = frozenset(
    {
        *(
            "AFTER",
            "ALONG",
            "AND",
            "AS",
            "BY",
            "IN",
            "MINIMUM",
            "REMEMBER",
            "SLIDE",
            "SOURCE",
            "FROM",
            "ROWS",
            "CONSISTENCY",
            "EMIT",
            "FORMAT",
        ),
        *("CLOCK", "DISORDER", "HEARTBEAT", "IDLE", "LAGS", "LATE", "LATENCY", "ORDERED", "PARTITION", "SENT", "SKEW"),
        *("STATISTICS", "STRICTLY", "TIMEOUT", "TIMESTAMP", "TOKENS", "TRANSITIVE", "VERBOSE", "WATERMARK"),
    }
)
"""Words that may follow a length of time without being its unit."""

_LATE_POLICIES = ("DROP", "ADJUST", "DIVERT INTO", "ERROR")
_ESTIMATOR_OPTIONS = (
    "WINDOW",
    "ALPHA",
    "MARGIN",
    "HORIZON",
    "INITIAL",
    "WARMUP",
    "SILENCE",
    "LATE BUDGET",
    "WALL CLOCK",
)


class TimeClauseParser(QueryParser):
    """One method a first word; each gives a ``TimeClause`` whose place is the whole clause."""

    def _parse_time_clause(self) -> exp.Expr | None:
        """The clause that begins here; None if none does."""
        parse = self._CLAUSES.get(self._curr.text.upper()) if self._curr else None
        if parse is None:
            return None
        start = self._curr
        return self._at(parse(self), start, self._prev)

    def _unknown_clause(self) -> SqlError:
        word = self._curr.text
        near = closest(word.upper(), [*self._CLAUSES, "SOURCE", "STATISTICS"], cutoff=0.7)
        hint = CLAUSES.get(word.upper()) or (f"Did you mean {near}?" if near else "")
        return self.error("SYNTAX", f'unknown clause "{word}"', hint=hint)

    # -- words and amounts ------------------------------------------------------------------------------------------

    def _expect(self, *words: str) -> None:
        for i, word in enumerate(words):
            if not self._match_text_seq(word):
                raise self.expected(" ".join(words[i:]))

    def _parse_amount(self) -> exp.Expr:
        """``10``, ``10 SECONDS``, ``INTERVAL '10' SECONDS``, ``INTERVAL '10 seconds'``; the binder judges the sign."""
        interval = self._match(TokenType.INTERVAL)
        start = self._curr
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._match_set((TokenType.NUMBER, TokenType.STRING) if interval else (TokenType.NUMBER,)):
            raise self.expected("a length of time")
        number, _, inside = self._prev.text.strip().partition(" ")
        unit = None
        if inside:
            unit = self._at(exp.var(inside.strip()), self._prev)
        elif self._curr.text.upper() not in _NO_UNITS and self._match_set(self.ID_VAR_TOKENS):
            unit = self._at(exp.var(self._prev.text), self._prev)
        return self._at(Duration(this=sign + number, unit=unit), start, self._prev)

    def _parse_bounds_between(self) -> tuple[exp.Expr, exp.Expr]:
        """``BETWEEN 20 AND 500 MILLISECONDS``: the first takes the unit of the second if it has none."""
        self._expect("BETWEEN")
        low = self._parse_amount()
        self._expect("AND")
        high = self._parse_amount()
        if low.args.get("unit") is None and high.args.get("unit") is not None:
            low.set("unit", high.args["unit"].copy())
        return low, high

    def _parse_after(self) -> exp.Expr | None:
        return self._parse_amount() if self._match_text_seq("AFTER") else None

    def _parse_plain_number(self, what: str) -> exp.Expr:
        """A number without a unit, with its sign."""
        start = self._curr
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._match(TokenType.NUMBER):
            raise self.expected(what)
        return self._at(Duration(this=sign + self._prev.text), start, self._prev)

    # -- clauses ----------------------------------------------------------------------------------------------------

    def _clause(self, kind: str, /, **parts: Any) -> exp.Expr:
        return TimeClause(this=kind, **{key: part for key, part in parts.items() if part is not None})

    def _parse_ordered_clause(self) -> exp.Expr:
        self._advance()
        if self._match_text_seq("TRANSPORT"):
            return self._clause("ORDERED TRANSPORT")
        if not self._match_text_seq("BY"):
            raise self.expected("BY or TRANSPORT")
        return self._parse_time_column()

    def _parse_time_column(self) -> exp.Expr:
        """``column``; or what the time is computed as: ``timestamp_millis(ts) [AS name]``, ``(a + b)``"""
        if TokenType.L_PAREN not in (self._curr.token_type, self._next.token_type):
            return self._clause("ORDERED BY", column=self._parse_name("the name of the time column"))
        computed = self._parse_unary()
        name = self._parse_name("the name of the time column") if self._match(TokenType.ALIAS) else None
        return self._clause("ORDERED BY", computed=computed, column=name)

    def _parse_timestamp_by(self) -> exp.Expr:
        self._advance()
        self._expect("BY")
        return self._parse_time_column()

    def _parse_strictly(self) -> exp.Expr:
        self._advance()
        self._expect("INCREASING")
        return self._clause("STRICTLY INCREASING")

    def _parse_in_order(self) -> exp.Expr:
        self._advance()
        self._expect("ORDER")
        return self._clause("IN ORDER")

    def _parse_disorder(self) -> exp.Expr:
        self._advance()
        return self._clause("DISORDER", amount=self._parse_amount(), after=self._parse_after())

    def _parse_rows_per_timestamp(self) -> exp.Expr:
        self._advance()
        self._expect("PER", "TIMESTAMP", "AT", "MOST")
        return self._clause("ROWS PER TIMESTAMP", amount=self._parse_plain_number("a number of rows"))

    def _parse_latency(self) -> exp.Expr:
        self._advance()
        if self._match_text_seq("BETWEEN", advance=False):
            low, high = self._parse_bounds_between()
            return self._clause("LATENCY", low=low, high=high)
        return self._clause("LATENCY", high=self._parse_amount())

    def _parse_sent_at(self) -> exp.Expr:
        self._advance()
        self._expect("AT")
        return self._clause("SENT AT", column=self._parse_name("the name of the column with the time of sending"))

    def _parse_lags(self) -> exp.Expr:
        self._advance()
        other = self._parse_name("the name of a stream")
        self._expect("BY", "AT", "MOST")
        return self._clause("LAGS", other=other, amount=self._parse_amount(), after=self._parse_after())

    def _parse_skew(self) -> exp.Expr:
        """``SKEW BOUND TO other d`` is the same as LAGS; ``SKEW BETWEEN a AND b d`` holds in both directions."""
        self._advance()
        if self._match_text_seq("BOUND"):
            self._expect("TO")
            other = self._parse_name("the name of a stream")
            return self._clause("LAGS", other=other, amount=self._parse_amount(), after=self._parse_after())
        if not self._match_text_seq("BETWEEN"):
            raise self.expected("BOUND TO or BETWEEN")
        stream = self._parse_name("the name of a stream")
        self._expect("AND")
        other = self._parse_name("the name of a stream")
        amount = self._parse_amount()
        return self._clause("SKEW", stream=stream, other=other, amount=amount, after=self._parse_after())

    def _parse_partition_skew(self) -> exp.Expr:
        self._advance()
        self._expect("SKEW")
        return self._clause("PARTITION SKEW", amount=self._parse_amount(), after=self._parse_after())

    def _parse_timeout(self) -> exp.Expr:
        self._advance()
        return self._clause("TIMEOUT", amount=self._parse_amount())

    def _parse_idle(self) -> exp.Expr:
        self._advance()
        self._expect("AFTER")
        return self._clause("IDLE AFTER", amount=self._parse_amount())

    def _parse_late_rows(self) -> exp.Expr:
        self._advance()
        self._expect("ROWS")
        if self._match_texts(("DROP", "ADJUST", "ERROR")):
            return self._clause("LATE ROWS", name=exp.var(self._prev.text.upper()))
        if self._match_text_seq("DIVERT"):
            self._expect("INTO")
            return self._clause("LATE ROWS", name=exp.var("DIVERT"), other=self._parse_name("the name of a stream"))
        raise self.expected(f"{', '.join(_LATE_POLICIES[:-1])} or {_LATE_POLICIES[-1]}")

    def _parse_clock(self) -> exp.Expr:
        self._advance()
        self._expect("DEVIATION")
        amount, rate = self._parse_amount(), None
        if self._match_text_seq("MINIMUM"):
            self._expect("RATE")
            rate = self._parse_plain_number("a rate")
        self._expect("IN", "DOMAIN")
        name = self._parse_name("the name of a time domain")
        return self._clause("CLOCK DEVIATION", amount=amount, rate=rate, name=name)

    def _parse_along(self) -> exp.Expr:
        self._advance()
        self._expect("WALL", "CLOCK")
        within = self._parse_amount() if self._match_text_seq("WITHIN") else None
        return self._clause("ALONG WALL CLOCK", amount=within)

    def _parse_tokens(self) -> exp.Expr:
        self._advance()
        self._expect("FROM")
        name = self._parse_name("the name of a counter")
        self._expect("TAKING")
        low, high = self._parse_bounds_between()
        return self._clause("TOKENS", name=name, low=low, high=high)

    def _parse_transitive(self) -> exp.Expr:
        self._advance()
        return self._clause("TRANSITIVE")

    def _parse_watermark(self) -> exp.Expr:
        """``WATERMARK FOR ts AS ts [- d]`` (Flink), ``WATERMARK ts DELAY OF d`` (Spark)."""
        self._advance()
        if not self._match_text_seq("FOR"):
            column = self._parse_name("the name of the time column")
            self._expect("DELAY", "OF")
            return self._clause("WATERMARK", column=column, amount=self._parse_amount())
        column = self._parse_name("the name of the time column")
        self._expect("AS")
        other = self._parse_name("the name of the time column")
        if other.name.casefold() != column.name.casefold():
            hint = f"Write: WATERMARK FOR {column.name} AS {column.name} - INTERVAL 10 SECONDS."
            message = f'a watermark for column "{column.name}" must follow from that column'
            raise self.error("UNSUPPORTED", message, self._prev, hint=hint)
        amount = self._parse_amount() if self._match(TokenType.DASH) else None
        return self._clause("WATERMARK", column=column, amount=amount)

    # -- heartbeats -------------------------------------------------------------------------------------------------

    def _parse_heartbeat(self) -> exp.Expr:
        self._advance()
        if self._match_text_seq("FROM", "SOURCE"):
            wrapped = self._match(TokenType.L_PAREN)
            column = self._parse_name("the name of the column with heartbeats")
            if wrapped and not self._match(TokenType.R_PAREN):
                raise self.expected('")" after the column')
            return self._clause("HEARTBEAT FROM SOURCE", column=column)
        if not self._match_text_seq("ESTIMATED"):
            raise self.expected("ESTIMATED or FROM SOURCE")
        options: list[exp.Expr] = []
        if self._match(TokenType.L_PAREN, advance=False):
            options = self._parse_wrapped_csv(self._parse_estimator_option, optional=True)
        return self._clause("HEARTBEAT ESTIMATED", options=options)

    def _parse_estimator_option(self) -> exp.Expr:
        start = self._curr
        if self._match_text_seq("LATE", "BUDGET"):
            name, value = "LATE BUDGET", self._parse_plain_number("a share, for example 0.1 %")
            percent = self._match(TokenType.MOD) or self._match_text_seq("PERCENT")
            return self._at(self._clause(name, amount=value, name=exp.var("%") if percent else None), start, self._prev)
        if self._match_text_seq("WALL", "CLOCK"):
            return self._at(self._clause("WALL CLOCK"), start, self._prev)
        if not self._match_texts(_ESTIMATOR_OPTIONS):
            near = closest(self._curr.text.upper(), _ESTIMATOR_OPTIONS, cutoff=0.7) if self._curr else None
            hint = f"Did you mean {near}?" if near else f"There are {', '.join(_ESTIMATOR_OPTIONS)}."
            raise self.error("SYNTAX", f'HEARTBEAT ESTIMATED has no option "{self._curr.text}"', hint=hint)
        name = self._prev.text.upper()
        if name in ("ALPHA", "MARGIN"):
            clause = self._clause(name, amount=self._parse_plain_number("a number"))
        else:
            amount = self._parse_amount()
            rows = self._match_text_seq("ROWS")
            clause = self._clause(name, amount=amount, name=exp.var("ROWS") if rows else None)
        return self._at(clause, start, self._prev)

    _CLAUSES: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        "ORDERED": _parse_ordered_clause,
        "TIMESTAMP": _parse_timestamp_by,
        "STRICTLY": _parse_strictly,
        "IN": _parse_in_order,
        "DISORDER": _parse_disorder,
        "ROWS": _parse_rows_per_timestamp,
        "LATENCY": _parse_latency,
        "SENT": _parse_sent_at,
        "LAGS": _parse_lags,
        "SKEW": _parse_skew,
        "PARTITION": _parse_partition_skew,
        "TIMEOUT": _parse_timeout,
        "IDLE": _parse_idle,
        "LATE": _parse_late_rows,
        "CLOCK": _parse_clock,
        "ALONG": _parse_along,
        "TOKENS": _parse_tokens,
        "TRANSITIVE": _parse_transitive,
        "WATERMARK": _parse_watermark,
        "HEARTBEAT": _parse_heartbeat,
    }
