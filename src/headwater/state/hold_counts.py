"""The earliest start among what is held back, by counting in slots of time: exact in number, coarse in place.

A key holds one start at a time. Every change moves it from one slot to another, so the first slot that is not empty
bounds all held starts from below; nothing is ever searched for. There are never more than ``_MOST_SLOTS`` slots, so they
are kept in the manifest itself.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from headwater.kernels.slots import count_in_slots
from headwater.model.arrays import Int64Array
from headwater.model.time import BEGINNING, INFINITY
from headwater.state.manifest import Route, SavedState, Scalars, State

_SLOTS_A_MOVE = 8
_SAMPLE = 512
_MOST_SLOTS = 256


class HoldCounts(State):
    """How many starts are held in each slot; slot i reaches from ``bounds[i]`` to just before ``bounds[i + 1]``."""

    scalars: ClassVar[Scalars] = {"_latest": None}
    bytes = 0

    def __init__(self) -> None:
        self._bounds = np.array([BEGINNING], np.int64)
        self._counts = np.zeros(1, np.int64)
        self._least = np.array([INFINITY], np.int64)
        self._latest = BEGINNING

    def move(self, old: Int64Array, new: Int64Array) -> None:
        """Keys that held ``old`` hold ``new`` from now on (INFINITY: nothing)."""
        count_in_slots(self._bounds, old, -1, self._counts, self._least)
        later = new[(new > self._latest) & (new != INFINITY)]
        if len(later):
            self._open_slots(later)
        count_in_slots(self._bounds, new, 1, self._counts, self._least)
        self._tidy()

    def fill(self, starts: Int64Array) -> None:
        """Keys hold these starts, and no others: with as many slots as a long run would have made."""
        for part in np.array_split(np.sort(starts), _MOST_SLOTS // _SLOTS_A_MOVE):
            self.move(part[:0], part)

    def _open_slots(self, times: Int64Array) -> None:
        """New slots behind the last one, of about equally many of these times."""
        sample = np.sort(times[:: max(1, len(times) // _SAMPLE)])
        bounds = np.unique(np.append(sample[:: max(1, len(sample) // _SLOTS_A_MOVE)], times.min()))
        self._bounds = np.concatenate([self._bounds, bounds])
        self._counts = np.concatenate([self._counts, np.zeros(len(bounds), np.int64)])
        self._least = np.concatenate([self._least, np.full(len(bounds), INFINITY, np.int64)])
        self._latest = int(times.max())

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

    def to_manifest(self) -> SavedState:
        slots = np.stack([self._bounds, self._counts, self._least])
        packed = zlib.compress(np.diff(slots, axis=1, prepend=0).T.tobytes(), 1)
        return super().to_manifest() | {"slots": base64.b64encode(packed).decode()}

    def from_manifest(self, manifest: SavedState) -> None:
        super().from_manifest(manifest)
        slots = np.frombuffer(zlib.decompress(base64.b64decode(manifest["slots"])), np.int64)
        self._bounds, self._counts, self._least = np.cumsum(slots.reshape(-1, 3).T, axis=1)

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        """Slots do not say whose starts they count: the operator counts again what its new states hold."""
