"""Windows that count instants, over rows that last: each of a row's instants counts, and of TIMESTAMPs there are millions.

RANGE w over a row that is valid in [s, e) has at t as many copies of it as it has instants in (t - w, t] (Krämer 8.17 over
a split, 12.3.2). That number grows and falls with every instant, so there are no few intervals that say it. What is meant
is nearly always something else: each row once, or the window inside. So it is refused when it is planned, unless instants
are plain numbers and rows short. ROWS windows are no such problem: what they show changes a few times only.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater.algebra.nodes import Plan, Source
from headwater.language.notices import Notice
from headwater.language.text import error_on

MANY_INSTANTS = 100_000
"""A row that lasts longer is not cut into its instants."""
MOST_ROWS = 10_000
"""A larger ROWS window over rows that last would show as many copies of one row."""

HasUnit = Callable[[str], bool]
"""By the name of a source: does it declare that its time is a TIMESTAMP or a DATE?"""


def check_short(text: str, place: exp.Expr, plan: Plan, has_unit: HasUnit, what: str, *, timed: bool = False) -> None:
    """``what`` counts single instants: the plan's rows must have few of them. ``timed``: is it given with a unit of time?"""
    if may_be_instants(plan) or not (timed or _is_long(plan, has_unit)):
        return
    raise error_on(
        text,
        place,
        "LASTING_ROWS",
        f"{what} cannot be over rows that last",
        detail="A row counts at each of its instants, and a TIMESTAMP counts microseconds.",
        hint="Window the stream inside of the sub-query, or take each row once, when it begins: "
        "FROM ISTREAM((SELECT …)) [RANGE …].",
    )


def repeated(plan: Plan, has_unit: HasUnit) -> list[Notice]:
    """What to know of RSTREAM over rows that last: the same rows again at each instant."""
    if may_be_instants(plan) or not _is_long(plan, has_unit):
        return []
    message = f"RSTREAM repeats a row at each of its instants, and stops at one that has more than {MANY_INSTANTS}"
    return [Notice("LASTING_ROWS", message, "Without RSTREAM it is the same answer, in intervals.")]


def check_rows(text: str, place: exp.Expr, plan: Plan, has_unit: HasUnit, rows: int, slide: int) -> None:
    """A ROWS window over rows that last shows a row at many instants as so many copies of it."""
    if slide > 1:
        check_short(text, place, plan, has_unit, "ROWS with SLIDE")
    elif rows > MOST_ROWS and not may_be_instants(plan):
        raise error_on(
            text,
            place,
            "LASTING_ROWS",
            f"ROWS {rows} cannot be over rows that last",
            detail=f"A row counts at each of its instants; such a window has at most {MOST_ROWS} rows.",
            hint="Take each row once, when it begins: FROM ISTREAM((SELECT …)) [ROWS …].",
        )


def may_be_instants(plan: Plan) -> bool:
    """Are rows valid only at instants of the sources' rows, if those have one each? That is seen when they come."""
    return plan.at_instants([may_be_instants(child) for child in plan.inputs])


def _is_long(plan: Plan, has_unit: HasUnit) -> bool:
    """Are instants microseconds, or are there windows of many?"""
    return any(has_unit(node.name) if isinstance(node, Source) else node.span > MANY_INSTANTS for node in plan.walk())
