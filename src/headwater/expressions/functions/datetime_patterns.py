"""Spark's patterns for dates and times, as DuckDB spells them. Only what both do alike is translated."""

from __future__ import annotations

import re

from attrs import frozen

PIECES = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]#{}])|(.)", re.DOTALL)
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_LONG_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"

# letters: (DuckDB's sign, what may be read; None where Spark cannot read it, or reads it otherwise)
_LETTERS: dict[str, tuple[str, str | None]] = {
    "yyyy": ("%Y", r"\d{4}"),
    "yy": ("%y", None),
    "MM": ("%m", r"\d{2}"),
    "M": ("%-m", r"\d{1,2}"),
    "MMM": ("%b", f"(?:{_MONTHS})"),
    "MMMM": ("%B", f"(?:{_LONG_MONTHS})"),
    "dd": ("%d", r"\d{2}"),
    "d": ("%-d", r"\d{1,2}"),
    "DDD": ("%j", None),
    "E": ("%a", None),
    "EE": ("%a", None),
    "EEE": ("%a", None),
    "EEEE": ("%A", None),
    "HH": ("%H", r"\d{2}"),
    "H": ("%-H", r"\d{1,2}"),
    "hh": ("%I", r"\d{2}"),
    "h": ("%-I", r"\d{1,2}"),
    "mm": ("%M", r"\d{2}"),
    "m": ("%-M", r"\d{1,2}"),
    "ss": ("%S", r"\d{2}"),
    "s": ("%-S", r"\d{1,2}"),
    "SSS": ("%g", r"\d{3}"),
    "SSSSSS": ("%f", r"\d{6}"),
    "a": ("%p", "(?:AM|PM)"),
}


@frozen
class DatetimePattern:
    """A pattern for writing, and if ``reading`` is given also for reading text that fully matches it."""

    writing: str
    reading: str | None


def translated(pattern: str) -> DatetimePattern | None:
    """The pattern in DuckDB's words; None if some part of it has no equal there.

    >>> translated("yyyy-MM-dd'T'HH:mm").writing
    '%Y-%m-%dT%H:%M'
    """
    signs: list[str] = []
    matches: list[str | None] = []
    for piece in PIECES.finditer(pattern):
        quoted, letter, sign, stray = piece.groups()
        if stray is not None or (letter is not None and piece.group() not in _LETTERS):
            return None
        if letter is not None:
            spelled, match = _LETTERS[piece.group()]
        else:
            plain = sign if quoted is None else quoted.replace("''", "'") or "'"
            spelled, match = plain.replace("%", "%%"), re.escape(plain)
        signs.append(spelled)
        matches.append(match)
    read = [match for match in matches if match is not None]
    # Without a year the two engines begin at different ones.
    reading = "".join(read) if len(read) == len(matches) and "yyyy" in pattern else None
    return DatetimePattern("".join(signs), reading)


_POSTGRES = {
    "YYYY": "yyyy",
    "YY": "yy",
    "MM": "MM",
    "Month": "MMMM",
    "Mon": "MMM",
    "DDD": "DDD",
    "DD": "dd",
    "Day": "EEEE",
    "Dy": "E",
    "HH24": "HH",
    "HH12": "hh",
    "HH": "hh",
    "MI": "mm",
    "SS": "ss",
    "MS": "SSS",
    "US": "SSSSSS",
    "AM": "a",
    "PM": "a",
}
_POSTGRES_PIECES = re.compile(rf'({"|".join(_POSTGRES)})|"([^"]*)"|([^A-Za-z"])|(.)', re.DOTALL)


def from_postgres(pattern: str) -> str | None:
    """PostgreSQL's pattern in Spark's letters; None if there is something else in it.

    >>> from_postgres('YYYY-MM-DD"T"HH24:MI:SS.MS')
    "yyyy-MM-dd'T'HH:mm:ss.SSS"
    """
    made = ""
    for piece in _POSTGRES_PIECES.finditer(pattern):
        word, quoted, sign, stray = piece.groups()
        if stray is not None:
            return None
        if word is not None:
            made += _POSTGRES[word]
        elif quoted is not None:
            made += "'" + quoted.replace("'", "''") + "'" if quoted else ""
        else:
            made += "''" if sign == "'" else sign
    return made if translated(made) is not None else None
