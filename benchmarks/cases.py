"""The stateful operators that are measured, each with its inputs cut into ticks and DuckDB's query for the same job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from benchmarks import case_queries as q
from benchmarks.data import DISORDER, WINDOW, Auctions, Bids
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.operators.base import Operator
from headwater.operators.joins.join import JoinOperator
from headwater.operators.joins.outer_join import OuterJoinOperator, SemiJoinOperator
from headwater.operators.ranking.sort_order import SortColumn
from headwater.operators.ranking.top_k import TopKOperator
from headwater.operators.rows.sample import SampleOperator
from headwater.operators.rows.split import SplitOperator
from headwater.operators.sweeps.changes import ChangesOperator, FromSignedOperator
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.operators.tables.check_changes import CheckChangesOperator
from headwater.operators.tables.keyed_table import KeyedTableOperator
from headwater.operators.tables.repair import RepairOperator
from headwater.operators.tables.standing_rows import HandOverOperator, StandingRowsOperator
from headwater.operators.waiting.align import AlignOperator
from headwater.operators.waiting.align_starts import AlignStartsOperator
from headwater.operators.waiting.await_other import AwaitOperator
from headwater.operators.waiting.block import BlockOperator
from headwater.operators.waiting.finalize import FinalizeOperator
from headwater.operators.waiting.settle import SettleOperator
from headwater.operators.waiting.settle_starts import SettleStartsOperator
from headwater.operators.windows.frame_values import FrameCall
from headwater.operators.windows.frames import FramesOperator
from headwater.operators.windows.row_window import RowWindowOperator
from headwater.operators.windows.session_window import SessionWindowOperator

BID = Schema.of(auction="BIGINT", price="DOUBLE")
PAIR = Schema.of(auction="BIGINT", price="DOUBLE", pair=pa.struct({"c0": pa.float64(), "c1": pa.float64()}))
EVENT = Schema.of(auction="BIGINT", price="DOUBLE", deleted="BOOLEAN")
SIGNED = Schema.of(auction="BIGINT", price="DOUBLE", sign="INT")
AUCTION = Schema.of(auction="BIGINT", seller="BIGINT")
KEY = Schema.of(auction="BIGINT")

_COUNT = Call("COUNT", "n", pa.int64())
_SUM = Call("SUM", "total", pa.float64(), "price")
_MAX = Call("MAX", "highest", pa.float64(), "price")
_FRAMES = (
    FrameCall("SUM", "total", pa.float64(), "price"),
    FrameCall("AVG", "mean", pa.float64(), "price", first=q.ROWS - 1),
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
    """M rows/s that a throw-away prototype reached on one core; it did not have every operator."""


_KEYS = [("auction", "auction")]
_DEAREST = [SortColumn("price", descending=True, nulls_first=False)]


def _aggregate(*calls: Call) -> Operator:
    return AggregateOperator([PAIR if calls[0].argument == "pair" else BID], ["auction"], calls, revisable=False)


class Range:
    """An aggregate in Python: the largest value less the smallest."""

    def init(self, x: float) -> tuple[float, float]:
        return x, x

    def merge(self, state: tuple[float, float], x: float) -> tuple[float, float]:
        return min(state[0], x), max(state[1], x)

    def eval(self, state: tuple[float, float]) -> float:
        return state[1] - state[0]


def _of_a_user() -> Operator:
    return _aggregate(Call("RANGE", "r", pa.float64(), "price", parameters=("benchmarks.cases:Range",)))


def _sessions() -> Operator:
    ends = {"start": "session_start", "end": "session_end", "time": pa.int64()}
    return SessionWindowOperator(BID, q.GAP, ["auction"], **ends, speculative=False)


def _keyed_table() -> Operator:
    return KeyedTableOperator(EVENT, BID, ["auction"], "deleted")


CASES = (
    Case(
        "COUNT + SUM per key, strong",
        lambda: AggregateOperator([BID], ["auction"], [_COUNT, _SUM], revisable=False),
        ("bid",),
        q.MOVING_SUM,
        6.5,
    ),
    Case(
        "COUNT + SUM + MAX per key, strong",
        lambda: AggregateOperator([BID], ["auction"], [_COUNT, _SUM, _MAX], revisable=False),
        ("bid",),
        q.MOVING_MAX,
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
        q.JOIN,
        8.0,
    ),
    Case("DISTINCT", lambda: CountSweepOperator(KEY, "distinct"), ("key",), q.DISTINCT, 7.0),
    Case("EXCEPT ALL", lambda: CountSweepOperator(KEY, "except all"), ("auction key", "key"), q.EXCEPT, 7.0),
    Case(
        f"last {q.ROWS} rows per key",
        lambda: RowWindowOperator(BID, q.ROWS, partition=["auction"], speculative=False),
        ("chronon",),
        q.LAST_ROWS,
        7.8,
    ),
    Case("MEDIAN per key", lambda: _aggregate(Call("MEDIAN", "m", pa.float64(), "price")), ("bid",), q.MOVING_MEDIAN),
    Case("CORR per key", lambda: _aggregate(Call("CORR", "c", pa.float64(), "pair")), ("pair",), q.MOVING_CORRELATION),
    Case("MAX_BY per key", lambda: _aggregate(Call("MAX_BY", "m", pa.float64(), "pair")), ("pair",), q.HIGHEST_BY),
    Case("an aggregate of a user per key", _of_a_user, ("bid",), None),
    Case("outer join", lambda: OuterJoinOperator(BID, AUCTION, _KEYS), ("bid", "auction"), q.OUTER_JOIN),
    Case("semi join", lambda: SemiJoinOperator(BID, AUCTION, _KEYS), ("bid", "auction"), q.SEMI_JOIN),
    Case("anti join", lambda: SemiJoinOperator(BID, AUCTION, _KEYS, kind="anti"), ("bid", "auction"), q.ANTI_JOIN),
    Case("INTERSECT ALL", lambda: CountSweepOperator(KEY, "intersect all"), ("auction key", "key"), q.INTERSECT),
    Case("session windows, gap 2 s", _sessions, ("chronon",), q.SESSIONS),
    Case("top 3 per key", lambda: TopKOperator(BID, _DEAREST, 3, 0, ["auction"]), ("bid",), q.FIRST_OF_GROUPS),
    Case("Istream", lambda: ChangesOperator(KEY, "istream"), ("key",), q.ARRIVALS),
    Case("from signed rows", lambda: FromSignedOperator(SIGNED), ("signed",), q.LIVES),
    Case("refreshes every 10 s", lambda: SampleOperator(BID, q.PERIOD), ("bid",), q.REFRESHES),
    Case("pieces of 20 s", lambda: SplitOperator(BID, q.PIECE), ("bid",), q.PIECES),
    Case("keyed table", _keyed_table, ("event",), q.LATEST),
    Case("standing rows", lambda: StandingRowsOperator(BID), ("bid",), None),
    Case("hand over", lambda: HandOverOperator(BID, ("auction",)), ("bid",), None),
    Case("repair", lambda: RepairOperator(BID), ("bid",), None),
    Case("check changes", lambda: CheckChangesOperator(BID, "bid"), ("bid",), None),
    Case("align", lambda: AlignOperator(BID), ("bid",), q.BY_END),
    Case("align starts", lambda: AlignStartsOperator(BID), ("bid",), q.BY_START),
    Case("settle", lambda: SettleOperator(BID), ("bid",), q.BY_END),
    Case("settle starts", lambda: SettleStartsOperator(BID), ("bid",), q.BY_START),
    Case("block", lambda: BlockOperator(BID, ["auction"]), ("bid",), q.BY_START),
    Case("await", lambda: AwaitOperator(BID, ["auction"]), ("bid", "auction"), q.BY_START),
    Case("finalize", lambda: FinalizeOperator(BID, ["auction"]), ("bid",), None),
    Case(
        f"OVER: running SUM, AVG of {q.ROWS} rows, LAG",
        lambda: FramesOperator(BID, _FRAMES, ["auction"], speculative=False),
        ("chronon",),
        q.OVER,
    ),
    Case(
        f"OVER: running SUM, AVG of {q.ROWS} rows, LAG, speculative",
        lambda: FramesOperator(BID, _FRAMES, ["auction"], speculative=True),
        ("chronon",),
        None,
    ),
)
"""Every stateful operator; one that only keeps what is handed over to it, or was never late, has nothing to ask DuckDB."""


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
    if stream == "pair":
        fields = [pa.array(bids.price[bid]), pa.array(bids.time[bid].astype(np.float64))]
        pairs = pa.StructArray.from_arrays(fields, names=["c0", "c1"])
        return _windowed(PAIR, [bids.auction[bid], bids.price[bid], pairs], bids.time[bid], WINDOW)
    if stream == "event":
        deleted = bids.bidder[bid] % 16 == 0
        return _windowed(EVENT, [bids.auction[bid], bids.price[bid], deleted], bids.time[bid], 1)
    if stream == "signed":
        come, gone = (np.full(len(bids.time[bid]), sign, np.int32) for sign in (1, -1))
        arrivals = _windowed(SIGNED, [bids.auction[bid], bids.price[bid], come], bids.time[bid], 1)
        return Delta.concat(
            SIGNED,
            [arrivals, _windowed(SIGNED, [bids.auction[bid], bids.price[bid], gone], bids.time[bid] + WINDOW, 1)],
        )
    if stream == "key":
        return _windowed(KEY, [bids.auction[bid]], bids.time[bid], WINDOW)
    if stream == "auction":
        return _windowed(AUCTION, [auctions.auction[auction], auctions.seller[auction]], auctions.time[auction], WINDOW)
    return _windowed(KEY, [auctions.auction[auction]], auctions.time[auction], WINDOW)


def _windowed(schema: Schema, columns: Sequence[np.ndarray | pa.Array], start: Int64Array, window: int) -> Delta:
    arrays = [c if isinstance(c, pa.Array) else pa.array(c) for c in columns]
    return Delta(schema, arrays, start, start + window, np.ones(len(start), np.int64))
