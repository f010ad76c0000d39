"""`headwater bench kernels`: every stateful operator on one core, beside DuckDB doing the same job in one shot."""

from __future__ import annotations

import time

import duckdb
import pyarrow as pa
from rich.table import Table

from benchmarks.cases import CASES, Case, ticks
from benchmarks.data import Auctions, Bids, make_auctions, make_bids
from headwater.state.store import MemoryStore

_REPEATS = 6


def measure(case: Case, bids: Bids, auctions: Auctions, rows: int) -> tuple[float, int]:
    """Best rate in M input rows per second, and the number of output rows."""
    inputs = list(ticks(case, bids, auctions, rows))
    total = sum(len(delta) for deltas, _ in inputs for delta in deltas)
    best, out = 0.0, 0
    for _ in range(_REPEATS):
        operator = case.make()
        state = operator.new_state(MemoryStore())
        began = time.process_time()
        out = sum(len(operator.step(state, deltas, frontiers).delta) for deltas, frontiers in inputs)
        best = max(best, total / (time.process_time() - began) / 1e6)
    return best, out


def measure_duckdb(case: Case, bids: Bids, auctions: Auctions) -> float | None:
    """Rate of one single-threaded query over the same rows in memory, its result as Arrow."""
    if case.sql is None:
        return None
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET enable_progress_bar = false")
    connection.register("bids", pa.table({"auction": bids.auction, "price": bids.price, "ts": bids.time}))
    connection.register(
        "auctions", pa.table({"auction": auctions.auction, "seller": auctions.seller, "ts": auctions.time})
    )
    connection.execute("CREATE TABLE bid AS SELECT * FROM bids")
    connection.execute("CREATE TABLE auction AS SELECT * FROM auctions")
    total = len(bids.time) + (len(auctions.time) if len(case.streams) > 1 else 0)
    best = 0.0
    for _ in range(_REPEATS):
        began = time.process_time()
        connection.sql(case.sql).to_arrow_table()
        best = max(best, total / (time.process_time() - began) / 1e6)
    return best


def run(rows: int = 1_000_000, tick: int = 100_000) -> Table:
    """The table: M rows/s per core, ours and DuckDB's, in one run."""
    bids, auctions = make_bids(rows), make_auctions(rows)
    table = Table(
        title=f"{rows:,} bids, 60 s windows, {tick:,} rows per tick, one core, M rows/s (CPU time, best of {_REPEATS})"
    )
    for heading in ("operator", "Headwater", "rows out", "DuckDB, one shot", "ratio", "prototype", "of it"):
        table.add_column(heading, justify="left" if heading == "operator" else "right")
    for case in CASES:
        ours, out = measure(case, bids, auctions, tick)
        theirs = measure_duckdb(case, bids, auctions)
        table.add_row(
            case.title,
            f"{ours:.1f}",
            f"{out:,}",
            "cannot" if theirs is None else f"{theirs:.1f}",
            "" if theirs is None else f"{ours / theirs:.1f}x",
            "" if case.expected is None else f"{case.expected:.1f}",
            "" if case.expected is None else f"{100 * ours / case.expected:.0f} %",
        )
    return table
