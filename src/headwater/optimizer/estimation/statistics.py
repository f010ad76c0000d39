"""What is known of the sources, and what is assumed where nothing is known.

A figure is declared (``STATISTICS``), measured while queries ran, read in the footers of files, or guessed, in this order.
Guesses, each to be overridden stream by stream and column by column:

* a stream with a TIMESTAMP column counts microseconds and brings 1,000 rows per second; any other counts plain instants and
  brings one row per instant;
* elements of a chronon stream live for one instant; intervals that the source brings itself last for 60 seconds, or
  for 60 plain instants;
* a column has 1,000 different values (BOOLEAN 2, TINYINT 100, DATE 365), and where it may be NULL, 1 % are;
* a text has 16 bytes, a list four items;
* what never ends has gathered for a day, or for ten million plain instants (the *horizon*).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
from attrs import evolve, field, frozen

from headwater.algebra.nodes import Source
from headwater.model.identity import is_recoverable
from headwater.model.time import MICROSECONDS
from headwater.optimizer.estimation.characteristics import Characteristics

RATE_A_SECOND = 1_000
RATE_AN_INSTANT = 1.0
LIFETIME = 60
DISTINCT = 1_000.0
_DISTINCT_BY_TYPE = {pa.bool_(): 2.0, pa.date32(): 365.0}
NULLS = 0.01
TEXT_BYTES = 16.0
NUMBER_BYTES = 8.0
LIST_ITEMS = 4
HORIZON = 10_000_000.0
TIMED_HORIZON = float(MICROSECONDS["DAY"])


class Figure(NamedTuple):
    """A number that is known, and from where."""

    value: float
    origin: str


DECLARED, MEASURED, FOOTERS = "declared", "measured", "in footers"

Figures = Mapping[str, Figure]
"""Of one stream, by name: ``rate``, ``rows``, ``distinct(column)``, ``nulls(column)``, ``bytes(column)``,
``share(predicate)``. A rate is in rows per instant here."""


@frozen
class ColumnStatistics:
    """One column of a source; None: nothing is known."""

    distinct: float | None = None
    """How many different values it takes, in all the time that elements live."""
    nulls: float | None = None
    """The fraction of rows in which it is NULL."""
    bytes: float | None = None
    """The size of a value, on average."""
    bounded: bool = True
    """Are there never more values? Not so where these are only those that were seen."""


@frozen
class StreamStatistics:
    """One source; None: nothing is known."""

    rate: float | None = None
    """Elements that begin per instant; of a TIMESTAMP stream per microsecond."""
    rows: float | None = None
    """How many rows are valid at one instant, where rows last: in a table."""
    columns: Mapping[str, ColumnStatistics] = field(factory=dict)
    shares: Mapping[str, float] = field(factory=dict)
    """By predicate: the part of the rows for which it is true."""
    figures: Figures = field(factory=dict)
    """What all of this comes from."""

    @classmethod
    def of(cls, figures: Figures) -> StreamStatistics:
        """
        >>> StreamStatistics.of({"distinct(k)": Figure(7.0, MEASURED)}).columns["k"]
        ColumnStatistics(distinct=7.0, nulls=None, bytes=None, bounded=False)
        """
        alone: dict[str, float] = {}
        columns: dict[str, ColumnStatistics] = {}
        shares: dict[str, float] = {}
        for name, (value, origin) in figures.items():
            kind, _, about = name.partition("(")
            about = about[:-1]
            column = columns.get(about, NO_COLUMN)
            match kind:
                case "share":
                    shares[about] = value
                case "distinct":
                    columns[about] = evolve(column, distinct=value, bounded=origin == DECLARED)
                case "nulls":
                    columns[about] = evolve(column, nulls=value)
                case "bytes":
                    columns[about] = evolve(column, bytes=value)
                case _:
                    alone[kind] = value
        return cls(alone.get("rate"), alone.get("rows"), columns, shares, figures)


@frozen
class Statistics:
    """All that is known of the sources, by name.

    >>> known = Statistics({"bid": StreamStatistics(rate=0.01, columns={"auction": ColumnStatistics(distinct=500)})})
    >>> known.of("bid").rate, known.of("auction").rate
    (0.01, None)
    """

    streams: Mapping[str, StreamStatistics] = field(factory=dict)

    def of(self, stream: str) -> StreamStatistics:
        return self.streams.get(stream, _NOTHING)

    def characteristics(self, source: Source) -> tuple[Characteristics, float]:
        """(d, l, g) of the source (22.2.2), and its horizon."""
        known, second = self.of(source.name), _second(source)
        assumed = RATE_A_SECOND / second if second > 1 else RATE_AN_INSTANT
        rate = known.rate if known.rate is not None else assumed
        if source.chronons:
            alive = rate
        else:
            alive = known.rows if known.rows is not None else rate * LIFETIME * second
        return Characteristics(rate, alive), TIMED_HORIZON if second > 1 else HORIZON

    def to_manifest(self) -> dict[str, dict[str, list[float | str]]]:
        """By stream and figure: value and origin."""
        return {name: {n: list(f) for n, f in its.figures.items()} for name, its in self.streams.items() if its.figures}

    @classmethod
    def from_manifest(cls, kept: Mapping[str, Mapping[str, tuple[float, str]]]) -> Statistics:
        return cls({s: StreamStatistics.of({n: Figure(*f) for n, f in its.items()}) for s, its in kept.items()})


_NOTHING, NO_COLUMN = StreamStatistics(), ColumnStatistics()


def _second(source: Source) -> int:
    """How many instants a second has in the time of the source; 1 if its instants have no unit."""
    return MICROSECONDS["SECOND"] if any(pa.types.is_timestamp(t) for t in source.columns.types) else 1


class TypeFacts(NamedTuple):
    """What the type of a column lets expect of its values."""

    distinct: float
    bounded: bool
    """There can be no more values than these."""
    bytes: float
    is_word: bool
    """A key of the type is its own hash."""


@lru_cache(maxsize=1024)
def facts(type_: pa.DataType) -> TypeFacts:
    """The same for narrow and for wide numbers: a column that becomes wider must not make another plan (``wider_plan``)."""
    bounded = pa.types.is_boolean(type_)
    return TypeFacts(_DISTINCT_BY_TYPE.get(type_, DISTINCT), bounded, _width(type_), is_recoverable((type_,)))


def _width(type_: pa.DataType) -> float:
    """Bytes of a value, on average."""
    if pa.types.is_boolean(type_) or pa.types.is_null(type_):
        return 1.0
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return 8.0 + LIST_ITEMS * _width(type_.value_type)
    if pa.types.is_struct(type_):
        return sum(_width(type_.field(i).type) for i in range(type_.num_fields))
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return NUMBER_BYTES
    try:
        return type_.bit_width / 8
    except ValueError:
        return TEXT_BYTES
