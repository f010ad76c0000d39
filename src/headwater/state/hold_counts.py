"""The earliest start among what is held back, by counting in slots of time: exact in number, coarse in place.

A key holds one start at a time. Every change moves it from one slot to another, so the first slot that is not empty
bounds all held starts from below; nothing is ever searched for.
"""

from __future__ import annotations

import numpy as np

from headwater.model.arrays import Int64Array
from headwater.model.time import BEGINNING, INFINITY

_SLOTS_A_MOVE = 8
_MOST_SLOTS = 4096


class HoldCounts:
    """How many starts are held in each slot; slot i reaches from ``bounds[i]`` to just before ``bounds[i + 1]``."""

    def __init__(self) -> None:
        self._bounds = np.array([BEGINNING], np.int64)
        self._counts = np.zeros(1, np.int64)
        self._least = np.array([INFINITY], np.int64)
        self._latest = BEGINNING

    def move(self, old: Int64Array, new: Int64Array) -> None:
        """Keys that held ``old`` hold ``new`` from now on (INFINITY: nothing)."""
        old, new = old[old != INFINITY], new[new != INFINITY]
        if len(old):
            self._counts -= np.bincount(self._slot(old), minlength=len(self._counts))
        if len(new):
            later = new[new > self._latest]
            if len(later):
                self._open_slots(later)
            slot = self._slot(new)
            self._counts += np.bincount(slot, minlength=len(self._counts))
            np.minimum.at(self._least, slot, new)
        self._tidy()

    def _slot(self, times: Int64Array) -> Int64Array:
        return np.searchsorted(self._bounds, times, side="right") - 1

    def _open_slots(self, times: Int64Array) -> None:
        """New slots behind the last one, of about equally many of these times."""
        ordered = np.sort(times)
        bounds = np.unique(ordered[:: max(1, len(ordered) // _SLOTS_A_MOVE)])
        self._bounds = np.concatenate([self._bounds, bounds])
        self._counts = np.concatenate([self._counts, np.zeros(len(bounds), np.int64)])
        self._least = np.concatenate([self._least, np.full(len(bounds), INFINITY, np.int64)])
        self._latest = int(ordered[-1])

    def _tidy(self) -> None:
        """Drop empty slots (their range falls to the slot before), and join neighbours when there are too many."""
        keep = self._counts > 0
        keep[0] = True
        self._least[~keep] = INFINITY
        if self._counts[0] == 0:
            self._least[0] = INFINITY
        if keep.sum() > _MOST_SLOTS:
            starts = np.flatnonzero(keep)[::2]
            self._counts, self._least = np.add.reduceat(self._counts, starts), np.minimum.reduceat(self._least, starts)
            self._bounds = self._bounds[starts]
        elif not keep.all():
            self._bounds, self._counts, self._least = self._bounds[keep], self._counts[keep], self._least[keep]

    def least(self) -> int:
        """No held start is smaller than this; INFINITY when nothing is held."""
        return int(self._least.min())

    def to_manifest(self) -> dict[str, object]:
        return {
            "bounds": self._bounds.tolist(),
            "counts": self._counts.tolist(),
            "least": self._least.tolist(),
            "latest": self._latest,
        }
