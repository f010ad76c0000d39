"""What each aggregate of the table means, by definition: of values in canonical order."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from headwater.expressions.aggregates import AGGREGATES

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
}


def meant(function: str, values: list[Any], parameters: tuple[object, ...] = ()) -> Any:
    """The aggregate of the values, sorted; of none it is NULL, unless it counts."""
    aggregate = AGGREGATES[function]
    taken = values if aggregate.nulls else [v for v in values if v is not None]
    return MEANINGS[function](taken, *parameters) if taken or aggregate.counts else None
