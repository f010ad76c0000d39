"""What each aggregate of the table means, by definition: of values in canonical order."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from headwater.expressions.aggregates import AGGREGATES
from headwater.model.history import canonical_order

MEANINGS: dict[str, Callable[..., Any]] = {
    "COUNT": len,
    "SUM": sum,
    "AVG": lambda v: sum(v) / len(v),
    "MIN": lambda v: v[0],
    "MAX": lambda v: v[-1],
    "VAR_SAMP": lambda v: statistics.variance(v) if len(v) > 1 else None,
    "VAR_POP": statistics.pvariance,
    "STDDEV_SAMP": lambda v: statistics.stdev(v) if len(v) > 1 else None,
    "STDDEV_POP": statistics.pstdev,
    "MEDIAN": lambda v: statistics.median(map(float, v)),
    "MODE": statistics.mode,
    "ARRAY_AGG": lambda v: v,
    "LISTAGG": lambda v, separator="": separator.join(v),
    "MAX_BY": lambda v: last(v[-1]),
    "MIN_BY": lambda v: last(v[0]),
    "PERCENTILE": lambda v, share, way="ASC": percentile(v, share, way),
    "PERCENTILE_DISC": lambda v, share, way="ASC": value_at(v, share, way),
    "ARRAY_AGG_BY": lambda v, way: [last(pair) for pair in in_order(v, way)],
    "LISTAGG_BY": lambda v, separator, way: joined([last(pair) for pair in in_order(v, way)], separator),
    "BIT_AND": lambda v: reduce(and_, v),
    "BIT_OR": lambda v: reduce(or_, v),
    "BIT_XOR": lambda v: reduce(xor, v),
    "SKEWNESS": lambda v: standard_moment(v, 3),
    "KURTOSIS": lambda v: None if (found := standard_moment(v, 4)) is None else found - 3,
    "COVAR_POP": lambda v: of_pairs(v, lambda y, x: spread(y, x) / len(x)),
    "COVAR_SAMP": lambda v: of_pairs(v, lambda y, x: spread(y, x) / (len(x) - 1) if len(x) > 1 else None),
    "CORR": lambda v: of_pairs(v, lambda y, x: divided(spread(y, x), (spread(x, x) * spread(y, y)) ** 0.5)),
    "REGR_SLOPE": lambda v: of_pairs(v, slope),
    "REGR_INTERCEPT": lambda v: of_pairs(v, intercept),
    "REGR_R2": lambda v: of_pairs(v, determination),
    "REGR_AVGX": lambda v: of_pairs(v, lambda y, x: sum(x) / len(x)),
    "REGR_AVGY": lambda v: of_pairs(v, lambda y, x: sum(y) / len(y)),
    "REGR_SXX": lambda v: of_pairs(v, lambda y, x: spread(x, x)),
    "REGR_SYY": lambda v: of_pairs(v, lambda y, x: spread(y, y)),
    "REGR_SXY": lambda v: of_pairs(v, spread),
}


def fields(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else [found for _, found in value]


def last(value: Any) -> Any:
    return fields(value)[-1]


def in_order(values: list[Any], way: str) -> list[Any]:
    """STRUCTs, which come in canonical order, by their first field."""
    null = [v for v in values if fields(v)[0] is None]
    there = [v for v in values if fields(v)[0] is not None]
    there.sort(key=lambda v: canonical_order((fields(v)[0],)), reverse=way.startswith("DESC"))  # ties stay as they are
    return [*null, *there] if way.endswith("FIRST") else [*there, *null]


def joined(values: list[Any], separator: str) -> str | None:
    there = [v for v in values if v is not None]
    return separator.join(there) if there else None


def percentile(values: list[Any], share: float, way: str = "ASC") -> float:
    ordered = [float(v) for v in (values if way == "ASC" else reversed(values))]
    place = share * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below if below == above else below + (above - below) * (place - math.floor(place))


def value_at(values: list[Any], share: float, way: str = "ASC") -> Any:
    ordered = values if way == "ASC" else values[::-1]
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def standard_moment(values: list[Any], power: int) -> float | None:
    mean, deviation = statistics.fmean(values), statistics.pstdev(map(Fraction, values))
    return sum((v - mean) ** power for v in values) / len(values) / deviation**power if deviation else None


def of_pairs(values: list[Any], function: Callable[..., Any]) -> Any:
    """Of y and x, where both are there; exactly."""
    pairs = [[Fraction(f) for f in fields(v)] for v in values if None not in fields(v)]
    found = function([y for y, _ in pairs], [x for _, x in pairs]) if pairs else None
    return None if found is None else float(found)


def spread(y: list[Fraction], x: list[Fraction]) -> Fraction:
    return sum(a * b for a, b in zip(y, x, strict=True)) - sum(y) * sum(x) / Fraction(len(x))


def divided(number: Any, by: Any) -> Any:
    return number / by if by else None


def slope(y: list[Fraction], x: list[Fraction]) -> Fraction | None:
    return divided(spread(y, x), spread(x, x))


def intercept(y: list[Fraction], x: list[Fraction]) -> Fraction | None:
    found = slope(y, x)
    return None if found is None else sum(y) / Fraction(len(y)) - found * sum(x) / len(x)


def determination(y: list[Fraction], x: list[Fraction]) -> Fraction | None:
    if not spread(y, y):
        return Fraction(1) if spread(x, x) else None
    return divided(spread(y, x) ** 2, spread(x, x) * spread(y, y))


def meant(function: str, values: list[Any], parameters: tuple[object, ...] = ()) -> Any:
    """The aggregate of the values, sorted; of none it is NULL, unless it counts."""
    aggregate = AGGREGATES[function]
    taken = values if aggregate.nulls else [v for v in values if v is not None]
    return MEANINGS[function](taken, *parameters) if taken or aggregate.counts else None
