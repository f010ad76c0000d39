"""Let rows pass when their start is final, and ends when these are: for a query that shall be certain from now on."""
#  shown before   a|3-)
#  stream         a ends at 9     b|5-8)    (final before 6)   (final before 9)   (final before 10)
#  passes                                   b|5-)              b ends at 8        a ends at 9

from __future__ import annotations

import numpy as np

from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.time import INFINITY
from headwater.operators.tables.known_rows import Intervals, distinct, first_of_each, sums
from headwater.operators.waiting.settle import SettleOperator


class SettleStartsOperator(SettleOperator):
    """As settle, but a row is shown without an end once its start is final (LMerge: half frozen). How many there are of a
    row and start is final then; what was shown before with an end that is not final keeps it until the right one is. So
    nothing is held back: the frontier is that of the input. With the changes of a row and start an endless interval is kept,
    which stands for what has been shown without an end and still gets one.
    """

    @property
    def holds_back(self) -> bool:
        return False

    def taken(self, delta: Delta) -> Delta:
        _, payload = distinct(delta.key())
        order = np.lexsort((delta.end, delta.start, payload))
        row, start = payload[order], delta.start[order]
        last = np.append((row[1:] != row[:-1]) | (start[1:] != start[:-1]), True)[: len(order)]
        ends = delta.take(order[last & (delta.end[order] != INFINITY)])
        nothing, never = np.zeros(len(ends), np.int64), np.full(len(ends), INFINITY, np.int64)
        return Delta.concat(self.schema, [delta, Delta(self.schema, ends.columns, ends.start, never, nothing)])

    def goes(self, rows: Intervals, passed: Int64Array, waits: Int64Array, frontier: int) -> Int64Array:
        if frontier == INFINITY:
            return waits
        group, groups = rows.groups()
        begun, closed = rows.start < frontier, rows.end < frontier
        half = np.where(begun & ~closed, waits, 0)
        net = sums(group, half, groups)
        come = np.where(rows.end == INFINITY, np.maximum(net, 0)[group], 0)
        gone = first_of_each(group, np.maximum(-half, 0), np.maximum(-net, 0))
        return np.where(begun & closed, waits, 0) + come - gone

    def needed(self, rows: Intervals, waits: Int64Array) -> BoolArray:
        group, groups = rows.groups()
        waiting = sums(group, (waits != 0).astype(np.int64), groups) > 0
        return (waits != 0) | ((rows.end == INFINITY) & waiting[group])

    def look_again(self, rows: Intervals, waits: Int64Array) -> Int64Array:
        """The endless interval at the start, the others at their ends."""
        return np.where(rows.end == INFINITY, rows.start, rows.end)
