"""From the text of a script to its statements."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from headwater.errors import SqlError
from headwater.language.parsing.dialect import Headwater
from headwater.language.text import error_at

_DIALECT = Headwater()
_RECURSION = 10_000
_PIECES = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|/\*|.""", re.DOTALL)
_OPENINGS = {"'": "string", '"': "string", "`": "name", "/*": "comment"}
_UNHELPFUL = re.compile(r"Invalid expression|<Token|<class|Failed to parse")


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for long chains of operators: syntax trees are walked by recursion, some twenty calls per level."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual, _RECURSION))
    try:
        yield
    except RecursionError:
        raise SqlError(
            "TOO_DEEP", "the script is nested too deeply", hint="Long chains of OR can be written with IN (…)."
        ) from None
    finally:
        sys.setrecursionlimit(usual)


def parse_script(text: str) -> list[exp.Expr]:
    """The statements of a script, empty ones left out; a ``SqlError`` where the text is not SQL."""
    try:
        parsed = _DIALECT.parse(text)
    except TokenError:
        raise _not_tokens(text) from None
    except ParseError as problem:
        raise _not_sql(text, problem) from None
    return [statement for statement in parsed if statement is not None]


def _not_sql(text: str, problem: ParseError) -> SqlError:
    first = problem.errors[0] if problem.errors else {}
    found, line, last = first.get("highlight") or "", first.get("line") or 0, first.get("col") or 0
    description = first.get("description") or ""
    detail = "" if _UNHELPFUL.search(description) else f"{description}."
    message = f'unexpected "{found}"' if found else "unexpected end of the statement"
    if description.startswith("Required keyword") and found:
        message, detail = f'something is missing after "{found}"', ""
    column = max(last - len(found) + 1, 1)
    return SqlError("SYNTAX", message, detail=detail, text=text, line=line, column=column, length=len(found))


def _not_tokens(text: str) -> SqlError:
    """What the tokenizer stumbles over is a quote or comment that is never closed."""
    for piece in _PIECES.finditer(text):
        if piece.group() in _OPENINGS:
            what = _OPENINGS[piece.group()]
            return error_at(text, piece.start(), piece.end(), "SYNTAX", f"the {what} that begins here is not closed")
    return error_at(text, 0, 1, "SYNTAX", "the text cannot be read")
