"""What is known of the intervals of a plan's elements: their length, their order, whether they end (Krämer table 12.1).

This is about elements, as our operators make them: other elements could mean the same snapshots. Sweeps (aggregates,
DISTINCT, differences) join equal neighbours into longer intervals, so we claim less than the table. What is claimed
holds for the elements that are left when all retractions are settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from headwater.algebra import nodes as n
from headwater.algebra.row_properties import Rows
from headwater.expressions.rewrite import plain_column
from headwater.model.time import INFINITY

_INTERVALS_AS_THEY_ARE = (n.Filter, n.Project)
_ONE_ROW: frozenset[str] = frozenset()


@frozen(eq=False)
class Times:
    """What is known of the intervals of all elements."""

    lifetime: int | None = None
    """How long each element is valid; INFINITY: none ends; None: it varies or is not known."""
    end_ordered: bool = False
    """Do elements in the order of their starts end in that order too?"""
    ends: bool = False
    """Does every element end?"""
    accumulates: bool = False
    """May more and more rows be valid at once, however long the stream runs?"""
    starts_by: frozenset[str] = frozenset()
    """Columns each of which says when an element begins: the end of its session, of its window."""

    def begin_once(self, columns: Iterable[str]) -> bool:
        """Do all elements that agree in these columns begin at one instant, and never end?"""
        return self.lifetime == INFINITY and not self.starts_by.isdisjoint(columns)


def times_of(plan: n.Plan, inputs: Sequence[Times], rows: Rows) -> Times:
    """The properties of a node's intervals, from those of its inputs and what is known of its rows."""
    alone = _ONE_ROW in rows.keys
    if isinstance(plan, n.Await):
        return inputs[0]
    starts_by = _starts_by(plan, inputs)
    if isinstance(plan, _INTERVALS_AS_THEY_ARE) and not alone:
        return evolve(inputs[0], starts_by=starts_by)
    lifetime = _lifetime(plan, inputs)
    # One length for all, or one row at a time: then who begins first ends first.
    ordered = lifetime is not None or alone or _keeps_end_order(plan, inputs)
    ends = _ends(plan, inputs) if lifetime is None else lifetime < INFINITY
    return Times(lifetime, ordered, ends, not alone and _accumulates(plan, inputs), starts_by)


def _starts_by(plan: n.Plan, inputs: Sequence[Times]) -> frozenset[str]:
    match plan:
        case n.SessionWindow(end=end):  # valid from the session's end on
            return frozenset({end})
        case n.HopWindow(start=start, end=end):
            return frozenset({start, end})
        case n.Filter() | n.Granularity():  # one instant goes up to one multiple of the granule
            return inputs[0].starts_by
        case n.Project(expressions=expressions):
            return frozenset(name for name, scalar in expressions if plain_column(scalar) in inputs[0].starts_by)
        case n.Distinct() if inputs[0].begin_once(plan.schema.names):
            return inputs[0].starts_by
        case n.Aggregate(keys=keys) if inputs[0].begin_once(keys):
            return inputs[0].starts_by.intersection(keys)
    return frozenset()


def _lifetime(plan: n.Plan, inputs: Sequence[Times]) -> int | None:
    match plan:
        case n.Source(chronons=chronons):
            return 1 if chronons else None
        case n.Constant() | n.SessionWindow():  # [0, infinity) (17.4); [window_end, infinity)
            return INFINITY
        case n.Filter() | n.Project():
            return inputs[0].lifetime
        case n.Distinct() if inputs[0].begin_once(plan.schema.names):
            return INFINITY
        case n.Aggregate(keys=keys) if inputs[0].begin_once(keys):
            return INFINITY
        case n.Union():
            return inputs[0].lifetime if inputs[0].lifetime == inputs[1].lifetime else None
        case n.Join(kind=n.JoinKind.INNER):  # what two intervals share is no longer than either
            return 1 if 1 in (inputs[0].lifetime, inputs[1].lifetime) else None
        case n.Istream() | n.Dstream() | n.ToPositiveNegative() | n.Sample() | n.Stamp():
            return 1
        case n.HopWindow(shown=shown):
            return shown
        case n.TimeWindow(size=size, slide=slide):
            # Over elements that end the window sees chronons; an endless one would fill it for ever.
            return _rounded(size, slide) if inputs[0].ends else None
        case n.Granularity(granule=granule):
            return _rounded(inputs[0].lifetime, granule)
        case n.Split(length=length):
            return _split(inputs[0], length)
    return None


def _rounded(length: int | None, step: int) -> int | None:
    """The length of an interval both of whose ends go up to the same multiples (Alg. 18, Alg. 24); empty ones are gone."""
    if length is None or length == INFINITY or length % step == 0:
        return length
    return step if length < step else None


def _split(below: Times, length: int) -> int | None:
    """Pieces (Alg. 15); what never ends leaves an uncut tail at the end of time."""
    if length == 1 and below.ends:
        return 1
    if below.lifetime is None or below.lifetime == INFINITY:
        return None
    if below.lifetime <= length:
        return below.lifetime
    return length if below.lifetime % length == 0 else None


def _keeps_end_order(plan: n.Plan, inputs: Sequence[Times]) -> bool:
    """Table 12.1, where not already one length is known of all elements.

    Union, joins, DISTINCT, differences, grouping, coalesce and partitioned windows destroy the order. So does a split
    into pieces of more than one instant, against the table: the last piece may be shorter.
    """
    match plan:
        case n.Filter() | n.Project() | n.Granularity():
            return inputs[0].end_ordered
        case n.TimeWindow() | n.RowWindow(partition=()):
            return inputs[0].ends
    return False


def _ends(plan: n.Plan, inputs: Sequence[Times]) -> bool:
    match plan:
        case n.Source() | n.Constant() | n.RowWindow() | n.SessionWindow() | n.FromPositiveNegative():
            return False  # a source that carries intervals may have endless ones
        case n.TimeWindow(unbounded=True):
            return False
        case n.Join(kind=n.JoinKind.INNER | n.JoinKind.SEMI):
            return inputs[0].ends or inputs[1].ends
        case n.Join(kind=n.JoinKind.RIGHT):
            return inputs[1].ends
        case n.Join(kind=n.JoinKind.LEFT | n.JoinKind.ANTI):
            return inputs[0].ends
        case n.SetOperation(kind=n.SetKind.INTERSECT | n.SetKind.INTERSECT_ALL):
            return inputs[0].ends or inputs[1].ends
        case n.SetOperation(kind=n.SetKind.MAX_UNION):
            return inputs[0].ends and inputs[1].ends
        case n.SetOperation():
            return inputs[0].ends
    return all(below.ends for below in inputs)


def _accumulates(plan: n.Plan, inputs: Sequence[Times]) -> bool:
    """Can the number of valid rows grow for ever? (11.2.2)

    A constant relation never ends, but does not grow. A ROWS window keeps a number of rows a partition.
    """
    match plan:
        case n.TimeWindow(unbounded=True) | n.SessionWindow():
            return True
        case n.Source() | n.Constant() | n.RowWindow() | n.FromPositiveNegative():
            return False
        case n.Istream() | n.Dstream() | n.ToPositiveNegative():
            return False
        case n.Join():
            return _join_accumulates(plan.kind, *inputs)
        case n.SetOperation(kind=n.SetKind.INTERSECT | n.SetKind.INTERSECT_ALL):
            return inputs[0].accumulates and inputs[1].accumulates
        case n.SetOperation(kind=n.SetKind.MAX_UNION):
            return inputs[0].accumulates or inputs[1].accumulates
        case n.SetOperation():
            return inputs[0].accumulates
    return any(below.accumulates for below in inputs)


def _join_accumulates(kind: n.JoinKind, left: Times, right: Times) -> bool:
    """Pairs accumulate when one side does and the other does not end; lone rows when their side does."""
    if kind is n.JoinKind.ANTI:
        return left.accumulates
    if kind is n.JoinKind.SEMI:
        return left.accumulates and not right.ends
    pairs = (left.accumulates and not right.ends) or (right.accumulates and not left.ends)
    alone_left = kind in (n.JoinKind.LEFT, n.JoinKind.FULL) and left.accumulates
    return pairs or alone_left or (kind in (n.JoinKind.RIGHT, n.JoinKind.FULL) and right.accumulates)
