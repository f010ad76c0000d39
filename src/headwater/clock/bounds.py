"""Bounds on how far rows may lag, and the algebra of sets of them (Srivastava & Widom 2, 3.2, 5).

A set of bounds is a step function: the longer one waits, the less a row may still lag. It is kept in canonical form, a
tuple of pairs with strictly growing delays and strictly falling lags, so equal functions are equal tuples.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Bound(NamedTuple):
    """Once a row with time t was sent, all that is sent more than ``after`` later has a time greater than t - ``lag``."""

    after: int
    """Wall clock."""
    lag: int
    """Application time. Strict: 0 is "newer than t", 1 is "not older than t" (digest E8)."""


class RowBound(NamedTuple):
    """As ``Bound``, but the promise begins when the lagging stream has sent ``rows`` more rows."""

    rows: int
    lag: int


Bounds = tuple[Bound, ...]
"""In canonical form."""


def reduced(bounds: Iterable[tuple[int, int]]) -> Bounds:
    """The canonical form: without the bounds that an earlier and no weaker one makes needless.

    >>> reduced([Bound(0, 5), Bound(3, 5), Bound(3, 1)])
    (Bound(after=0, lag=5), Bound(after=3, lag=1))
    """
    kept: list[Bound] = []
    for after, lag in sorted(bounds):
        if not kept or lag < kept[-1].lag:
            kept.append(Bound(after, lag))
    return tuple(kept)


def composed(first: Bounds, second: Bounds) -> Bounds:
    """What holds along a path of two steps: delays and lags add up (a min-plus convolution)."""
    return reduced((a.after + b.after, a.lag + b.lag) for a in first for b in second)


def united(first: Bounds, second: Bounds) -> Bounds:
    """Both hold: the pointwise minimum."""
    return reduced((*first, *second)) if first and second else first or second


def joined(first: Bounds, second: Bounds) -> Bounds:
    """What holds for two streams taken as one: the pointwise maximum; nothing where one of them promises nothing."""
    delays = sorted({b.after for b in (*first, *second)})
    lags = ((t, lag_at(first, t), lag_at(second, t)) for t in delays)
    return reduced((t, max(a, b)) for t, a, b in lags if a is not None and b is not None)


def lag_at(bounds: Bounds, delay: int) -> int | None:
    """The step function at a delay; None: no promise yet."""
    lags = [b.lag for b in bounds if b.after <= delay]
    return lags[-1] if lags else None


def is_at_least_as_tight(new: Bounds, old: Bounds) -> bool:
    """Does ``new`` promise everything that ``old`` promises?"""
    return all((lag := lag_at(new, b.after)) is not None and lag <= b.lag for b in old)


def smallest_lag(bounds: Bounds) -> int | None:
    """What is promised in the end; None: nothing."""
    return bounds[-1].lag if bounds else None
