"""The values of aggregates that need the values of each snapshot themselves, also those of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.expressions.aggregates import AGGREGATES
from headwater.operators.aggregates.snapshots import Snapshots
from headwater.operators.aggregates.user_aggregates import UserAggregate

_SEPARATOR = ""  # of LISTAGG, as in Spark


def evaluate(
    function: str | UserAggregate, type_: pa.DataType, snapshots: Snapshots, parameters: tuple[object, ...]
) -> pa.Array:
    """The aggregate of each segment."""
    if isinstance(function, UserAggregate):
        values = snapshots.without_nulls
        if function.inverse is not None:
            return function.column(lambda: function.follow(*values.ranges(), values.count)).cast(type_)
        lists = values.lists(pa.large_list(values.type))
        return function.column(lambda: function.evaluate(lists)).cast(type_)
    values = snapshots if AGGREGATES[function].nulls else snapshots.without_nulls
    return VALUES[function](values, type_, parameters).cast(type_)


def _joined(values: Snapshots, type_: pa.DataType, parameters: tuple[object, ...]) -> pa.Array:
    separator = str(parameters[0]) if parameters else _SEPARATOR
    lists = values.lists(pa.large_list(pa.large_string()))
    return pc.call_function("binary_join", [lists, pa.scalar(separator, pa.large_string())])


def _joined_in_order(values: Snapshots, type_: pa.DataType, parameters: tuple[object, ...]) -> pa.Array:
    separator, *ways = parameters
    return _joined(values.ordered(_ways(ways)).last_fields(nulls=False), type_, (separator,))


def _ways(parameters: Sequence[object]) -> list[str]:
    return [str(way) for way in parameters]


def _at_share(take: Callable[..., pa.Array], parameters: tuple[object, ...]) -> pa.Array:
    share, *way = parameters
    return take(float(str(share)), descending=way == ["DESC"])


def _skewness(values: Snapshots, type_: pa.DataType, parameters: tuple[object, ...]) -> pa.Array:
    (second, third, _), none = values.moments()
    flat = second == 0
    return pa.array(third / np.where(flat, 1.0, second) ** 1.5, mask=none | flat)


def _kurtosis(values: Snapshots, type_: pa.DataType, parameters: tuple[object, ...]) -> pa.Array:
    """That of a normal distribution is 0."""
    (second, _, fourth), none = values.moments()
    flat = second == 0
    return pa.array(fourth / np.where(flat, 1.0, second) ** 2 - 3.0, mask=none | flat)


VALUES: dict[str, Callable[[Snapshots, pa.DataType, tuple[object, ...]], pa.Array]] = {
    "MIN": lambda values, type_, parameters: values.extremes(largest=False),
    "MAX": lambda values, type_, parameters: values.extremes(largest=True),
    "MEDIAN": lambda values, type_, parameters: values.medians(),
    "MODE": lambda values, type_, parameters: values.modes(),
    "MAX_BY": lambda values, type_, parameters: values.extremes(largest=True).flatten()[-1],
    "MIN_BY": lambda values, type_, parameters: values.extremes(largest=False).flatten()[-1],
    "PERCENTILE": lambda values, type_, parameters: _at_share(values.percentiles, parameters),
    "PERCENTILE_DISC": lambda values, type_, parameters: _at_share(values.values_at, parameters),
    "ARRAY_AGG_BY": lambda values, type_, parameters: values.ordered(_ways(parameters)).last_fields().lists(type_),
    "LISTAGG_BY": _joined_in_order,
    "BIT_AND": lambda values, type_, parameters: values.bits(np.bitwise_and),
    "BIT_OR": lambda values, type_, parameters: values.bits(np.bitwise_or),
    "BIT_XOR": lambda values, type_, parameters: values.bits(np.bitwise_xor, odd=True),
    "SKEWNESS": _skewness,
    "KURTOSIS": _kurtosis,
    "ARRAY_AGG": lambda values, type_, parameters: values.lists(type_),
    "LISTAGG": _joined,
}
"""The aggregates of the values themselves."""
