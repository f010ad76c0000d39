"""What is known of a plan's output without running it.

Each node says what is known of the rows of its snapshots and of the intervals of its elements. Here both are put together,
with what follows for whole plans: where snapshots are enough to reason with (Krämer 10.4.1), and which operators would keep
elements for ever (11.2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from attrs import frozen

from headwater.algebra import nodes as n
from headwater.algebra.row_properties import AT_MOST_ONE, Rows
from headwater.algebra.time_properties import RowTimes, Times
from headwater.model.schema import Schema


@frozen(eq=False)
class Properties:
    """What holds for every answer that a plan can give."""

    rows: Rows
    times: Times
    reducible: bool
    """Is every operator of the plan snapshot-reducible (Def. 10.5)?

    All standard operators are, windows are not (Def. 10.2, Lemma 10.1); a window of one instant is the identity (10.7).
    Split and coalesce leave every snapshot as it is (12.2, 12.3). Istream, Dstream, their signed forms and granularity
    look at another instant too; a sample is a selection that knows the instant, a stamp such a projection.
    """
    stateless: bool
    """Does the root operator remember nothing?"""
    begins_once: bool
    """Do all rows of a group begin at one instant, and never end? Then nothing need be remembered of it afterwards."""

    @property
    def schema(self) -> Schema:
        """The columns; one that is not nullable is never NULL."""
        return self.rows.schema

    @property
    def keys(self) -> tuple[frozenset[str], ...]:
        """The smallest sets of columns that are unique among the rows at every instant."""
        return self.rows.keys

    @property
    def uniform(self) -> frozenset[str]:
        """Columns in which all rows of a snapshot agree."""
        return self.rows.uniform

    @property
    def constants(self) -> Mapping[str, str]:
        """Columns that have one value at all times, with its SQL text."""
        return self.rows.constants

    @property
    def duplicate_free(self) -> bool:
        """Does no row have a copy at any instant?"""
        return bool(self.rows.keys)

    @property
    def chronon(self) -> bool:
        """Is every element valid for exactly one instant?"""
        return self.times.lifetime == 1

    @property
    def lifetime(self) -> int | None:
        """How long every element is valid; INFINITY: none ends; None: it varies or is not known."""
        return self.times.lifetime

    @property
    def end_ordered(self) -> bool:
        """Do elements in the order of their starts end in that order too?"""
        return self.times.end_ordered

    @property
    def ends(self) -> bool:
        """Does every element end?"""
        return self.times.ends

    @property
    def accumulates(self) -> bool:
        """May more and more rows be valid at once, however long the stream runs?"""
        return self.times.accumulates


@lru_cache(maxsize=4096)
def properties(plan: n.Plan) -> Properties:
    """What is known of the plan's output; of equal plans it is found out once.

    >>> bids = n.Source("bid", Schema.of(auction="BIGINT", price="DOUBLE"), chronons=True)
    >>> known = properties(n.Aggregate(n.TimeWindow(bids, 10), ("auction",), ()))
    >>> known.keys, known.chronon
    ((frozenset({'auction'}),), False)
    """
    below = [properties(child) for child in plan.inputs]
    rows = plan.row_properties([b.rows for b in below])
    inputs = [b.times for b in below]
    times = plan.time_properties(inputs).settled(alone=AT_MOST_ONE in rows.keys)
    reducible = plan.reducible and all(b.reducible for b in below)
    return Properties(rows, times, reducible, plan.is_stateless(inputs), plan.begins_once(inputs))


def has_key(plan: n.Plan, columns: Iterable[str]) -> bool:
    """Do no two rows of any snapshot agree in all of these columns?"""
    given = frozenset(columns)
    return any(key <= given for key in properties(plan).keys)


def nullable(plan: n.Plan, column: str) -> bool:
    """Can the column be NULL?"""
    return properties(plan).schema.field(column).nullable


def is_chronon(plan: n.Plan) -> bool:
    """Is every output element valid for exactly one instant?

    Stricter than table 12.1: our sweeps (aggregates, DISTINCT, differences) join equal neighbours into longer intervals.
    """
    return properties(plan).chronon


# -- boundedness ----------------------------------------------------------------------------------------------------


def unbounded_state(plan: n.Plan) -> list[n.Plan]:
    """The nodes whose state grows for ever, inputs first: what reaches them never expires (11.2.2).

    That comes of UNBOUNDED windows and of sessions that are not windowed again. What a ROWS window keeps is bounded for
    each partition, and a constant relation is kept as it is. Windows and splits count: they cut what never ends into
    instants as long as it lasts.
    """
    return [node for node in plan.walk() if keeps_for_ever(node)]


def keeps_for_ever(node: n.Plan) -> bool:
    """Does the state of this one node grow for ever?"""
    if node.keeper is None or properties(node).begins_once:
        return False
    return any(properties(child).accumulates for child in node.inputs)


TimeColumn = Callable[[str], str | None]
"""By the name of a source: the column that orders it."""


def row_times(plan: n.Plan, time_column: TimeColumn) -> RowTimes:
    """Which columns of a plan hold the time of their row: the instant at which it begins to be valid.

    The ORDERED BY column of a stream does, and so does the end of a window of TUMBLE, HOP or SESSION, as long as operators
    only pass rows on. Window functions go by such a column, and by no other.
    """
    if isinstance(plan, n.Source):
        column = time_column(plan.name)
        return RowTimes(frozenset([column] if column else ()), 1 if plan.chronons else None)
    return plan.row_times([row_times(child, time_column) for child in plan.inputs])
