"""Windows and granularities over what has been windowed, aggregated or made coarser before."""

from __future__ import annotations

from sqlglot import exp

from headwater.algebra import nodes as n
from headwater.language.durations import shown_duration
from headwater.language.notices import Notice
from headwater.language.relations.lasting_rows import may_be_instants
from headwater.language.text import error_on, span
from headwater.model.time import INFINITY

_WINDOWS = ("RANGE", "ROWS", "SESSION", "UNBOUNDED")


def check_not_external(text: str, window: exp.Expr, plan: n.Plan) -> None:
    """The answer of an aggregate is one value that changes, and no stream: it cannot be windowed (Golab 3.4).

    Results of INTERNAL windows, of Istream and of TUMBLE, HOP and SESSION come once each: these can.
    """
    if window.this not in _WINDOWS or may_be_instants(plan):
        return
    while isinstance(plan, n.Project | n.Filter):
        plan = plan.input
    if not isinstance(plan, n.Aggregate) or _is_per_window(plan):
        return
    start, end = span(window) or (0, 0)
    written = text[start:end].strip("[]() ") or f"{window.this} …"
    raise error_on(
        text,
        window,
        "EXTERNAL_AGGREGATE",
        "the answer of an aggregate cannot be windowed again",
        detail="It is one value per group that changes with time, and would count at each instant (Golab 3.4).",
        hint="Let its results be a stream: write INTERNAL in the windows inside, [RANGE … INTERNAL]; or take each result "
        f"once, when it comes: FROM ISTREAM((SELECT …)) [{written}].",
    )


def _is_per_window(aggregate: n.Aggregate) -> bool:
    """Is there one result per window of TUMBLE, HOP or SESSION?"""
    made = (node for node in aggregate.walk() if isinstance(node, n.HopWindow | n.SessionWindow))
    ends = {name for node in made for name in (node.start, node.end)}
    return any(not ends.isdisjoint(names) for names in (_origins(aggregate.input, key) for key in aggregate.keys))


def _origins(plan: n.Plan, name: str) -> frozenset[str]:
    """The columns below that a column is made of, as far as operators only pass rows on."""
    names = frozenset([name])
    while isinstance(plan, n.Project | n.Filter):
        if isinstance(plan, n.Project):
            names = frozenset(c for column, e in plan.expressions if column in names for c in e.columns)
        plan = plan.input
    return names


def granule_notices(plan: n.Plan, below: n.Plan, *, timed: bool) -> list[Notice]:
    """Granularity only gets coarser on its way (Krämer 20.5). ``plan``: what an item became; ``below``: before that."""
    upstream = [node.granule for node in below.walk() if isinstance(node, n.Granularity)]
    if not upstream or plan is below:
        return []
    top: n.Plan = plan
    granule = None
    if isinstance(top, n.Granularity):
        granule, top = top.granule, top.input
    for coarse in upstream:
        shown = shown_duration(coarse, unit=timed)
        if granule is not None and granule % coarse:
            message = f"a granularity of {shown_duration(granule, unit=timed)} over one of {shown} is no multiple of it"
            return [_between(message, shown, f"GRANULARITY({_next(granule, coarse, timed=timed)})")]
        if granule is None and isinstance(top, n.TimeWindow) and top is not below:
            for word, length in (("RANGE", top.size), ("SLIDE", top.slide)):
                if 1 < length < INFINITY and length % coarse:
                    asked = f"{word} {shown_duration(length, unit=timed)}"
                    message = f"{asked} over a granularity of {shown} is no multiple of it"
                    written = f"{word} {_next(length, coarse, timed=timed)}"
                    return [_between(message, shown, f"{written}, or GRANULARITY({shown}) after the window")]
    return []


def _between(message: str, granule: str, written: str) -> Notice:
    hint = f"Between multiples of {granule} the answer is not exact. Write {written}."
    return Notice("GRANULARITY", message, hint)


def _next(length: int, granule: int, *, timed: bool) -> str:
    """The next multiple."""
    return shown_duration(-(-length // granule) * granule, unit=timed)
