"""Units of lengths: of TIMESTAMPs they are seconds and hours, of plain numbers they are numbers.

``RANGE 5`` over TIMESTAMPs would be five microseconds, ``RANGE 1 MINUTE`` over plain numbers sixty million of whatever they
count: neither is meant. What has no time column has no unit that is known, and goes with both: in a replay its instants
are what the recording says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from sqlglot import exp

from headwater.algebra.nodes import Plan
from headwater.language.catalog import Derived, Stream
from headwater.language.changes import CHANGED
from headwater.language.durations import microseconds
from headwater.language.parsing.syntax import Duration
from headwater.language.text import error_on
from headwater.model.time import MICROSECONDS

Lookup = Callable[[str], Stream | Derived | None]
"""What the catalog has under the name of a source."""
_COUNTED = {"seconds": MICROSECONDS["SECOND"], "milliseconds": MICROSECONDS["MILLISECOND"], "microseconds": 1}


def timed_streams(plan: Plan, lookup: Lookup) -> tuple[Stream, ...]:
    """The streams below whose unit of time is known; late rows have that of the stream whose rows they are."""
    found = [entry for name in plan.streams if isinstance(entry := lookup(name), Stream)]
    owners = [lookup(stream.late_rows_of) if stream.late_rows_of is not None else stream for stream in found]
    return tuple(dict.fromkeys(s for s in owners if isinstance(s, Stream) and s.time is not None))


def check_unit(text: str, node: exp.Expr, what: str, streams: Sequence[Stream], written: str = "{}") -> None:
    """``what`` is a length of the time of these streams; ``written``: the text in which it stands."""
    if streams and _unlike(streams) is None:  # of unlike ones the query is refused
        check_length(text, node, what, _time_of(streams[0]), written, timestamps=streams[0].has_unit)


def check_length(text: str, node: exp.Expr, what: str, time: str, written: str = "{}", *, timestamps: bool) -> None:
    """``what`` is a length of a time, by its name, that is TIMESTAMPs or plain numbers. Nothing needs no unit."""
    unit, number = node.args.get("unit"), str(node.this)
    if (unit is not None) == timestamps or number.strip("+-0.") == "":
        return
    if unit is None:
        example = written.format(f"{number} SECOND{'' if number == '1' else 'S'}")
        raise error_on(
            text,
            node,
            "TIME_UNIT",
            f"{what} needs a unit: {time} has TIMESTAMPs",
            detail="Without one it would be microseconds.",
            hint=f"For example: {example}.",
        )
    raise error_on(
        text,
        unit,
        "TIME_UNIT",
        f"{what} takes no unit: {time} counts time in plain numbers",
        detail="Nothing says how many of them are a second.",
        hint=_as_numbers(number, microseconds(text, unit, code="WINDOW_SIZE"), written),
    )


def check_consistency(text: str, node: exp.Expr | None, plan: Plan, lookup: Lookup) -> None:
    """The lengths of a CONSISTENCY clause are of the time of the streams, unless they are of the wall clock."""
    if node is None or node.args.get("wall"):
        return
    for word in ("block", "remember"):
        if isinstance(length := node.args.get(word), Duration):
            check_unit(text, length, word.upper(), timed_streams(plan, lookup), f"{word.upper()} {{}}")


def check_one_domain(text: str, node: exp.Expr, plan: Plan, lookup: Lookup) -> None:
    """TIMESTAMPs and plain numbers have no instant in common that means anything, so no query reads both."""
    pair = _unlike(timed_streams(plan, lookup))
    if pair is None:
        return
    stamped, numbered = pair
    raise error_on(
        text,
        node,
        "TIME_UNIT",
        f'"{stamped.name}" has TIMESTAMPs, and "{numbered.name}" counts time in plain numbers',
        detail="The two have no instant in common that means anything, so nothing would come of it.",
        hint=f'Declare "{numbered.name}" with TIMESTAMPs, too: ORDERED BY timestamp_millis({numbered.time}), if these are '
        "milliseconds since 1970, or timestamp_seconds.",
    )


def _unlike(streams: Sequence[Stream]) -> tuple[Stream, Stream] | None:
    """One with TIMESTAMPs and one with plain numbers, if there are both."""
    stamped = next((s for s in streams if s.has_unit), None)
    numbered = next((s for s in streams if not s.has_unit), None)
    return None if stamped is None or numbered is None else (stamped, numbered)


def _time_of(stream: Stream) -> str:
    return f'stream "{stream.name}"' if stream.time == CHANGED else f'column "{stream.time}" of "{stream.name}"'


def _as_numbers(number: str, unit: int, written: str) -> str:
    """The length in what the numbers may count."""
    length, plain = Decimal(number) * unit, written.strip("'")
    said = [
        f"{plain.format(int(length / size))} if they count {name}"
        for name, size in _COUNTED.items()
        if length % size == 0
    ]
    return f"Write {', '.join(said)}." if said else "Write a plain number."
