"""Running totals at the places where something is shown, and what values are made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.kernels import sweep_totals as kernel
from headwater.model.arrays import BoolArray, Float64Array, Int64Array


class TotalsAt:
    """The words of some measures at the chosen places, gathered once, when they are asked for."""

    def __init__(self, words: Int64Array, places: Int64Array) -> None:
        self._words, self._places = words, places
        self._rows: Sequence[int] = range(len(words))
        self._gathered: dict[int, Int64Array] = {}

    def of(self, rows: Sequence[int]) -> TotalsAt:
        """Only these words, numbered anew."""
        part = TotalsAt(self._words, self._places)
        part._rows, part._gathered = rows, self._gathered
        return part

    def __getitem__(self, word: int) -> Int64Array:
        row = self._rows[word]
        if row not in self._gathered:
            self._gathered[row] = self._words[row][self._places]
        return self._gathered[row]

    def any(self, word: int) -> bool:
        """Is the word other than 0 anywhere?"""
        return bool(self._words[self._rows[word]].any())


def with_special(total: Float64Array, words: TotalsAt, word: int) -> Float64Array:
    """Sums that are scaled down as they are; NaN and the infinities, where the word that counts them has any."""
    if not words.any(word):
        return total
    special = words[word]
    with np.errstate(over="ignore"):
        total = np.where(special & kernel.SCALED, total / kernel.DOWN, total)
    nan, plus, minus = special >> 42, (special >> 21) & 0x1FFFFF, (special >> 1) & 0xFFFFF
    infinite = np.where((nan > 0) | ((plus > 0) & (minus > 0)), np.nan, np.where(plus > 0, np.inf, -np.inf))
    return np.where(special & ~kernel.SCALED, infinite, total)


def as_array(values: np.ndarray, none: BoolArray, type_: pa.DataType) -> pa.Array:
    return pa.array(values, mask=none if none.any() else None).cast(type_)
