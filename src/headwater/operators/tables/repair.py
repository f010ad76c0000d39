"""Put changes that come in any order into one that makes sense: no row is changed before it is there (CEDR Finalize)."""
#  stream   a: 10 becomes 8    a: 6 becomes 4    a: 8 becomes 6    a|0-10)
#  passes                                                          a|0-4)

from __future__ import annotations

import numpy as np

from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.time import INFINITY
from headwater.operators.tables.known_rows import Intervals, first_of_each, sums
from headwater.operators.waiting.pools import PoolOperator, PoolState


class RepairOperator(PoolOperator):
    """Changes of one row and start wait together until none of them takes away what is not there; then they pass as one
    change, so a chain of them becomes its sum (CEDR A.12, in the form of C.6).

    A link must name the end that is missing, so once the frontier has passed that end it cannot come any more (errata 16):
    then the change is given up, with the row that would have taken its place. State: rows that have passed and not ended,
    and changes that wait.
    """

    name = "repair"
    remembers = True

    def given_up(self, rows: Intervals, passed: Int64Array, waits: Int64Array, frontier: int) -> tuple[Int64Array, int]:
        missing = np.where((rows.end < frontier) | (frontier == INFINITY), np.maximum(-(passed + waits), 0), 0)
        group, groups = rows.groups()
        instead = first_of_each(group, np.maximum(waits, 0), sums(group, missing, groups))
        return waits + missing - instead, int(missing.sum())

    def stays(self, rows: Intervals, passed: Int64Array, waits: Int64Array, frontier: int) -> BoolArray:
        """As long as the group takes away what is not there."""
        group, groups = rows.groups()
        return sums(group, (passed + waits < 0).astype(np.int64), groups)[group] > 0

    def counts(self, state: PoolState) -> dict[str, int]:
        return {"broken": state.broken}
