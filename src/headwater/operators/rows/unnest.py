"""Make a row for each item of an array."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Frontiers, Inputs, Operator, Step


class UnnestOperator(Operator):
    """At every instant, for each row a copy per item of its array, with the item in place of the array.

        in   (1, [a, b]) |------)     (2, []) |------)
        out  (1, a)      |------)
             (1, b)      |------)                            (2, NULL) |------) if ``outer``

    Stateless: weights and intervals are those of the row, and the frontier passes.
    """

    name: ClassVar[str] = "unnest"

    def __init__(self, below: Schema, schema: Schema, array: str, *, place: bool, outer: bool) -> None:
        """``schema``: the other columns, the item and, with ``place``, its number from 1 on."""
        self.schema = schema
        self._array, self._place, self._outer = array, place, outer
        self._column = below.names.index(array)
        self._kept = [i for i in range(len(below)) if i != self._column]
        self._others = Schema(tuple(below.fields[i] for i in self._kept))

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,)

    def step(self, state: None, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        (delta,) = inputs
        arrays = delta.columns[self._column]
        lengths = pc.call_function("list_value_length", [arrays]).fill_null(0)
        counts = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
        items = arrays.flatten()
        copies = np.maximum(counts, 1) if self._outer else counts
        row = np.repeat(np.arange(len(delta)), copies)
        place = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
        empty = counts[row] == 0
        if empty.any():
            items = items.take(pa.array(np.cumsum(~empty) - 1, mask=empty))
        rows = delta.with_columns(self._others, [delta.columns[i] for i in self._kept]).take(row)
        made = [items.cast(self.schema.types[len(self._kept)])]
        if self._place:
            made.append(pa.array(place + 1, mask=empty if empty.any() else None))
        return Step(rows.with_columns(self.schema, [*rows.columns, *made]), frontiers[0])

    def carried(self, below: Schema) -> dict[str, str]:
        return {name: name for name in self._others.names}

    def describe(self) -> dict[str, object]:
        about: dict[str, object] = {"array": self._array, "as": list(self.schema.names[len(self._kept) :])}
        return about | {"outer": True} if self._outer else about
