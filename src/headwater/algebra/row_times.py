"""Which columns hold the time of their row: the instant at which it begins to be valid.

The ORDERED BY column of a stream does, and so does the end of a window of TUMBLE, HOP or SESSION, as long as operators
only pass rows on. Window functions go by such a column, and by no other.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from headwater.algebra import nodes as n
from headwater.expressions.rewrite import plain_column
from headwater.model.time import INFINITY

TimeColumn = Callable[[str], str | None]
"""By the name of a source: the column that orders it."""


@frozen
class RowTimes:
    """The columns that hold a row's first instant, and how long all rows are valid from there (None: it varies)."""

    columns: frozenset[str] = frozenset()
    lifetime: int | None = None


_UNKNOWN = RowTimes()


def row_times(plan: n.Plan, time_column: TimeColumn) -> RowTimes:
    """What is known of the columns of a plan."""
    below = [row_times(child, time_column) for child in plan.inputs]
    match plan:
        case n.Source(name=name, chronons=chronons):
            column = time_column(name)
            return RowTimes(frozenset([column] if column else ()), 1 if chronons else None)
        case n.Filter() | n.Coalesce():
            return below[0]
        case n.Await():
            return below[0]
        case n.Project(expressions=expressions):
            names = frozenset(name for name, scalar in expressions if plain_column(scalar) in below[0].columns)
            return RowTimes(names, below[0].lifetime)
        case n.Union():
            return _united(plan, *below)
        case n.Join():
            return _joined(plan.kind, *below)
        case n.Istream():  # a row that holds its first instant is new then, and only then
            return RowTimes(below[0].columns, 1)
        case n.HopWindow(end=end, shown=shown):
            return RowTimes(frozenset([end]), shown)
        case n.SessionWindow(end=end):
            return RowTimes(frozenset([end]), INFINITY)
        case n.TimeWindow(slide=1, size=size) if below[0].lifetime == 1:
            return RowTimes(below[0].columns, size)
        case n.RowWindow(slide=1) if below[0].lifetime == 1:
            return RowTimes(below[0].columns)
        case n.Distinct() if below[0].lifetime is not None:
            return below[0]
        case n.Aggregate(keys=keys) if below[0].lifetime is not None:
            # All rows of a group begin and end together, so the group does not change while it is there.
            return RowTimes(below[0].columns.intersection(keys), below[0].lifetime)
        case n.TopK() if below[0].lifetime == 1:
            return below[0]
        case n.SetOperation() if below[0].lifetime == 1 and plan.kind is not n.SetKind.MAX_UNION:
            return below[0]
        case n.Stamp(column=column) if below[0].lifetime == 1:
            return RowTimes(below[0].columns | {column}, 1)
    return _UNKNOWN


def _united(plan: n.Union, left: RowTimes, right: RowTimes) -> RowTimes:
    pairs = zip(plan.left.schema.names, plan.right.schema.names, strict=True)
    both = frozenset(ours for ours, theirs in pairs if ours in left.columns and theirs in right.columns)
    return RowTimes(both, left.lifetime if left.lifetime == right.lifetime else None)


def _joined(kind: n.JoinKind, left: RowTimes, right: RowTimes) -> RowTimes:
    """A pair begins with the later of its two: that is certain only of a row of one instant."""
    columns: frozenset[str] = frozenset()
    if left.lifetime == 1 and kind not in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        columns |= left.columns
    semi = kind in (n.JoinKind.SEMI, n.JoinKind.ANTI)
    if right.lifetime == 1 and not semi and kind in (n.JoinKind.INNER, n.JoinKind.RIGHT):
        columns |= right.columns
    inner = kind is n.JoinKind.INNER and 1 in (left.lifetime, right.lifetime)
    return RowTimes(columns, 1 if columns or inner else None)
