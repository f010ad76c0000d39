"""A stream whose rows come late by random times, up to a bound, and the query that is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.algebra.nodes import Plan
from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.time import INFINITY
from headwater.optimizer.plan_query import plan_query

SECOND = 1_000_000
LATEST = 20
"""Seconds that a row may be late: what is declared of the stream."""

QUERY = f"""
CREATE STREAM bid (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDERED BY ts DISORDER {LATEST} SECONDS;
SELECT auction, COUNT(*) AS bids, SUM(price) AS total FROM bid WINDOW(RANGE 30 SECONDS) GROUP BY auction
"""

_AUCTIONS = 200
_SEED = 7


class Moment(NamedTuple):
    """One tick: what came, the newest row so far, and up to where nothing comes any more."""

    delta: Delta
    newest: int
    frontier: int


class World(NamedTuple):
    """A plan, and all ticks of its stream."""

    plan: Plan
    ticks: list[Moment]
    rows: int


def world(rows: int) -> World:
    """A bid every 10 ms, most of them hardly late; one tick per second."""
    script = bind_script(QUERY)
    assert script.result is not None
    plan = plan_query(script.result.plan, script.settings).logical
    schema = next(node.schema for node in plan.walk() if not node.inputs)
    dice = np.random.default_rng(_SEED)
    start = np.arange(rows, dtype=np.int64) * (SECOND // 100)
    late = np.minimum(dice.exponential(3 * SECOND, rows).astype(np.int64), LATEST * SECOND - 1)
    order = np.argsort(start + late, kind="stable")
    start, arrival = start[order], (start + late)[order]
    columns = {"auction": dice.integers(0, _AUCTIONS, rows), "price": dice.integers(1, 1000, rows)}
    arrays = [
        pa.array(columns[n]) if n in columns else pa.array(start).cast(schema.types[i])
        for i, n in enumerate(schema.names)
    ]
    whole = Delta(schema, arrays, start, start + 1, np.ones(rows, np.int64))
    return World(plan, list(_ticks(whole, arrival)), rows)


def _ticks(whole: Delta, arrival: np.ndarray) -> Iterator[Moment]:
    seconds = arrival // SECOND
    newest = 0
    for second in np.unique(seconds):
        part = whole.take(np.flatnonzero(seconds == second))
        newest = max(newest, int(part.start.max()))
        yield Moment(part, newest, newest - LATEST * SECOND)
    yield Moment(Delta.empty(whole.schema), newest, INFINITY)
