"""A large tick in portions: operators are fastest on about a hundred thousand rows, which fit into the caches.

Everything of a tick has arrived, so it may be taken in the order of time: first the rows that start before some instant,
then nothing before it will come, and so on. Answers do not depend on how rows are cut into ticks, so neither on this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.time import INFINITY
from headwater.runtime.tick import Made

PORTION = 128 * 1024
_SAMPLE = 4096


def portions(arrived: Mapping[int, Made], size: int | None = None) -> Iterator[tuple[dict[int, Made], int]]:
    """What arrived on each edge, cut at the same instants; with each portion the instant it goes up to."""
    cuts = _cuts([made.delta.start for made in arrived.values()], size or PORTION)
    if not len(cuts):
        yield dict(arrived), INFINITY
        return
    cut = {edge: _split(made.delta, cuts) for edge, made in arrived.items()}
    for i, until in enumerate([*cuts.tolist(), INFINITY]):
        yield {e: Made(cut[e][i], min(m.frontier, until), min(m.known, until)) for e, m in arrived.items()}, until


def _cuts(starts: list[Int64Array], size: int) -> Int64Array:
    """Instants between which about so many rows start."""
    total = sum(map(len, starts))
    count = total // size
    if count < 2:
        return np.empty(0, np.int64)
    step = max(total // _SAMPLE, 1)
    sample = np.sort(np.concatenate([s[::step] for s in starts]))
    return np.unique(sample[np.arange(1, count) * len(sample) // count])


def _split(delta: Delta, cuts: Int64Array) -> list[Delta]:
    """The rows before the first cut, those from it up to the second, and so on; their order stays."""
    if not len(delta):
        return [delta] * (len(cuts) + 1)
    portion = np.searchsorted(cuts, delta.start, side="right").astype(np.uint16)
    bounds = np.searchsorted(np.sort(portion), np.arange(len(cuts) + 2))
    order = np.argsort(portion, kind="stable")
    return [delta.take(order[a:b]) for a, b in pairwise(bounds.tolist())]
