"""Sources to simulate: when each row happened, and when it arrived. Everything is in microseconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from headwater.model.arrays import Int64Array

MILLISECOND = 1_000
SECOND = 1_000_000
START = 1_767_225_600 * SECOND
"""2026 begins: simulations start at a date as real ones do, so that "0" is long ago."""


@frozen(eq=False)
class Rows:
    """The rows of one stream in the order of their arrival."""

    time: Int64Array
    """When it happened, by the source's clock."""
    arrival: Int64Array
    sent: Int64Array
    """When it happened, by the wall clock."""

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def of(cls, sent: np.ndarray, arrival: np.ndarray, *, deviation: float | np.ndarray = 0.0) -> Rows:
        """Sorted by arrival; given in milliseconds after the start. ``deviation``: how much the source's clock is fast."""
        order = np.argsort(arrival, kind="stable")
        given = (sent + deviation, arrival, sent)
        return cls(*(START + np.floor(values[order] * MILLISECOND).astype(np.int64) for values in given))

    @property
    def end(self) -> int:
        return int(self.arrival.max())


def calm(seed: int, seconds: int, rate: int = 200) -> Rows:
    """Delays are exponential, 100 ms in the mean."""
    _, time, delay = _basis(seed, seconds, rate)
    return Rows.of(time, time + delay)


def spikes(seed: int, seconds: int, rate: int = 200) -> Rows:
    """About once per minute, for 4 s, delays are 2 s longer in the mean."""
    return _bursts(seed, seconds, rate, gap=60, length=4, mean=2)


def rare_long_bursts(seed: int, seconds: int, rate: int = 200) -> Rows:
    """About every 300 s, for 20 s, delays are 5 s longer in the mean."""
    return _bursts(seed, seconds, rate, gap=300, length=20, mean=5)


def regimes(seed: int, seconds: int, rate: int = 200) -> Rows:
    """Three minutes are calm, in the fourth delays are 3 s longer in the mean."""
    rng, time, delay = _basis(seed, seconds, rate)
    bad = time // 1000 % 240 >= 180
    delay[bad] += rng.exponential(3000, int(bad.sum()))
    return Rows.of(time, time + delay)


def cut_off(seed: int, seconds: int, rate: int = 200) -> Rows:
    """Calm, but about every 300 s nothing gets through for 30 s, and then all of it at once."""
    rng, time, delay = _basis(seed, seconds, rate)
    arrival = time + delay
    for begin in 1000 * (150 + 300 * np.arange(max(seconds // 300, 1)) + rng.uniform(-60, 60)):
        cut = (arrival >= begin) & (arrival < begin + 30_000)
        arrival[cut] = begin + 30_000
    return Rows.of(time, arrival)


def sinusoid(seed: int, seconds: int, rate: int = 200) -> Rows:
    """The mean delay goes slowly from 50 ms to 3 s and back, three times."""
    rng, time, _ = _basis(seed, seconds, rate)
    mean = 50 + 1475 * (1 - np.cos(2 * np.pi * time / (seconds * 1000) * 3))
    return Rows.of(time, time + rng.exponential(1, len(time)) * mean)


def pareto(seed: int, seconds: int, rate: int = 200) -> Rows:
    """Stationary with a heavy tail: Pareto 1.8, at least 50 ms."""
    rng, time, _ = _basis(seed, seconds, rate)
    return Rows.of(time, time + 50 * (rng.pareto(1.8, len(time)) + 1))


def on_off(seed: int, seconds: int, rate: int = 200) -> Rows:
    """2 s of rows, 28 s of silence; delays are calm."""
    _, time, delay = _basis(seed, seconds, rate)
    on = time // 1000 % 30 < 2
    return Rows.of(time[on], time[on] + delay[on])


def fast_and_sparse(seed: int, seconds: int) -> dict[str, Rows]:
    """100 rows per second that take up to 200 ms, and a row every 20 s that takes up to 10 s; clocks are within 200 ms."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, rows, latency in (("fast", seconds * 100, 200), ("sparse", max(seconds // 20, 1), 10_000)):
        sent = np.sort(rng.uniform(0, seconds * 1000, rows))
        found[name] = Rows.of(sent, sent + rng.uniform(0, latency, rows), deviation=rng.uniform(-200, 200))
    return found


def jittering_pair(seed: int, seconds: int, rate: int = 7) -> dict[str, Rows]:
    """Two streams whose rows take up to a second; clocks are within 100 ms, at every row anew."""
    rng = np.random.default_rng(seed)
    found = {}
    for name in ("left_side", "right_side"):
        sent = np.sort(rng.uniform(0, seconds * 1000, seconds * rate))
        latency = rng.uniform(0, 1000, len(sent))
        found[name] = Rows.of(sent, sent + latency, deviation=rng.uniform(-100, 100, len(sent)))
    return found


DELAYS: dict[str, Callable[[int, int], Rows]] = {
    "calm": calm,
    "spikes": spikes,
    "regimes": regimes,
    "rare long bursts": rare_long_bursts,
    "sinusoid": sinusoid,
    "Pareto": pareto,
    "cut off": cut_off,
}


def _basis(seed: int, seconds: int, rate: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    time = np.sort(rng.uniform(0, seconds * 1000, seconds * rate))
    return rng, time, rng.exponential(100, len(time))


def _bursts(seed: int, seconds: int, rate: int, *, gap: int, length: int, mean: int) -> Rows:
    rng, time, delay = _basis(seed, seconds, rate)
    begins = np.cumsum(rng.exponential(gap * 1000, seconds))
    for begin in begins[begins < seconds * 1000]:
        bad = (time >= begin) & (time < begin + length * 1000)
        delay[bad] += rng.exponential(mean * 1000, int(bad.sum()))
    return Rows.of(time, time + delay)
