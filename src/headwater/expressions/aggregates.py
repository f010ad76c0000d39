"""The aggregates: one row each, with all that planner, operators and tests must know of it.

A new one is a row here and, unless it follows from what is there, its value: from totals in
``operators/aggregates/measures``, or from the values themselves in ``operators/aggregates/holistic``.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from attrs import frozen

from headwater.expressions.types import is_nested, is_numeric

Result = Callable[[pa.DataType], pa.DataType | None]
"""The type of the result for a type of argument; None: not allowed."""


@frozen
class Aggregate:
    """One aggregate of the algebra."""

    name: str
    result: Result
    takes: str
    """What its argument must be, for messages."""
    names: tuple[str, ...]
    """What SQL calls it."""
    totals: int | None = None
    """From how many running totals its value follows, besides the count; None: it needs the values themselves."""
    sees: str = "values"
    """What it sees of its argument (``operators/sight``): counts, sums, the least or the most of values that go together."""
    partial: str = ""
    """What rows that are put together carry for it: a count, a sum or an extreme; nothing: they cannot be put together."""
    deaf: bool = False
    """Do duplicates make no difference?"""
    present: bool = True
    """Is it never NULL over values that are not?"""
    exact: bool = True
    """Is it computed without rounding that an equivalent plan might do otherwise?"""
    parameter: pa.DataType | None = None
    """What its argument is converted to (aggregates of users)."""
    constants: tuple[object, ...] = ()
    """Parameters that every call has (the import path of an aggregate of a user)."""

    @property
    def additive(self) -> bool:
        """Does its value follow from totals that a retraction can be taken from?"""
        return self.totals is not None


def _of_sum(type_: pa.DataType) -> pa.DataType | None:
    if pa.types.is_integer(type_):
        return pa.int64()
    if pa.types.is_floating(type_):
        return pa.float64()
    return pa.decimal128(38, type_.scale) if pa.types.is_decimal(type_) else None


def _of_moment(type_: pa.DataType) -> pa.DataType | None:
    return pa.float64() if is_numeric(type_) else None


def _of_extreme(type_: pa.DataType) -> pa.DataType | None:
    return None if is_nested(type_) else type_


def _of_strings(type_: pa.DataType) -> pa.DataType | None:
    return pa.string() if pa.types.is_string(type_) else None


def _extreme(name: str, sees: str) -> Aggregate:
    ordered = "a value that can be ordered"
    return Aggregate(name, _of_extreme, ordered, (name.lower(),), sees=sees, partial="extreme", deaf=True)


def _spread(name: str, *also: str) -> Aggregate:
    names = (name.lower(), *also)
    return Aggregate(name, _of_moment, "a number", names, totals=2, present=False, exact=False)


_LISTED = (
    Aggregate("COUNT", lambda _: pa.int64(), "any value", ("count",), totals=0, sees="counts", partial="count"),
    Aggregate("SUM", _of_sum, "a number", ("sum",), totals=1, sees="sums", partial="sum"),
    Aggregate("AVG", _of_moment, "a number", ("avg", "mean"), totals=1, sees="sums", partial="sum"),
    _extreme("MIN", "least"),
    _extreme("MAX", "most"),
    _spread("VAR_SAMP", "var", "variance"),
    _spread("VAR_POP"),
    _spread("STDDEV_SAMP", "std", "stddev"),
    _spread("STDDEV_POP"),
    Aggregate("MEDIAN", _of_moment, "a number", ("median",)),
    Aggregate("ARRAY_AGG", pa.list_, "any value", ("array_agg", "collect_list")),
    Aggregate("LISTAGG", _of_strings, "a STRING", ("listagg", "string_agg")),
)

AGGREGATES: dict[str, Aggregate] = {aggregate.name: aggregate for aggregate in _LISTED}
"""By name in the algebra; what is not here is an aggregate of a user."""
