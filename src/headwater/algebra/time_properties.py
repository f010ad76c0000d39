"""What is known of the intervals of a plan's elements: their length, their order, whether they end (Krämer table 12.1).

This is about elements, as our operators make them: other elements could mean the same snapshots. Sweeps (aggregates,
DISTINCT, differences) join equal neighbours into longer intervals, so we claim less than the table. What is claimed
holds for the elements that are left when all retractions are settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from headwater.model.time import INFINITY


@frozen(eq=False)
class Times:
    """What is known of the intervals of all elements."""

    lifetime: int | None = None
    """How long each element is valid; INFINITY: none ends; None: it varies or is not known."""
    end_ordered: bool = False
    """Do elements in the order of their starts end in that order too?

    Union, joins, DISTINCT, differences, grouping, coalesce and partitioned windows destroy the order. So does a split into
    pieces of more than one instant, against the table: the last piece may be shorter.
    """
    ends: bool = False
    """Does every element end?"""
    accumulates: bool = False
    """May more and more rows be valid at once, however long the stream runs? (11.2.2)

    A constant relation never ends, but does not grow. A ROWS window keeps a number of rows per partition.
    """
    starts_by: frozenset[str] = frozenset()
    """Columns each of which says when an element begins: the end of its session, of its window."""

    def begin_once(self, columns: Iterable[str]) -> bool:
        """Do all elements that agree in these columns begin at one instant, and never end?"""
        return self.lifetime == INFINITY and not self.starts_by.isdisjoint(columns)

    def settled(self, *, alone: bool) -> Times:
        """What follows from one length of all elements, or from one row at a time: who begins first ends first."""
        ordered = self.lifetime is not None or alone or self.end_ordered
        ends = self.ends if self.lifetime is None else self.lifetime < INFINITY
        return Times(self.lifetime, ordered, ends, not alone and self.accumulates, self.starts_by)


def swept(inputs: Sequence[Times], lifetime: int | None = None, starts_by: frozenset[str] = frozenset()) -> Times:
    """Where neighbours that are equal become one: they end, and grow in number, as those below do."""
    ends, accumulates = all(i.ends for i in inputs), any(i.accumulates for i in inputs)
    return Times(lifetime, ends=ends, accumulates=accumulates, starts_by=starts_by)


def rounded(length: int | None, step: int) -> int | None:
    """The length of an interval both of whose ends go up to the same multiples (Alg. 18, Alg. 24); empty ones are gone."""
    if length is None or length == INFINITY or length % step == 0:
        return length
    return step if length < step else None


@frozen
class RowTimes:
    """The columns that hold a row's first instant, and how long all rows are valid from there (None: it varies)."""

    columns: frozenset[str] = frozenset()
    lifetime: int | None = None


NO_ROW_TIMES = RowTimes()
