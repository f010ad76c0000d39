"""The text of an expression in pieces: its tokens, its parentheses, and the conditions that AND connects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from attrs import frozen

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<string>'(?:[^']|'')*')
      | (?P<name>"(?:[^"]|"")*")
      | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=|>=|<>|!=|==|\|\||::|->>?|:=|.)""",
    re.VERBOSE | re.DOTALL,
)
OPENING, CLOSING = "([{", ")]}"


@frozen
class Token:
    """A piece of the text: ``kind`` is string, name (in double quotes), number, word or sign."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """The column (or function, or field) that a token in double quotes means."""
        return self.text[1:-1].replace('""', '"')

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words


@lru_cache(maxsize=4096)
def tokens(sql: str) -> tuple[Token, ...]:
    """The text in pieces, without the white space between them.

    >>> [t.text for t in tokens('"x" >= 1.5')]
    ['"x"', '>=', '1.5']
    """
    found = _TOKEN.finditer(sql)
    return tuple(Token(str(m.lastgroup), m.group(), m.start(), m.end()) for m in found if m.lastgroup != "space")


def closing(listed: Sequence[Token], opening: int) -> int | None:
    """Where the parenthesis that opens there closes."""
    if opening >= len(listed) or listed[opening].text != "(":
        return None
    depth = 0
    for i in range(opening, len(listed)):
        depth += (listed[i].text in OPENING and listed[i].kind == "sign") - (
            listed[i].text in CLOSING and listed[i].kind == "sign"
        )
        if depth == 0:
            return i
    return None


def without_parentheses(sql: str) -> str:
    listed = tokens(sql)
    while listed and listed[0].text == "(" and closing(listed, 0) == len(listed) - 1 and len(listed) > 2:
        sql = sql[listed[1].start : listed[-2].end]
        listed = tokens(sql)
    return sql


@lru_cache(maxsize=4096)
def split_at_and(sql: str) -> tuple[str, ...]:
    """The text at the ANDs outside of parentheses, CASE … END and BETWEEN … AND; whole if an OR stands beside them."""
    listed = tokens(sql)
    depth = between = 0
    cuts: list[Token] = []
    for token in listed:
        if (token.kind == "sign" and token.text in OPENING) or token.is_word("CASE"):
            depth += 1
        elif (token.kind == "sign" and token.text in CLOSING) or token.is_word("END"):
            depth -= 1
        elif depth:
            continue
        elif token.is_word("OR"):
            return (sql,)
        elif token.is_word("BETWEEN"):
            between += 1
        elif token.is_word("AND") and between:
            between -= 1
        elif token.is_word("AND"):
            cuts.append(token)
    starts = [0, *(c.end for c in cuts)]
    ends = [*(c.start for c in cuts), len(sql)]
    return tuple(sql[a:b].strip() for a, b in zip(starts, ends, strict=True))


def conditions(sql: str) -> list[str]:
    """The conditions that AND connects, outermost parentheses taken off.

    >>> conditions('("x" > 1 AND "y" BETWEEN 1 AND 2) AND ("z")')
    ['"x" > 1', '"y" BETWEEN 1 AND 2', '"z"']
    """
    sql = without_parentheses(sql)
    parts = split_at_and(sql)
    return [sql] if len(parts) == 1 else [c for part in parts for c in conditions(part)]
