"""When a row of a query shows, in words: for EXPLAIN, and for notices where that may take long."""

from __future__ import annotations

from headwater.algebra import nodes as n
from headwater.algebra.properties import properties
from headwater.language.consistency import STRONG, Consistency
from headwater.language.durations import shown_duration
from headwater.language.emission import Emission, Form
from headwater.language.notices import Notice
from headwater.model.time import INFINITY, MICROSECONDS
from headwater.runtime.lower import lower
from headwater.sinks.base import Output

_LONG = 10 * MICROSECONDS["MINUTE"]
"""Longer windows are told of: people do not wait so long."""
_SHOWN = {
    Form.START: "a row shows when its start is final; its end follows when that is",
    Form.CLOSE: "a row shows when both its ends are final",
}


def when_shown(
    plan: n.Plan, emission: Emission | None, consistency: Consistency | None, *, timestamps: bool = True
) -> str:
    """One or two lines; ``plan``: as it runs. ``timestamps``: is time not counted in plain numbers?"""
    if consistency not in (None, STRONG):
        return f"CONSISTENCY {consistency}: a row shows as soon as it follows from what has come, and may be repaired."
    if emission is not None and emission.period:
        return f"EMIT {emission}: the whole answer shows at each multiple of that, once it is final."
    if not _holds_back(plan):
        return "A row shows with both its ends as soon as these are known: nothing waits for its end."
    if emission is not None:
        return (
            f"EMIT {emission}: {_SHOWN[emission.form]}{_wait(plan, timestamps) if emission.form is Form.CLOSE else ''}."
        )
    return (
        f"In memory and on the terminal (EMIT ON START) {_SHOWN[Form.START]}.\n"
        f"Elsewhere (EMIT ON CLOSE) {_SHOWN[Form.CLOSE]}{_wait(plan, timestamps)}."
    )


def _wait(plan: n.Plan, timestamps: bool) -> str:
    longest = _longest(plan)
    if longest == INFINITY:
        return ", which may never be"
    return f", up to {shown_duration(longest, unit=timestamps)} after it began" if longest > 1 else ""


def notices_of_form(plan: n.Plan, output: Output) -> list[Notice]:
    """What to say when a query starts whose rows may wait for long after they are known."""
    longest = _longest(plan)
    if output.speculative or output.emission.form is not Form.CLOSE or not _holds_back(plan):
        return []
    if longest < (_LONG if output.timestamps else INFINITY):
        return []
    often = "1 MINUTE" if output.timestamps else "60"
    long = "may never have" if longest == INFINITY else f"may not have for {shown_duration(longest, unit=True)}"
    return [
        Notice(
            "WAITS_FOR_ENDS",
            f'rows of "{output.query}" go out when they have an end, which they {long} (EMIT ON CLOSE)',
            f"To get what is known at once, write EMIT ON START; for whole answers now and then, EMIT EVERY {often}.",
        )
    ]


def _holds_back(plan: n.Plan) -> bool:
    """Do rows wait for their ends on close that do not on start?"""
    closed, opened = (lower({"": plan}, opens=opens).nodes for opens in (False, True))
    waiting = [sum(node.operator is not None and node.operator.holds_back for node in its) for its in (closed, opened)]
    return waiting[0] > waiting[1]


def _longest(plan: n.Plan) -> int:
    """For how long a row of the answer may last; INFINITY: for ever."""
    if not properties(plan).ends:
        return INFINITY
    sizes = [node.size for node in plan.walk() if isinstance(node, n.TimeWindow) and not node.unbounded]
    return max(sizes, default=1)
