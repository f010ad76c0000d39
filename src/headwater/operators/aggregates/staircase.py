"""MIN and MAX over rows that nobody can take back: per group only the rows that can still become the extreme.

A row that ends no later than another and is no larger will never again be the maximum alone, so what is left of a group is
a staircase: the later the end, the smaller the value. Legal only below the frontier and without revisions, where the
strong form works.
"""
#  rows       5 |--------)         6 |-----------)
#                4 |------------)  3 |---------------)
#  kept       (5), (5 4)           (6 3): 4 ends first and is smaller than 6

from __future__ import annotations

import numpy as np

from headwater.kernels.staircase import sweep_staircases
from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.operators.sweeps.endpoints import Swept
from headwater.state.groups import LatestGroups
from headwater.state.manifest import State
from headwater.state.store import Store

_ALL_BUT_SIGN = np.int64(2**63 - 1)


class Staircases(State):
    """The staircase of each group, for the largest or the smallest value of one column."""

    layouts = ("_groups",)

    def __init__(self, store: Store, *, floats: bool, largest: bool) -> None:
        # One column, of end and step in turn: groups are small, so half the columns is half the work.
        self._groups = LatestGroups(store, columns={"stairs": np.empty(0, np.int64)})
        self._floats, self._largest = floats, largest

    @property
    def rows(self) -> int:
        return self._groups.rows // 2

    def sweep(
        self, swept: Swept, valid: np.ndarray, values: Int64Array, until: Int64Array
    ) -> tuple[Int64Array, np.ndarray]:
        """The extreme from each instant of each key on, and whether it changes; the staircases are brought up to date."""
        found = self._groups.find(swept.key)
        old = self._groups.gather(found)
        levels, changed, offsets, stairs = sweep_staircases(
            swept.groups,
            swept.columns["time"],
            until,
            valid,
            values,
            self._floats,
            self._largest,
            old.offsets,
            old.columns["stairs"],
        )
        dead = offsets[1:] == offsets[:-1]
        self._groups.put(swept.key, offsets, {"stairs": stairs}, {}, dead, found)
        return levels, changed

    def steps(self) -> tuple[Identity, Int64Array, Int64Array]:
        """Every step: its group, its end, and the value as a word."""
        key, (offsets, columns, _) = self._groups.live()
        stairs = columns.array("stairs")
        owner = np.repeat(np.arange(len(key.low)), np.diff(offsets) // 2)
        values = stairs[1::2] if self._largest else ~stairs[1::2]
        if self._floats:  # the bits of negative ones were turned round, to put them in order
            values = np.where(values < 0, values ^ _ALL_BUT_SIGN, values)
        return key.take(owner), stairs[0::2], values

    def clear(self) -> None:
        self._groups.clear()
