"""The aggregates: one row each, with all that language, planner, operators and tests must know of it.

A new one is a row here and, unless it means what another one does, its value: from totals in
``operators/aggregates/measures.VALUES``, or from the values themselves in ``holistic_values.VALUES`` there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from attrs import frozen

from headwater.expressions.nodes import TRUE, Call, Case, Cast, Expression, Literal
from headwater.expressions.types import is_nested, is_numeric

Result = Callable[[pa.DataType], pa.DataType | None]
"""The type of the result for a type of argument; None: not allowed."""
FORMS: dict[str, tuple[int, int]] = {
    "": (1, 1),
    "pair": (2, 2),
    "by": (2, 2),
    "time": (1, 2),
    "rough": (1, 2),
    "share": (2, 2),
    "rough share": (2, 3),
    "list": (1, 2),
}
"""The ways to call an aggregate, and how many arguments each takes at least and at most.

Several arguments become one, a STRUCT (``packed``): so an aggregate has one argument wherever it is not called. pair: two
numbers; by: a value and what it is ordered by; time: a value, ordered by the time of its row; rough: a value, and how
exact the result must be; share: a value and the share of values that are smaller; list: text and what separates it.
"""

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
    form: str = ""
    """How it is called, if not with one argument: a name of ``FORMS``."""
    in_order: str = ""
    """The aggregate of the algebra that it is where ORDER BY says another order than that of its values."""
    always_distinct: bool = False
    """Is every call of it one with DISTINCT?"""
    where: Callable[[Expression], Expression] | None = None
    """Which rows take part, if not all."""
    shows: Callable[[Expression], Expression] | None = None
    """What is shown of it, if not the value as it is."""
    duckdb: str = "{name}({distinct}{x}){filter}"
    """How the oracle says it (``testing/oracle_aggregates``)."""
    samples: tuple[tuple[object, ...], ...] = ((),)
    """Parameters that calls may have, for tests."""
    parameters: tuple[tuple[str, pa.DataType], ...] = ()
    """Names and types of what its arguments are converted to (aggregates of users)."""
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


def _fields(type_: pa.DataType) -> list[pa.DataType]:
    return [type_.field(i).type for i in range(type_.num_fields)] if pa.types.is_struct(type_) else []


def _of_pair(type_: pa.DataType) -> pa.DataType | None:
    fields = _fields(type_)
    return pa.float64() if len(fields) == 2 and all(map(is_numeric, fields)) else None


def _of_last(type_: pa.DataType) -> pa.DataType | None:
    """The type of the value behind those that it is ordered by."""
    fields = _fields(type_)
    return fields[-1] if len(fields) > 1 and not any(map(is_nested, fields[:-1])) else None


def _of_list(type_: pa.DataType) -> pa.DataType | None:
    last = _of_last(type_)
    return None if last is None else pa.list_(last)


def _of_text(type_: pa.DataType) -> pa.DataType | None:
    last = _of_last(type_)
    return None if last is None else _of_strings(last)


def _of_bits(type_: pa.DataType) -> pa.DataType | None:
    return type_ if pa.types.is_integer(type_) else None


def packed(values: Sequence[Expression], *, unless_null: Sequence[Expression] = ()) -> Expression:
    """Several arguments as one STRUCT; NULL where one of these is."""
    names = [f"c{i}" for i in range(len(values))]
    parts = [part for name, value in zip(names, values, strict=True) for part in (Literal(name, pa.string()), value)]
    type_ = pa.struct([(name, value.type) for name, value in zip(names, values, strict=True)])
    whole = Call("named_struct", tuple(parts), type_)
    there = tuple(_is_there(value) for value in unless_null)
    if not there:
        return whole
    return Case(((Call("and", there, pa.bool_()) if len(there) > 1 else there[0], whole),), type_)


def _is_there(value: Expression) -> Expression:
    return Call("not", (Call("is null", (value,), pa.bool_()),), pa.bool_())


def _or_empty(found: Expression) -> Expression:
    missing = Call("array", (Cast(Literal(None, pa.null()), found.type.value_type),), found.type)
    return Call("coalesce", (found, Call("array_compact", (missing,), found.type)), found.type)


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


def _of_two(name: str, duckdb: str = "", *, present: bool = True) -> Aggregate:
    """Of pairs (y, x) of numbers; DuckDB has NaN where Spark, and the standard, have NULL."""
    call = "{name}({distinct}{first}, {last}){filter}"
    return Aggregate(
        name,
        _of_pair,
        "two numbers",
        (name.lower(),),
        totals=PAIR_TOTALS,
        present=present,
        exact=False,
        form="pair",
        duckdb=duckdb.replace("{call}", call) if duckdb else call,
    )


def _by(name: str, order: str) -> Aggregate:
    text = "struct_extract(first({x} ORDER BY {order} %s) FILTER (WHERE {x} IS NOT NULL AND {where}), '{last_name}')"
    takes, names = "a value and one to order it by", (name.lower(),)
    return Aggregate(name, _of_last, takes, names, deaf=True, present=False, form="by", duckdb=text % order)


def _in_time(name: str, means: str) -> Aggregate:
    """FIRST and LAST: by the time of rows, then by the canonical order of the values."""
    names = (name.lower(), f"{name.lower()}_value")
    return Aggregate(name, _of_last, "any value", names, means=means, deaf=True, present=False, form="time")


def _share(
    name: str, result: Result, takes: str, names: tuple[str, ...], function: str, *, exact: bool = True
) -> Aggregate:
    text = f"{function}({{distinct}}{{x}}, {{share}} ORDER BY {{x}}{{way}}){{filter}}"
    samples = ((0.5,), (0.25,), (1.0,), (0.75, "DESC"))
    return Aggregate(name, result, takes, names, form="share", duckdb=text, samples=samples, exact=exact)


def _ordered(name: str, result: Result, takes: str, duckdb: str, parameters: tuple[object, ...] = ()) -> Aggregate:
    """An aggregate whose values come in the order of others: a STRUCT of these and the value."""
    samples = tuple((*parameters, *order) for order in _ORDERS)
    return Aggregate(name, result, takes, duckdb=duckdb, samples=samples, present=False)


def _bits(name: str, *, deaf: bool) -> Aggregate:
    return Aggregate(name, _of_bits, "an integer", (name.lower(),), deaf=deaf)


def _shape(name: str, duckdb: str) -> Aggregate:
    names = (name.lower(),)
    return Aggregate(name, _of_moment, "a number", names, present=False, exact=False, duckdb=duckdb)


_SPREAD = "var_pop({distinct}{x}){filter}"
_MEAN_OF = "list_avg(list_transform(list({distinct}{x}){filter}, lambda e: e::DOUBLE ** %d))"
_SKEWNESS = (
    f"({_MEAN_OF % 3} - 3 * {_MEAN_OF % 1} * {_MEAN_OF % 2} + 2 * {_MEAN_OF % 1} ** 3) / nullif({_SPREAD}, 0) ** 1.5"
)
_KURTOSIS = f"CASE WHEN {_SPREAD} > 0 THEN kurtosis_pop({{distinct}}{{x}}){{filter}} END"
_ORDERS = (("ASC NULLS FIRST",), ("DESC NULLS LAST",), ("DESC NULLS FIRST",))
PAIR_TOTALS = 5
"""Sums, squares and products: what aggregates of two numbers follow from."""


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
        in_order="ARRAY_AGG_BY",
        duckdb="list({distinct}{x} ORDER BY {x} ASC NULLS FIRST){filter}",
    ),
    Aggregate(
        "LISTAGG",
        _of_strings,
        "a STRING",
        ("listagg", "string_agg"),
        form="list",
        in_order="LISTAGG_BY",
        duckdb="string_agg({distinct}{x}, {separator} ORDER BY {x}){filter}",
        samples=((",",), ("",)),
    ),
    Aggregate("MODE", _of_extreme, _ORDERED, ("mode",), duckdb="mode({distinct}{x} ORDER BY {x}){filter}"),
    _by("MAX_BY", "DESC"),
    _by("MIN_BY", "ASC"),
    _in_time("FIRST", "MIN_BY"),
    _in_time("LAST", "MAX_BY"),
    _share(
        "PERCENTILE",
        _of_moment,
        "a number",
        ("percentile", "percentile_cont", "quantile"),
        "quantile_cont",
        exact=False,
    ),
    _share("PERCENTILE_DISC", _of_extreme, _ORDERED, ("percentile_disc",), "quantile_disc"),
    Aggregate(
        "APPROX_PERCENTILE",
        _of_extreme,
        _ORDERED,
        ("approx_percentile", "percentile_approx"),
        means="PERCENTILE_DISC",
        form="rough share",
    ),
    _ordered(
        "ARRAY_AGG_BY",
        _of_list,
        "a value and others to order it by",
        "list_transform({ordered}, lambda e: struct_extract(e, '{last_name}'))",
    ),
    _ordered(
        "LISTAGG_BY",
        _of_text,
        "a STRING and values to order it by",
        "list_aggregate(list_transform({ordered}, lambda e: struct_extract(e, '{last_name}')), 'string_agg', {separator})",
        (",",),
    ),
    _bits("BIT_AND", deaf=True),
    _bits("BIT_OR", deaf=True),
    _bits("BIT_XOR", deaf=False),
    _shape("SKEWNESS", _SKEWNESS),
    _shape("KURTOSIS", _KURTOSIS),
    _of_two("COVAR_POP"),
    _of_two("COVAR_SAMP", present=False),
    _of_two("CORR", "CASE WHEN NOT isnan({call}) THEN {call} END", present=False),
    _of_two("REGR_SLOPE", "CASE WHEN NOT isnan({call}) THEN {call} END", present=False),
    _of_two("REGR_INTERCEPT", present=False),
    _of_two("REGR_R2", present=False),
    _of_two("REGR_AVGX"),
    _of_two("REGR_AVGY"),
    _of_two("REGR_SXX"),
    _of_two("REGR_SYY"),
    _of_two("REGR_SXY"),
    Aggregate(
        "REGR_COUNT", lambda _: pa.int64(), "two numbers", ("regr_count",), means="COUNT", form="pair", counts=True
    ),
    Aggregate("ANY_VALUE", _of_extreme, _ORDERED, ("any_value",), means="MIN"),
    Aggregate("BOOL_AND", _of_condition(pa.bool_()), "a BOOLEAN", ("bool_and", "every"), means="MIN"),
    Aggregate("BOOL_OR", _of_condition(pa.bool_()), "a BOOLEAN", ("bool_or", "some"), means="MAX"),
    Aggregate(
        "COUNT_IF", _of_condition(pa.int64()), "a BOOLEAN", ("count_if",), means="COUNT", of=_only_true, counts=True
    ),
    Aggregate(
        "APPROX_COUNT_DISTINCT",
        lambda _: pa.int64(),
        "any value",
        ("approx_count_distinct",),
        means="COUNT",
        form="rough",
        always_distinct=True,
        counts=True,
    ),
    Aggregate(
        "COLLECT_SET",
        pa.list_,
        "any value",
        ("collect_set",),
        means="ARRAY_AGG",
        nulls=True,
        always_distinct=True,
        where=_is_there,
        shows=_or_empty,
    ),
)

AGGREGATES: dict[str, Aggregate] = {aggregate.name: aggregate for aggregate in _LISTED if not aggregate.means}
"""By name in the algebra; what is not here is an aggregate of a user."""
BY_SQL_NAME: dict[str, Aggregate] = {name: aggregate for aggregate in _LISTED for name in aggregate.names}
