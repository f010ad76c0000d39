"""What the cost model says of one operator: its output, its columns, the state it keeps, the time it takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headwater.optimizer.estimation.characteristics import Characteristics, occupied


class Column(NamedTuple):
    """A column of a stream: how its values are distributed, and what a value takes."""

    distinct: float
    """How many different values there are among the elements that may be alive together."""
    nulls: float = 0.0
    """The fraction that is NULL."""
    bytes: float = 8.0
    bounded: bool = False
    """Is the number of values known to be limited, however long the stream runs?"""
    is_word: bool = True
    """Does a value fit into 64 bits? Such a key is its own hash."""
    varies: float = 0.0
    """The chance that elements that start together differ in it (``Estimate.together``)."""
    present: float | None = None
    """At most so many of the values have an element alive; None: as many as chance lets expect."""

    def varying(self, varies: float) -> Column:
        """The same with another chance to differ; joins ask for it column by column, so it is quick."""
        return Column(self.distinct, self.nulls, self.bytes, self.bounded, self.is_word, varies, self.present)

    def presence(self, alive: float) -> float:
        """The chance that a value has one of so many elements alive."""
        expected = occupied(alive, self.distinct)
        return (expected if self.present is None else min(expected, self.present)) / self.distinct


class State(NamedTuple):
    """What an operator keeps, on average; where it grows for ever, at the horizon."""

    rows: float = 0.0
    bytes: float = 0.0
    grows: bool = False

    def plus(self, *others: State) -> State:
        every = (self, *others)
        return State(sum(s.rows for s in every), sum(s.bytes for s in every), any(s.grows for s in every))


STATELESS = State()


class Estimate(NamedTuple):
    """One node of a plan."""

    stream: Characteristics
    """Of its output."""
    columns: Mapping[str, Column]
    """Of its output, in their order."""
    horizon: float
    """How many instants the query may run: what never ends is judged by it."""
    arrivals: float
    """Elements per instant of the sources below: how often there is something to do."""
    state: State = STATELESS
    cost: float = 0.0
    """Nanoseconds of one core for one instant of application time, without the nodes below."""
    selectivity: float = 1.0
    """Of its predicate, if it has one."""
    churn: float = 1.0
    """Rows of deltas for each element: what is shown open-ended is taken back and closed."""
    together: float = 1.0
    """Elements that start at the same instant for the same reason: one row may meet many others in a join."""
    ahead: float = 0.0
    """Elements that are known before they start: a row of a hopping window waits for the window's end."""
    final: bool = False
    """Is nothing ever taken back?"""
    signed: float | None = None
    """Where rows are signs (17.3): how many elements are alive between their signs."""
    shares: Mapping[str, float] = {}
    """By predicate, of the rows of a source: for which part of them it is known to be true."""

    @property
    def rate(self) -> float:
        """Elements an instant."""
        return self.stream.rate

    @property
    def alive(self) -> float:
        """Elements valid at an instant."""
        return self.stream.alive

    @property
    def changes(self) -> float:
        """Rows of deltas per instant."""
        return self.stream.rate * self.churn

    @property
    def row_bytes(self) -> float:
        return sum([c.bytes for c in self.columns.values()])

    def values(self, names: Iterable[str] | None = None) -> float:
        """How many different rows there are, by some columns or by all, if these are independent (22.3.1)."""
        columns = self.columns
        return math.prod([columns[n].distinct for n in (columns if names is None else names)])

    def present(self, names: Iterable[str]) -> float:
        """How many of the values of these columns have an element alive."""
        columns = [self.columns[n] for n in names]
        most = math.prod([c.distinct if c.present is None else c.present for c in columns])
        return min(occupied(self.stream.alive, math.prod([c.distinct for c in columns])), most)

    def bounded(self, names: Iterable[str] | None = None) -> bool:
        """Is that number limited, however long the stream runs?"""
        columns = self.columns
        return all(columns[n].bounded for n in (columns if names is None else names))
