"""Which columns hold the time of their row: the instant at which it begins to be valid.

The ORDERED BY column of a stream does, and so does the end of a window of TUMBLE, HOP or SESSION, as long as operators
only pass rows on. Window functions go by such a column, and by no other.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.algebra.nodes import Plan, Source
from headwater.algebra.time_properties import RowTimes

__all__ = ["RowTimes", "TimeColumn", "row_times"]

TimeColumn = Callable[[str], str | None]
"""By the name of a source: the column that orders it."""


def row_times(plan: Plan, time_column: TimeColumn) -> RowTimes:
    """What is known of the columns of a plan."""
    if isinstance(plan, Source):
        column = time_column(plan.name)
        return RowTimes(frozenset([column] if column else ()), 1 if plan.chronons else None)
    return plan.row_times([row_times(child, time_column) for child in plan.inputs])
