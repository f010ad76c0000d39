"""Functions that queries.sql calls: a scalar one gets whole Arrow columns, an aggregate the values of a snapshot."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

EUROS_PER_DOLLAR = 0.92


def dol_to_euro(dollars: pa.Array) -> pa.Array:
    """Krämer's DolToEuro (Example 7.2): an array of dollars in, one of euros out."""
    return pc.round(pc.multiply(dollars, EUROS_PER_DOLLAR), 2)


class GeometricMean:
    """The n-th root of a product: a state of (sum of logarithms, number of values), new values in and old ones out."""

    def init(self, x: float) -> tuple[float, int]:
        return math.log(x), 1

    def merge(self, state: tuple[float, int], x: float) -> tuple[float, int]:
        return state[0] + math.log(x), state[1] + 1

    def inverse(self, state: tuple[float, int], x: float) -> tuple[float, int]:
        return state[0] - math.log(x), state[1] - 1

    def eval(self, state: tuple[float, int]) -> float:
        return round(math.exp(state[0] / state[1]), 6)


def spread(prices: pa.Array) -> float:
    """The largest value less the smallest: a function of all values at once."""
    least_and_most = pc.min_max(prices)
    return least_and_most["max"].as_py() - least_and_most["min"].as_py()
