"""The watermarks of Spark and Flink, simulated from what their sources say (Spark 4, Flink 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.time.scoring import NEVER, Heartbeats
from benchmarks.time.worlds import MILLISECOND, SECOND, START, Rows
from headwater.model.arrays import Int64Array

TICK = 100 * MILLISECOND
"""A micro-batch of Spark, and a tick of Headwater: both take nothing but waiting."""
EMITTED = 200 * MILLISECOND
"""Flink's pipeline.auto-watermark-interval."""


def instants(end: int, step: int = TICK, *, tail: int = 60 * SECOND) -> Int64Array:
    """The ends of all micro-batches until the last row, and a while after it."""
    return np.arange(START + step, end + tail + step, step, dtype=np.int64)


def newest_by(rows: Rows, at: Int64Array) -> Int64Array:
    """The largest time that had arrived by each instant."""
    so_far = np.concatenate(([NEVER], np.maximum.accumulate(rows.time)))
    return so_far[np.searchsorted(rows.arrival, at, side="right")]


def spark(streams: Mapping[str, Rows], delays: Mapping[str, int], at: Int64Array, *, policy: str = "min") -> Heartbeats:
    """WatermarkTracker: max - delay of each watermark operator over all its partitions, in whole milliseconds.

    It is computed at the end of a micro-batch and holds from the next one on; a row with ts <= watermark is late. An
    operator that has seen no row stands at 0. One watermark serves the whole query, by multipleWatermarkPolicy. The batch
    without data that Spark runs when a watermark has risen is taken to come at once.
    """
    choose = np.minimum if policy == "min" else np.maximum
    each = [_spark_operator(newest_by(rows, at), delays[name]) for name, rows in streams.items()]
    return Heartbeats(at, np.maximum.accumulate(choose.reduce(each)))


def _spark_operator(newest: Int64Array, delay: int) -> Int64Array:
    watermark = newest // MILLISECOND * MILLISECOND - delay
    return np.maximum.accumulate(np.where(newest > NEVER, np.maximum(watermark, 0), 0))


def flink_split(rows: Rows, bound: int, at: Int64Array) -> Heartbeats:
    """BoundedOutOfOrdernessWatermarks of one split: max - bound - 1 ms, emitted periodically."""
    newest = newest_by(rows, at)
    watermark = newest // MILLISECOND * MILLISECOND - bound - MILLISECOND
    return Heartbeats(at, np.where(newest > NEVER, watermark, NEVER))


def flink(
    streams: Mapping[str, Rows], bounds: Mapping[str, int], at: Int64Array, *, idle: Mapping[str, int] | None = None
) -> Heartbeats:
    """The least watermark of all active inputs.

    ``idle``: withIdleness, after how long without a row an input does not count. If none is active nothing advances
    (FLINK-18523); what has been emitted is never taken back.
    """
    total = np.full(len(at), 2**62, np.int64)
    for name, rows in streams.items():
        split = flink_split(rows, bounds[name], at).heartbeat
        active = _active(rows, at, (idle or {}).get(name))
        total = np.where(active, np.minimum(total, split), total)
    return Heartbeats(at, np.maximum.accumulate(np.where(total == 2**62, NEVER, total)))


def _active(rows: Rows, at: Int64Array, idle: int | None) -> np.ndarray:
    if idle is None:
        return np.ones(len(at), bool)
    last = np.concatenate(([START], rows.arrival))[np.searchsorted(rows.arrival, at, side="right")]
    return at - last <= idle


def tuned(late_at: Callable[[int], int], allowed: int, *, most: int = 200 * SECOND) -> int:
    """The smallest constant, in whole milliseconds, with which no more rows are late than allowed: known in hindsight."""
    low, high = 0, most // MILLISECOND
    while low < high:
        middle = (low + high) // 2
        if late_at(middle * MILLISECOND) <= allowed:
            high = middle
        else:
            low = middle + 1
    return low * MILLISECOND
