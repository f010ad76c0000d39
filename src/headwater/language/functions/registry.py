"""The functions that SQL may call: nothing else is passed through to an engine.

The scalar ones are rows of ``headwater.expressions.functions``; ``special_functions`` says how some are read.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from attrs import frozen

from headwater.expressions.functions.record import Function
from headwater.expressions.functions.table import NAMED, SYNONYMS
from headwater.expressions.types import is_nested, is_numeric
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS

_UNDER_ALL_NAMES = {**NAMED, **{synonym: NAMED[name] for synonym, name in SYNONYMS.items()}}
SCALARS: dict[str, Function] = {n: f for n, f in _UNDER_ALL_NAMES.items() if n not in SPECIAL_FUNCTIONS}
"""The functions of plain values."""
UNREPEATABLE = frozenset(
    {
        *(
            "curdate",
            "current_date",
            "current_time",
            "current_timestamp",
            "localtime",
            "localtimestamp",
            "now",
            "sysdate",
        ),
        *("rand", "randn", "random", "randstr", "shuffle", "uniform", "uuid", "monotonically_increasing_id"),
        *("current_catalog", "current_database", "current_schema", "current_timezone", "current_user", "session_user"),
        *("input_file_name", "spark_partition_id", "user", "version"),
    }
)
"""Functions that other systems have and this one refuses: the same input must always give the same answer."""

SPECIAL_FORMS = ("cast", "try_cast", "extract", "position", "substring", "trim")
"""Calls with a grammar of their own."""


# -- aggregates -------------------------------------------------------------------------------------------------------

Result = Callable[[pa.DataType], pa.DataType | None]


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


@frozen
class AggregateFunction:
    """One aggregate: its name in the algebra, and the type of its result for a type of argument (None: not allowed)."""

    name: str
    result: Result
    takes: str
    """What its argument must be, for messages."""
    parameter: pa.DataType | None = None
    """What its argument is converted to (aggregates of users)."""
    constants: tuple[object, ...] = ()
    """Parameters that every call has (the import path of a user's aggregate)."""


AGGREGATES: dict[str, AggregateFunction] = {
    "count": AggregateFunction("COUNT", lambda _: pa.int64(), "any value"),
    "sum": AggregateFunction("SUM", _of_sum, "a number"),
    **dict.fromkeys(("avg", "mean"), AggregateFunction("AVG", _of_moment, "a number")),
    "min": AggregateFunction("MIN", _of_extreme, "a value that can be ordered"),
    "max": AggregateFunction("MAX", _of_extreme, "a value that can be ordered"),
    **dict.fromkeys(("var", "variance", "var_samp"), AggregateFunction("VAR_SAMP", _of_moment, "a number")),
    "var_pop": AggregateFunction("VAR_POP", _of_moment, "a number"),
    **dict.fromkeys(("std", "stddev", "stddev_samp"), AggregateFunction("STDDEV_SAMP", _of_moment, "a number")),
    "stddev_pop": AggregateFunction("STDDEV_POP", _of_moment, "a number"),
    "median": AggregateFunction("MEDIAN", _of_moment, "a number"),
    **dict.fromkeys(("array_agg", "collect_list"), AggregateFunction("ARRAY_AGG", pa.list_, "any value")),
    **dict.fromkeys(("listagg", "string_agg"), AggregateFunction("LISTAGG", _of_strings, "a STRING")),
}


def known_functions() -> list[str]:
    """All names, for suggestions."""
    return sorted({*SCALARS, *AGGREGATES, *SPECIAL_FORMS})
