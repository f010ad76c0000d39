"""The functions that SQL may call: nothing else is passed through to an engine.

The scalar ones are listed in ``scalar_functions``, those whose text depends on constants in ``special_functions``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from attrs import field, frozen

from headwater.language.functions.scalar_functions import ALL, MANY, Texts
from headwater.language.types import is_nested, is_numeric


def arity(least: int, most: int) -> str:
    """How a message says how many arguments there may be: ``2 arguments``."""
    if least == most:
        return "no arguments" if least == 0 else f"{least} argument{'' if least == 1 else 's'}"
    if most == MANY:
        return f"at least {least} argument{'' if least == 1 else 's'}"
    return f"{least} to {most} arguments"


@frozen
class ScalarFunction:
    """One scalar function: how many arguments it takes, and its DuckDB text for each number and kind of them."""

    name: str
    least: int
    most: int
    texts: Texts = field(eq=False)

    def text(self, arguments: Sequence[pa.DataType]) -> str:
        """The text for such arguments: alternatives are separated by ``;``, the last serves for all others."""
        texts = self.texts
        if isinstance(texts, dict):
            kinds = _kinds(arguments[0])
            texts = next((texts[kind] for kind in kinds if kind in texts), texts[""])
        alternatives = texts.split(" ; ")
        return alternatives[min(len(arguments) - self.least, len(alternatives) - 1)]

    @property
    def arity(self) -> str:
        return arity(self.least, self.most)


def _kinds(type_: pa.DataType) -> tuple[str, ...]:
    """The kinds that a type belongs to, the nearest first."""
    if pa.types.is_float32(type_):
        return "float", "real"
    tests = {
        "text": pa.types.is_string,
        "blob": pa.types.is_binary,
        "list": pa.types.is_list,
        "real": pa.types.is_float64,
        "decimal": pa.types.is_decimal,
        "bigint": pa.types.is_int64,
    }
    return tuple(kind for kind, test in tests.items() if test(type_))


SCALARS: dict[str, ScalarFunction] = {
    name: ScalarFunction(name, least, most, texts) for name, (least, most, texts) in ALL.items()
}
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
    """What its argument is converted to (aggregates of the user's)."""
    constants: tuple[object, ...] = ()
    """Parameters that every call has (the import path of an aggregate of the user's)."""


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
