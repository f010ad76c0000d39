"""Times as text: DuckDB's STRFTIME in Spark's words."""

from __future__ import annotations

import re

import pyarrow as pa

from headwater.expressions.spark_values import NotNativeError, literal

_PIECES = re.compile(r"%-?[A-Za-z%]|[^%]+|%", re.DOTALL)
_LETTERS = {
    "%m": "MM",
    "%-m": "M",
    "%b": "MMM",
    "%B": "MMMM",
    "%d": "dd",
    "%-d": "d",
    "%j": "DDD",
    "%a": "E",
    "%A": "EEEE",
    "%H": "HH",
    "%-H": "H",
    "%I": "hh",
    "%-I": "h",
    "%M": "mm",
    "%-M": "m",
    "%S": "ss",
    "%-S": "s",
    "%g": "SSS",
    "%f": "SSSSSS",
    "%p": "a",
}
_YEAR = (
    "CASE WHEN year({0}) BETWEEN 0 AND 9999 THEN lpad(CAST(year({0}) AS STRING), 4, '0') "
    "ELSE CAST(year({0}) AS STRING) END"
)
"""Spark's own yyyy counts years before 1 the other way round, and puts a plus sign before those after 9999."""


def formatted(moment: str, pattern: str) -> str:
    """The text of a TIMESTAMP, by DuckDB's pattern.

    >>> formatted("`t`", "%H:%M")
    "date_format(`t`, 'HH:mm')"
    """
    parts: list[str] = []
    letters = ""

    def finish() -> None:
        nonlocal letters
        if letters:
            parts.append(f"date_format({moment}, {literal(letters, pa.string())})")
        letters = ""

    for piece in _PIECES.findall(pattern):
        if piece == "%Y":
            finish()
            parts.append(_YEAR.format(moment))
        elif piece in _LETTERS:
            letters += _LETTERS[piece]
        elif piece.startswith("%") and piece != "%%":
            raise NotNativeError(f"STRFTIME with {piece}")
        else:
            letters += f"'{piece.replace('%%', '%').replace(chr(39), chr(39) * 2)}'"
    finish()
    if not parts:
        raise NotNativeError("STRFTIME without a pattern")
    return parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"
