"""The clauses of ``json_value``, ``json_query`` and ``json_exists`` (SQL:2016, as in Flink).

What is missing or not as it should be is NULL (FALSE, of ``json_exists``), whether that is written or not.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

_HANDLED = {"JSON_VALUE": "NULL", "JSON_QUERY": "NULL", "JSON_EXISTS": "FALSE"}


def json_call(parser: Any, name: str) -> exp.Expr:
    """The call after its ``(``; RETURNING is a TRY_CAST of it."""
    arguments = parser._parse_csv(parser._parse_assignment)
    call = exp.Anonymous(this=name, expressions=arguments)
    result: exp.Expr = call
    if name == "JSON_VALUE" and parser._match_text_seq("RETURNING"):
        type_ = parser._parse_types()
        if type_ is None:
            raise parser.expected("a type after RETURNING")
        result = exp.TryCast(this=call, to=type_)
    if name == "JSON_QUERY":
        _parse_wrapper(parser)
    while not parser._match(TokenType.R_PAREN, advance=False):
        _parse_handling(parser, name)
    return result


def _parse_wrapper(parser: Any) -> None:
    start = parser._curr
    if parser._match_text_seq("WITHOUT"):
        parser._match_text_seq("ARRAY")
        if not parser._match_text_seq("WRAPPER"):
            raise parser.expected("WRAPPER")
    elif start.text.upper() == "WITH":
        hint = "Put the brackets around it: '[' || json_query(…) || ']'."
        raise parser.error("UNSUPPORTED", "WITH WRAPPER is not supported", hint=hint)


def _parse_handling(parser: Any, name: str) -> None:
    """``NULL ON EMPTY``, ``NULL ON ERROR``, which is what happens anyway."""
    start, usual = parser._curr, _HANDLED[name]
    if parser._match_text_seq(usual) and parser._match_text_seq("ON") and parser._match_texts(("EMPTY", "ERROR")):
        return
    if start.text.upper() == "DEFAULT":
        hint = "Write coalesce(json_value(…), default)."
        raise parser.error("UNSUPPORTED", "DEFAULT … ON is not supported", start, hint=hint)
    if start.text.upper() in ("ERROR", "TRUE", "UNKNOWN", "EMPTY"):
        hint = f"It is {usual} then; one row must not stop a stream."
        raise parser.error("UNSUPPORTED", f"{start.text.upper()} … ON is not supported", start, hint=hint)
    raise parser.error("SYNTAX", f'expected ")" after the arguments of {name.lower()}, found "{start.text}"', start)
