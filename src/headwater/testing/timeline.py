"""A tiny notation for streams in tests: ``"a 1-8, b 3-9, a 5-, a 5->7, ~6"``.

a 3-8      insert a over [3, 8)              a/1 3-8    a row of two columns
a 3-       insert a over [3, infinity)       a*2 3-8    two copies
a @3       insert a over [3, 4)              null 3-8   NULL, also as one of several columns
a 3-8>5    adjust: it now ends at 5          a 3-8>3    ... which removes it
~6         a stable point at 6; ~ alone: at infinity
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.errors import InputError
from headwater.model.delta import Delta
from headwater.model.element import Adjust, Element, Insert, Row, Stable
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY

LETTERS = Schema.of(x="STRING")
"""The schema of most timelines: one column of strings."""

_ITEM = re.compile(
    r"""^(?P<row>[^\s*]+)(?:\*(?P<copies>\d+))?\s+
         (?:@(?P<at>-?\d+)|(?P<start>-?\d+)-(?P<end>-?\d+)?(?P<adjust>>(?P<new>-?\d+)?)?)$""",
    re.VERBOSE,
)
_STABLE = re.compile(r"^~\s*(?P<at>-?\d+)?$")


def timeline(text: str, schema: Schema = LETTERS, *, scale: int = 1) -> list[Element]:
    """The elements that the text describes, in order; its instants count so many each (``a @3`` is valid for a single one).

    >>> timeline("a 1-8, a 1-8>5, ~")
    [Insert(row=('a',), start=1, end=8), Adjust(row=('a',), start=1, end=8, new_end=5), Stable(at=9223372036854775807)]
    """
    elements: list[Element] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        elements.extend(_parse(item, schema, scale))
    return elements


def changes(elements: Iterable[Element], schema: Schema = LETTERS) -> Delta:
    """The inserts and adjusts as one delta, without the stable points."""
    return Delta.from_elements(schema, [e for e in elements if not isinstance(e, Stable)])


def history(text: str, schema: Schema = LETTERS) -> History:
    """The history of the stream that the text describes."""
    return History.of(schema, [changes(timeline(text, schema), schema)])


def render_timeline(elements: Iterable[Element], *, scale: int = 1) -> str:
    """The elements in the notation of this module, as far as it goes: for messages."""
    return ", ".join(_render(element, scale) for element in elements)


def _parse(item: str, schema: Schema, scale: int) -> list[Element]:
    if stable := _STABLE.match(item):
        return [Stable(_instant(stable["at"], scale))]
    match = _ITEM.match(item)
    if match is None:
        raise InputError(
            "TIMELINE_SYNTAX",
            f'cannot read "{item}" in a timeline',
            hint='Write "a 3-8", "a 3-", "a @3", "a*2 3-8", "a 3-8>5" or "~6".',
        )
    row = _row(match["row"], schema)
    if match["at"] is not None:
        start = int(match["at"]) * scale
        end = start + 1
    else:
        start, end = int(match["start"]) * scale, _instant(match["end"], scale)
    if match["adjust"]:
        element: Element = Adjust(row, start, end, _instant(match["new"], scale))
    else:
        element = Insert(row, start, end)
    return [element] * int(match["copies"] or 1)


def _instant(text: str | None, scale: int) -> int:
    return INFINITY if text is None else int(text) * scale


def _row(text: str, schema: Schema) -> Row:
    words = text.split("/")
    if len(words) != len(schema):
        raise InputError("TIMELINE_SYNTAX", f'"{text}" has {len(words)} columns, the stream has {len(schema)}')
    return tuple(_value(word, field.type) for word, field in zip(words, schema, strict=True))


def _value(word: str, type_: pa.DataType) -> Any:
    if word == "null":
        return None
    if pa.types.is_integer(type_):
        return int(word)
    if pa.types.is_floating(type_):
        return float(word)
    if pa.types.is_boolean(type_):
        return word == "true"
    if pa.types.is_decimal(type_):
        return Decimal(word)
    if pa.types.is_date(type_):
        return date.fromisoformat(word)
    if pa.types.is_timestamp(type_):
        return datetime.fromisoformat(word)
    return word


def _render(element: Element, scale: int) -> str:
    if isinstance(element, Stable):
        return f"~{_shown(element.at, scale)}"
    row = "/".join("null" if v is None else str(v) for v in element.row)
    if isinstance(element, Insert) and scale > 1 and element.end == element.start + 1:
        return f"{row} @{_shown(element.start, scale)}"
    interval = f"{_shown(element.start, scale)}-{_shown(element.end, scale)}"
    return f"{row} {interval}" if isinstance(element, Insert) else f"{row} {interval}>{_shown(element.new_end, scale)}"


def _shown(instant: int, scale: int) -> str:
    """``3``, or between two of them ``3+1``; nothing for the end of time."""
    if instant == INFINITY:
        return ""
    whole, rest = divmod(instant, scale)
    return f"{whole}+{rest}" if rest else str(whole)
