"""STATISTICS (rate => 5000, distinct(auction) => 20000, …): what users know of a stream before it runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlglot import exp

from headwater.errors import InputError
from headwater.language.catalog import Stream
from headwater.language.text import did_you_mean, error_on

Declared = tuple[tuple[str, float], ...]

_OF_STREAM = ("rate", "rows")
_OF_COLUMN = ("distinct", "nulls", "bytes")
_RANGES = {"rate": (0, math.inf), "rows": (0, math.inf), "nulls": (0, 1), "distinct": (1, math.inf), "bytes": (1, 1e9)}
_ALL = ", ".join([*_OF_STREAM, *(f"{kind}(column)" for kind in _OF_COLUMN)])


class _WrongError(Exception):
    """What cannot be; ``part`` of the figure is the reason: this, column or expression."""

    def __init__(self, part: str, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.part, self.code, self.message, self.hint = part, code, message, hint


def bind_statistics(text: str, nodes: Sequence[exp.Expr], stream: Stream) -> Declared:
    """The figures of a STATISTICS clause, by name."""
    known: dict[str, float] = {}
    for node in nodes:
        column = node.args.get("column")
        try:
            _add(known, node.this.name, None if column is None else column.name, float(node.expression.to_py()), stream)
        except _WrongError as wrong:
            raise error_on(text, node.args[wrong.part], wrong.code, wrong.message, hint=wrong.hint) from None
    return tuple(known.items())


def check_statistics(given: Mapping[str, float], stream: Stream) -> Declared:
    """The same from Python: ``{"rate": 5000, "distinct(auction)": 20000}``."""
    known: dict[str, float] = {}
    for name, value in given.items():
        kind, opened, column = name.partition("(")
        try:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _WrongError("expression", "OUT_OF_RANGE", f"{name} cannot be {value!r}", "It is a number.")
            _add(known, kind.strip(), column.rstrip(") ").strip() if opened else None, float(value), stream)
        except _WrongError as wrong:
            message = f'the statistics of stream "{stream.name}": {wrong.message}'
            raise InputError(wrong.code, message, hint=wrong.hint) from None
    return tuple(known.items())


def _add(known: dict[str, float], kind: str, column: str | None, value: float, stream: Stream) -> None:
    folded = kind.casefold()
    if folded not in _RANGES:
        hint = did_you_mean(folded, _RANGES) or f"There are {_ALL}."
        raise _WrongError("this", "UNKNOWN_STATISTIC", f'there is no statistic "{kind}"', hint)
    if folded in _OF_STREAM and column is not None:
        raise _WrongError("column", "UNKNOWN_STATISTIC", f"{folded} is of the whole stream", f"{folded} => …")
    if folded in _OF_COLUMN and column is None:
        raise _WrongError("this", "UNKNOWN_STATISTIC", f"{folded} is of a column", f"Name it: {folded}(column) => …")
    if folded == "rows" and stream.kind.value == "stream" and getattr(stream.plan, "chronons", False):
        message = f'rows of stream "{stream.name}" are valid for one instant: there is no number of rows at a time'
        raise _WrongError("this", "UNKNOWN_STATISTIC", message, "Say how many come: rate => …")
    field = None
    if column is not None:
        field = next((f for f in stream.schema if f.name.casefold() == column.casefold()), None)
        if field is None:
            hint = did_you_mean(column, stream.schema.names, all_of_them="The columns are")
            raise _WrongError("column", "UNKNOWN_COLUMN", f'column "{column}" does not exist', hint)
    least, most = _RANGES[folded]
    most = 0 if folded == "nulls" and field is not None and not field.nullable else most
    if not (least <= value <= most and math.isfinite(value)):
        hint = f"It is {least} or more." if most == math.inf else f"It is from {least} to {most:,g}."
        hint = "The column is NOT NULL: it is 0." if most == 0 else hint
        raise _WrongError("expression", "OUT_OF_RANGE", f"{folded} cannot be {value:g}", hint)
    name = folded if field is None else f"{folded}({field.name})"
    if name in known:
        raise _WrongError("this", "DUPLICATE_CLAUSE", f"{name} is said twice", "Leave out one of them.")
    known[name] = value
