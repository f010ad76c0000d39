"""What a query makes of its answer, by its text: INTERNAL windows and restore (Golab 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen
from query_windows import instants
from sqlglot import exp

from headwater.language.parsing.syntax import StreamWindow

_RESTORED = ("ISTREAM-RESTORE", "RSTREAM-RESTORE")
_ONE_ANSWER = ("group", "having", "limit", "offset", "qualify")
_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "MEDIAN")


@frozen
class Output:
    """INTERNAL, ISTREAM-RESTORE or RSTREAM-RESTORE of the query without these words."""

    kind: str
    period: int | None
    """A query that is one answer of all rows gives one at each refresh."""
    every_result: bool
    """Do equal results of rows that arrived at other instants differ?"""


def output_of(query: exp.Expr) -> Output | None:
    """What a SELECT is beside its answer; the words for that are taken out of it."""
    if not isinstance(query, exp.Select):
        return None
    (only, *others) = query.expressions
    restored = isinstance(only, exp.Anonymous) and not others and only.name.upper() in _RESTORED
    windows = list(query.find_all(StreamWindow)) if restored else list(_own_windows(query))
    if not restored and not query.args.pop("internal", False) and not any(w.args.get("internal") for w in windows):
        return None
    if restored:
        query.set("expressions", only.expressions)
    slides = [w.args["slide"] for w in windows if w.this == "RANGE" and w.args.get("slide") is not None]
    period = instants(slides[0]) if slides else None
    for window in windows:
        window.set("internal", False)
        if restored:
            window.set("slide", None)
    whole = _is_one_answer(query)
    kind = only.name.upper() if restored else "INTERNAL"
    return Output(kind, period if whole or restored else None, not whole and not query.args.get("distinct"))


def _own_windows(query: exp.Select) -> Iterator[StreamWindow]:
    for window in query.find_all(StreamWindow):
        if window.find_ancestor(exp.Select) is query:
            yield window


def _is_one_answer(query: exp.Select) -> bool:
    calls = (c for e in query.expressions for c in e.find_all(exp.Anonymous))
    return any(query.args.get(c) for c in _ONE_ANSWER) or any(c.name.upper() in _AGGREGATES for c in calls)
