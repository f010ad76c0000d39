"""Set operations: how often the multiplicity of a row changes, if the row comes and goes at random on both sides.

Krämer leaves difference and intersection out (23.4). Ours: each of the n different rows is in either input as often as a
Poisson variable says, with mean alive/n. What comes sees the stationary state, and so does what goes, without itself;
an element of the output begins wherever the output's multiplicity changes and is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from headwater.algebra.nodes import SetKind
from headwater.model.arrays import Float64Array, Int64Array
from headwater.optimizer.estimation.characteristics import Characteristics

_MOST = 40.0
"""Larger means are scaled down together: the chances hardly change any more."""

_COUNTS: dict[SetKind, Callable[[Int64Array, Int64Array], Int64Array]] = {
    SetKind.EXCEPT_ALL: lambda a, b: np.maximum(a - b, 0),
    SetKind.EXCEPT: lambda a, b: ((a > 0) & (b == 0)).astype(np.int64),
    SetKind.STRICT_DIFFERENCE: lambda a, b: np.where(b == 0, a, 0),
    SetKind.INTERSECT_ALL: np.minimum,
    SetKind.INTERSECT: lambda a, b: ((a > 0) & (b > 0)).astype(np.int64),
    SetKind.MAX_UNION: np.maximum,
}


def combined(
    left: Characteristics, right: Characteristics, left_values: float, right_values: float, kind: SetKind
) -> Characteristics:
    """The output of a set operation. The rows of the side with fewer different ones are among those of the other."""
    granule = min(left.granule, right.granule)
    endless = left.endless and (right.endless or kind != SetKind.INTERSECT)
    alive = rate = 0.0
    both = min(left_values, right_values)
    for values, on_left, on_right in (
        (both, 1.0, 1.0),
        (left_values - both, 1.0, 0.0),
        (right_values - both, 0.0, 1.0),
    ):
        if not values:
            continue
        means = on_left * left.alive / left_values, on_right * right.alive / right_values
        by_left, by_right, shown = _chances(kind, *_scaled(*means), left.endless, right.endless)
        alive += values * shown
        rate += on_left * left.rate * values / left_values * by_left
        rate += on_right * right.rate * values / right_values * by_right
    # A piece lasts for a granule at least.
    return Characteristics(min(rate, alive / granule), alive, granule, endless)


def _scaled(a: float, b: float) -> tuple[float, float]:
    """Three digits, so that questions that are nearly equal are asked once."""
    scale = min(1.0, _MOST / max(a, b, 1.0))
    return float(f"{a * scale:.3g}"), float(f"{b * scale:.3g}")


@lru_cache(maxsize=1024)
def _chances(kind: SetKind, a: float, b: float, a_stays: bool, b_stays: bool) -> tuple[float, float, float]:
    """How many output elements an element of either side begins, and the chance that a row is in the output."""
    left, right = _poisson(a), _poisson(b)
    count = _COUNTS[kind](*np.indices((len(left) + 1, len(right) + 1)))
    weight = np.outer(left, right)
    here = count[:-1, :-1]
    begins = []
    for other, stays in ((count[1:, :-1], a_stays), (count[:-1, 1:], b_stays)):
        coming, going = (other != here) & (other > 0), (other != here) & (here > 0)
        begins.append(float((weight * (coming if stays else coming.astype(np.int64) + going)).sum()))
    return begins[0], begins[1], float(weight[here > 0].sum())


def _poisson(mean: float) -> Float64Array:
    """The chances of 0, 1, 2, …"""
    most = math.ceil(mean + 6 * math.sqrt(mean) + 4)
    chances = np.full(most + 1, math.exp(-mean))
    chances[1:] *= np.cumprod(mean / np.arange(1, most + 1))
    return chances
