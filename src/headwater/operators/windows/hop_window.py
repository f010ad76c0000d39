"""Put every row into the windows of fixed size that contain it: TUMBLE and HOP, as users of Flink know them."""
#  in               a |)      b |)
#  SIZE 4 SLIDE 2   a [0,4)  |-)              a copy per window, with the window's ends as columns,
#                   a [2,6)    |-)            reported from the window's end until the next one ends
#                   b [4,8)       |-)
#                   b [6,10)        |-)

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.errors import StreamError
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY, saturating_add
from headwater.operators.base import Frontiers, Inputs, Operator, Step

_MOST_ROWS = 50_000_000


class HopWindowOperator(Operator):
    """A row of a chronon stream at t goes into every window [k*slide + offset, k*slide + offset + size) with t in it.

    Its copy carries the window's ends and is valid [window_end, window_end + slide), so that at any instant the latest
    finished window is shown; with a ``lifetime``, only so long. With slide > size some rows are in no window. Stateless.

    Frontier: what is still to come at or after f is in windows that end after f, so nothing changes before the first
    window's end after f. A window that would end at the end of time is never reported.
    """

    name = "hop window"

    def __init__(
        self,
        schema: Schema,
        size: int,
        slide: int,
        offset: int = 0,
        *,
        start: str,
        end: str,
        time: pa.DataType,
        lifetime: int | None = None,
    ) -> None:
        assert lifetime is None or 1 <= lifetime <= slide, "one window is shown at a time"
        ends = (Field(name, time, nullable=False) for name in (start, end))
        self.schema = Schema((*schema.fields, *ends))
        self._size, self._slide, self._offset, self._time = size, slide, offset % slide, time
        self._lifetime = slide if lifetime is None else lifetime

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,)

    def describe(self) -> dict[str, object]:
        about: dict[str, object] = {"size": self._size, "slide": self._slide, "offset": self._offset}
        return about if self._lifetime == self._slide else about | {"lifetime": self._lifetime}

    def step(self, state: None, inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        delta, frontier = inputs[0], frontiers[0]
        if BEGINNING < frontier < INFINITY:
            frontier = self._next_end(frontier)
        endless = np.flatnonzero(delta.end - delta.start != 1)
        if len(endless):
            row = delta.take(endless[:1]).rows()[0][0]
            raise StreamError(
                "ENDLESS_HOPS",
                f"the element {row}, which never ends, would be in every later window",
                hint="Let the elements end before you put them into hopping windows.",
            )
        return Step(self._copies(delta), frontier)

    def _next_end(self, instant: int) -> int:
        """The first end of a window after the instant."""
        return min(instant + 1 + (self._offset + self._size - instant - 1) % self._slide, INFINITY)

    def _copies(self, delta: Delta) -> Delta:
        """One row per window. The j-th latest window that contains t began (t - offset) mod slide + j*slide before it."""
        into = (delta.start % self._slide - self._offset) % self._slide
        count = (self._size - 1 - into) // self._slide + 1
        total = float(count.astype(np.float64).sum())
        if total > _MOST_ROWS:
            raise StreamError(
                "WINDOW_TOO_FINE",
                f"{len(delta)} rows are in {total:.0f} hopping windows",
                hint="Use a larger slide, or a smaller size.",
            )
        if not (count == 1).all():
            row = np.repeat(np.arange(len(delta)), count)
            nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
            delta, into = delta.take(row), into[row] + nth * self._slide
        begins = np.where(delta.start < BEGINNING + into, BEGINNING, delta.start - into)
        ends = _later(delta.start, self._size - into)
        columns = [*delta.columns, *(instants(times, self._time) for times in (begins, ends))]
        return delta.with_columns(self.schema, columns).with_times(ends, saturating_add(ends, self._lifetime))


def _later(times: Int64Array, amounts: Int64Array) -> Int64Array:
    """Each so much later, or the end of time."""
    return np.where(times > INFINITY - amounts, INFINITY, times + amounts)


def instants(times: Int64Array, type_: pa.DataType) -> pa.Array:
    """Instants as a column: TIMESTAMP, or BIGINT where they have no unit."""
    return pa.array(times).cast(type_)
