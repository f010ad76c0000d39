"""Aggregates of two numbers (y, x), from their count, sums, squares and products: covariance, correlation, regression.

As in Spark and in SQL: of rows in which both are there. Where x does not vary there is no line through the points, and
without a line no slope; where one of the two does not vary there is no correlation: NULL.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from headwater.kernels import sweep_totals as kernel
from headwater.model.arrays import BoolArray, Float64Array
from headwater.operators.aggregates.totals import TotalsAt, as_array, with_special

# Where the words of each total begin: the count is the first (``measures._OF_PAIRS``).
_SUM_Y, _SUM_X, _SQUARES_Y, _SQUARES_X, _PRODUCTS = 1, 4, 7, 11, 15
_SPECIAL, _HUGE = 2, 3  # the last word of a sum, of squares and of products
_NOTHING = 2.0**-146  # less than what one changed digit of a value among billions makes of n * S2
_NAN = np.nan


class _Pairs:
    """The totals as numbers; spreads are n times what REGR_SXX and its like are."""

    def __init__(self, words: TotalsAt) -> None:
        self._words = words
        self.none: BoolArray = words[0] <= 0
        self.count = np.where(self.none, 1, words[0]).astype(np.float64)

    def _float(self, word: int) -> Float64Array:
        return self._words[word].view(np.float64)

    def mean(self, sum_: int) -> Float64Array:
        return with_special(self._float(sum_) / self.count, self._words, sum_ + _SPECIAL)

    def spread(self, sum_: int, squares: int) -> Float64Array:
        """n * S2 - S1 * S1, exactly 0 where all values are the same."""
        values = [self._float(w) for w in (sum_, sum_ + 1, squares, squares + 1, squares + 2)]
        left = kernel.squared_spreads(self.count, *values)
        left = np.where(left <= self.count * values[2] * _NOTHING, 0.0, left)
        return self._unless_special(left, squares + _HUGE, sum_ + _SPECIAL)

    def products(self) -> Float64Array:
        """n * Sxy - Sx * Sy."""
        words = (_SUM_X, _SUM_X + 1, _SUM_Y, _SUM_Y + 1, _PRODUCTS, _PRODUCTS + 1, _PRODUCTS + 2)
        left = kernel.product_spreads(self.count, *(self._float(w) for w in words))
        return self._unless_special(left, _PRODUCTS + _HUGE)

    def _unless_special(self, left: Float64Array, huge: int, special: int | None = None) -> Float64Array:
        """NaN where there are NaN, infinities, or values whose products no float holds."""
        if not self._words.any(huge):
            return left
        left = np.where(self._words[huge] != 0, np.inf if special is not None else _NAN, left)
        return left if special is None else np.where(self._words[special] & ~kernel.SCALED, _NAN, left)

    @property
    def spread_x(self) -> Float64Array:
        return self.spread(_SUM_X, _SQUARES_X)

    @property
    def spread_y(self) -> Float64Array:
        return self.spread(_SUM_Y, _SQUARES_Y)

    @property
    def slope(self) -> Float64Array:
        """NaN where x does not vary, besides where it is none anyway."""
        return _divided(self.products(), self.spread_x)

    def flat(self, *spreads: Float64Array) -> BoolArray:
        """Where there is nothing, or one of the two does not vary."""
        return np.logical_or.reduce([self.none, *(spread == 0 for spread in spreads)])


def _divided(numbers: Float64Array, by: Float64Array) -> Float64Array:
    with np.errstate(invalid="ignore"):
        return numbers / np.where(by == 0, _NAN, by)


def _correlation(pairs: _Pairs) -> tuple[Float64Array, BoolArray]:
    x, y = pairs.spread_x, pairs.spread_y
    found = _divided(_divided(pairs.products(), np.sqrt(x)), np.sqrt(y))
    return np.clip(found, -1.0, 1.0), pairs.flat(x, y)


def _determination(pairs: _Pairs) -> tuple[Float64Array, BoolArray]:
    """A y that does not vary is determined by any x that does."""
    x, y = pairs.spread_x, pairs.spread_y
    correlation, _ = _correlation(pairs)
    return np.where(y == 0, 1.0, correlation * correlation), pairs.flat(x)


def _sample(pairs: _Pairs) -> tuple[Float64Array, BoolArray]:
    several = np.where(pairs.count > 1, pairs.count - 1, 1.0)
    return pairs.products() / (pairs.count * several), pairs.none | (pairs.count < 2)


def _intercept(pairs: _Pairs) -> tuple[Float64Array, BoolArray]:
    with np.errstate(invalid="ignore"):
        return pairs.mean(_SUM_Y) - pairs.slope * pairs.mean(_SUM_X), pairs.flat(pairs.spread_x)


_VALUES: dict[str, Callable[[_Pairs], tuple[Float64Array, BoolArray]]] = {
    "COVAR_POP": lambda p: (p.products() / (p.count * p.count), p.none),
    "COVAR_SAMP": _sample,
    "CORR": _correlation,
    "REGR_SLOPE": lambda p: (p.slope, p.flat(p.spread_x)),
    "REGR_INTERCEPT": _intercept,
    "REGR_R2": _determination,
    "REGR_AVGX": lambda p: (p.mean(_SUM_X), p.none),
    "REGR_AVGY": lambda p: (p.mean(_SUM_Y), p.none),
    "REGR_SXX": lambda p: (p.spread_x / p.count, p.none),
    "REGR_SYY": lambda p: (p.spread_y / p.count, p.none),
    "REGR_SXY": lambda p: (p.products() / p.count, p.none),
}
"""Of each the values, and where they are NULL."""


def _value(name: str) -> Callable[[pa.DataType, pa.DataType, int, TotalsAt], pa.Array]:
    def value(type_: pa.DataType, argument: pa.DataType, kind: int, words: TotalsAt) -> pa.Array:
        return as_array(*_VALUES[name](_Pairs(words)), type_)

    return value


PAIR_VALUES = {name: _value(name) for name in _VALUES}
"""As in ``measures.VALUES``."""
