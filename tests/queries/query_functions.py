"""Functions of a user's, called by the queries in ``functions.test``: Arrow columns in, one Arrow column out."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

RATE = 0.5


def dollars_to_euros(amount: pa.Array) -> pa.Array:
    return pc.multiply(amount, RATE)


def one_more(x: pa.Array) -> pa.Array:
    return pc.add(x, 1)


def label(who: pa.Array, item: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(who, pc.cast(item, pa.string()), ":")


class Spread:
    """The largest value minus the smallest one."""

    def init(self, x: float) -> tuple[float, float]:
        return x, x

    def merge(self, state: tuple[float, float], x: float) -> tuple[float, float]:
        return min(state[0], x), max(state[1], x)

    def eval(self, state: tuple[float, float]) -> float:
        return state[1] - state[0]


def fails(x: pa.Array) -> pa.Array:
    raise ValueError(f"{x.type} is not to my taste")


def words(x: pa.Array) -> pa.Array:
    return pa.array(["word"] * len(x))


def too_few(x: pa.Array) -> pa.Array:
    return x.slice(1)


class Vwap:
    """The price by volume: of two arguments, and values can be taken out again."""

    def init(self, price: float, volume: float) -> tuple[float, float]:
        return price * volume, volume

    def merge(self, state: tuple[float, float], price: float, volume: float) -> tuple[float, float]:
        return state[0] + price * volume, state[1] + volume

    def inverse(self, state: tuple[float, float], price: float, volume: float) -> tuple[float, float]:
        return state[0] - price * volume, state[1] - volume

    def eval(self, state: tuple[float, float]) -> float:
        return state[0] / state[1]


def vwap_of(prices: pa.Array, volumes: pa.Array) -> pa.Scalar:
    return pc.divide(pc.sum(pc.multiply(prices, volumes)), pc.sum(volumes))
