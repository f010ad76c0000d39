"""The stateful operators that are measured, each with its inputs cut into ticks and DuckDB's query for the same job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from benchmarks.data import DISORDER, WINDOW, Auctions, Bids
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.operators.base import Operator
from headwater.operators.joins.join import JoinOperator
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.operators.windows.frame_values import FrameCall
from headwater.operators.windows.frames import FramesOperator
from headwater.operators.windows.row_window import RowWindowOperator

BID = Schema.of(auction="BIGINT", price="DOUBLE")
AUCTION = Schema.of(auction="BIGINT", seller="BIGINT")
KEY = Schema.of(auction="BIGINT")
ROWS = 10

_COUNT = Call("COUNT", "n", pa.int64())
_SUM = Call("SUM", "total", pa.float64(), "price")
_MAX = Call("MAX", "highest", pa.float64(), "price")
_FRAMES = (
    FrameCall("SUM", "total", pa.float64(), "price"),
    FrameCall("AVG", "mean", pa.float64(), "price", first=ROWS - 1),
    FrameCall("LAST_VALUE", "before", pa.float64(), "price", first=1, last=1),
)

Tick = tuple[tuple[Delta, ...], tuple[int, ...]]


@frozen
class Case:
    """One line of the table."""

    title: str
    make: Callable[[], Operator]
    streams: tuple[str, ...]
    sql: str | None
    expected: float | None = None
    """M rows/s that a throw-away prototype reached on one core, where there was one."""


_ENDS = f"""
  ends AS (SELECT auction, ts AS t, 1 AS c, price AS p FROM bid
           UNION ALL SELECT auction, ts + {WINDOW}, -1, -price FROM bid),
  steps AS (SELECT auction, t, sum(c) AS c, sum(p) AS p FROM ends GROUP BY auction, t)"""

_MOVING_SUM = f"""
WITH {_ENDS}
SELECT * FROM (
  SELECT auction, t, lead(t) OVER w AS until, sum(c) OVER w AS n, sum(p) OVER w AS total
  FROM steps WINDOW w AS (PARTITION BY auction ORDER BY t)) WHERE n > 0"""

_MOVING_MAX = f"""
WITH ends AS (SELECT auction, ts AS t, 1 AS c, price AS p, price AS x FROM bid
              UNION ALL SELECT auction, ts + {WINDOW}, -1, -price, NULL FROM bid),
  steps AS (SELECT auction, t, sum(c) AS c, sum(p) AS p, max(x) AS x FROM ends GROUP BY auction, t)
SELECT * FROM (
  SELECT auction, t, lead(t) OVER w AS until, sum(c) OVER w AS n, sum(p) OVER w AS total,
         max(x) OVER (PARTITION BY auction ORDER BY t RANGE BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW) AS highest
  FROM steps WINDOW w AS (PARTITION BY auction ORDER BY t)) WHERE n > 0"""

_DISTINCT = f"""
SELECT auction, min(ts), max(ts) + {WINDOW} FROM (
  SELECT auction, ts, sum(fresh) OVER (PARTITION BY auction ORDER BY ts ROWS UNBOUNDED PRECEDING) AS island FROM (
    SELECT auction, ts, CASE WHEN ts > lag(ts) OVER (PARTITION BY auction ORDER BY ts) + {WINDOW} THEN 1 ELSE 0 END AS fresh
    FROM bid)) GROUP BY auction, island"""

_EXCEPT = f"""
WITH ends AS (SELECT auction, ts AS t, 1 AS a, 0 AS b FROM auction
              UNION ALL SELECT auction, ts + {WINDOW}, -1, 0 FROM auction
              UNION ALL SELECT auction, ts, 0, 1 FROM bid UNION ALL SELECT auction, ts + {WINDOW}, 0, -1 FROM bid),
  steps AS (SELECT auction, t, sum(a) AS a, sum(b) AS b FROM ends GROUP BY auction, t)
SELECT * FROM (
  SELECT auction, t, lead(t) OVER w AS until, greatest(sum(a) OVER w - sum(b) OVER w, 0) AS n
  FROM steps WINDOW w AS (PARTITION BY auction ORDER BY t)) WHERE n > 0"""

_JOIN = f"""
SELECT b.auction, b.price, a.seller, greatest(b.ts, a.ts), least(b.ts, a.ts) + {WINDOW}
FROM bid b JOIN auction a ON b.auction = a.auction AND b.ts < a.ts + {WINDOW} AND a.ts < b.ts + {WINDOW}"""

_LAST_ROWS = f"""
SELECT auction, price, ts, lead(ts, {ROWS}) OVER (PARTITION BY auction ORDER BY ts, price) FROM bid"""

_OVER = f"""
SELECT auction, price, ts, sum(price) OVER (w ROWS UNBOUNDED PRECEDING), avg(price) OVER (w ROWS {ROWS - 1} PRECEDING),
       lag(price) OVER w FROM bid WINDOW w AS (PARTITION BY auction ORDER BY ts, price)"""

CASES = (
    Case(
        "COUNT + SUM per key, strong",
        lambda: AggregateOperator([BID], ["auction"], [_COUNT, _SUM], revisable=False),
        ("bid",),
        _MOVING_SUM,
        6.5,
    ),
    Case(
        "COUNT + SUM + MAX per key, strong",
        lambda: AggregateOperator([BID], ["auction"], [_COUNT, _SUM, _MAX], revisable=False),
        ("bid",),
        _MOVING_MAX,
        4.5,
    ),
    Case(
        "COUNT + SUM per key, speculative",
        lambda: AggregateOperator([BID], ["auction"], [_COUNT, _SUM], speculative=True),
        ("bid",),
        None,
        4.6,
    ),
    Case(
        "window join",
        lambda: JoinOperator(BID, AUCTION, [("auction", "auction")], None, revisable=False),
        ("bid", "auction"),
        _JOIN,
        8.0,
    ),
    Case("DISTINCT", lambda: CountSweepOperator(KEY, "distinct"), ("key",), _DISTINCT, 7.0),
    Case("EXCEPT ALL", lambda: CountSweepOperator(KEY, "except all"), ("auction key", "key"), _EXCEPT, 7.0),
    Case(
        f"last {ROWS} rows per key",
        lambda: RowWindowOperator(BID, ROWS, partition=["auction"], speculative=False),
        ("chronon",),
        _LAST_ROWS,
        7.8,
    ),
    Case(
        f"OVER: running SUM, AVG of {ROWS} rows, LAG",
        lambda: FramesOperator(BID, _FRAMES, ["auction"], speculative=False),
        ("chronon",),
        _OVER,
    ),
    Case(
        f"OVER: running SUM, AVG of {ROWS} rows, LAG, speculative",
        lambda: FramesOperator(BID, _FRAMES, ["auction"], speculative=True),
        ("chronon",),
        None,
    ),
)


def ticks(case: Case, bids: Bids, auctions: Auctions, rows: int) -> Iterator[Tick]:
    """The case's inputs, so many bids per tick, with the frontier that the disorder allows."""
    at = 0
    for i in range(0, len(bids.time), rows):
        part = slice(i, i + rows)
        reached = int(bids.time[part].max())
        until = int(np.searchsorted(auctions.time, reached, side="right"))
        deltas = tuple(_delta(stream, bids, auctions, part, slice(at, until)) for stream in case.streams)
        at = until
        yield deltas, (reached - DISORDER,) * len(deltas)


def _delta(stream: str, bids: Bids, auctions: Auctions, bid: slice, auction: slice) -> Delta:
    if stream == "bid":
        return _windowed(BID, [bids.auction[bid], bids.price[bid]], bids.time[bid], WINDOW)
    if stream == "chronon":
        return _windowed(BID, [bids.auction[bid], bids.price[bid]], bids.time[bid], 1)
    if stream == "key":
        return _windowed(KEY, [bids.auction[bid]], bids.time[bid], WINDOW)
    if stream == "auction":
        return _windowed(AUCTION, [auctions.auction[auction], auctions.seller[auction]], auctions.time[auction], WINDOW)
    return _windowed(KEY, [auctions.auction[auction]], auctions.time[auction], WINDOW)


def _windowed(schema: Schema, columns: Sequence[np.ndarray], start: Int64Array, window: int) -> Delta:
    return Delta(schema, [pa.array(c) for c in columns], start, start + window, np.ones(len(start), np.int64))
