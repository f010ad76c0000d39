"""The aggregates: one row each, with all that language, planner, operators and tests must know of it.

A new one is a row here and, unless it means what another one does, its value: from totals in
``operators/aggregates/measures.VALUES``, or from the values themselves in ``operators/aggregates/holistic.VALUES``.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from attrs import frozen

from headwater.expressions.nodes import TRUE, Case, Expression
from headwater.expressions.types import is_nested, is_numeric

Result = Callable[[pa.DataType], pa.DataType | None]
"""The type of the result for a type of argument; None: not allowed."""
_PARTS = {"counts": "COUNT", "sums": "SUM", "least": "MIN", "most": "MAX"}


@frozen
class Aggregate:
    """One aggregate: of the algebra, of the language only (``means``), or of a user."""

    name: str
    result: Result
    takes: str
    """What its argument must be, for messages."""
    names: tuple[str, ...] = ()
    """What SQL calls it."""
    means: str = ""
    """The aggregate of the algebra that it is in other words; nothing: it is one itself."""
    of: Callable[[Expression], Expression] | None = None
    """What that one is computed of, if not of the argument as it is."""
    totals: int | None = None
    """From how many running totals its value follows, besides the count; None: it needs the values themselves."""
    sees: str = "values"
    """What it sees of its argument (``operators/sight``): counts, sums, the least or the most of values that go together."""
    nulls: bool = False
    """Does it take NULLs for values?"""
    deaf: bool = False
    """Do duplicates make no difference?"""
    present: bool = True
    """Is it never NULL over values that are not?"""
    counts: bool = False
    """Is it 0 over no values? Others are NULL."""
    exact: bool = True
    """Is it computed without rounding that an equivalent plan might do otherwise?"""
    separated: bool = False
    """Is it called as LISTAGG is, with a separator and an order?"""
    duckdb: str = "{name}({distinct}{x})"
    """How the oracle says it."""
    parameter: pa.DataType | None = None
    """What its argument is converted to (aggregates of users)."""
    constants: tuple[object, ...] = ()
    """Parameters that every call has (the import path of an aggregate of a user)."""

    @property
    def additive(self) -> bool:
        """Does its value follow from totals that a retraction can be taken from?"""
        return self.totals is not None

    @property
    def is_extreme(self) -> bool:
        """Is it one of the values, which another one cannot change but only replace?"""
        return self.sees in ("least", "most")

    @property
    def part(self) -> str | None:
        """The aggregate of what rows that are put together carry for it; None: they cannot be put together."""
        return _PARTS.get(self.sees)


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


def _only_true(condition: Expression) -> Expression:
    return Case(((condition, TRUE),), pa.bool_())


def _of_condition(result: pa.DataType) -> Result:
    return lambda type_: result if pa.types.is_boolean(type_) else None


_ORDERED = "a value that can be ordered"


def _extreme(name: str, sees: str) -> Aggregate:
    return Aggregate(name, _of_extreme, _ORDERED, (name.lower(),), sees=sees, deaf=True)


def _spread(name: str, *also: str) -> Aggregate:
    names = (name.lower(), *also)
    return Aggregate(name, _of_moment, "a number", names, totals=2, present=False, exact=False)


_LISTED = (
    Aggregate("COUNT", lambda _: pa.int64(), "any value", ("count",), totals=0, sees="counts", counts=True),
    Aggregate("SUM", _of_sum, "a number", ("sum",), totals=1, sees="sums"),
    Aggregate("AVG", _of_moment, "a number", ("avg", "mean"), totals=1, sees="sums"),
    _extreme("MIN", "least"),
    _extreme("MAX", "most"),
    _spread("VAR_SAMP", "var", "variance"),
    _spread("VAR_POP"),
    _spread("STDDEV_SAMP", "std", "stddev"),
    _spread("STDDEV_POP"),
    Aggregate("MEDIAN", _of_moment, "a number", ("median",)),
    Aggregate(
        "ARRAY_AGG",
        pa.list_,
        "any value",
        ("array_agg", "collect_list"),
        nulls=True,
        duckdb="list({distinct}{x} ORDER BY {x} ASC NULLS FIRST)",
    ),
    Aggregate(
        "LISTAGG",
        _of_strings,
        "a STRING",
        ("listagg", "string_agg"),
        separated=True,
        duckdb="string_agg({distinct}{x}, {separator} ORDER BY {x})",
    ),
    Aggregate("MODE", _of_extreme, _ORDERED, ("mode",), duckdb="mode({distinct}{x} ORDER BY {x})"),
    Aggregate("ANY_VALUE", _of_extreme, _ORDERED, ("any_value",), means="MIN"),
    Aggregate("BOOL_AND", _of_condition(pa.bool_()), "a BOOLEAN", ("bool_and", "every"), means="MIN"),
    Aggregate("BOOL_OR", _of_condition(pa.bool_()), "a BOOLEAN", ("bool_or",), means="MAX"),
    Aggregate(
        "COUNT_IF", _of_condition(pa.int64()), "a BOOLEAN", ("count_if",), means="COUNT", of=_only_true, counts=True
    ),
)

AGGREGATES: dict[str, Aggregate] = {aggregate.name: aggregate for aggregate in _LISTED if not aggregate.means}
"""By name in the algebra; what is not here is an aggregate of a user."""
BY_SQL_NAME: dict[str, Aggregate] = {name: aggregate for aggregate in _LISTED for name in aggregate.names}
