"""`headwater bench state`: the time of a tick of 10,000 rows as the state grows, in memory and on mapped files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen
from rich.table import Table

from benchmarks.case_queries import ROWS
from benchmarks.cases import AUCTION, BID, KEY
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.operators.base import Operator
from headwater.operators.joins.join import JoinOperator
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.operators.windows.row_window import RowWindowOperator
from headwater.state.store import FileStore, MemoryStore, Store

DELTA = 10_000
LIVE = (10_000, 100_000, 1_000_000, 10_000_000)
_TICKS = 40
_FILL = 500_000  # rows per tick while the state is built up
_STEP = 1_000  # instants between two rows


@frozen
class StateCase:
    """An operator whose state holds so many live elements: ``sides`` inputs share them; ``keys_a_row`` sets the keys."""

    title: str
    make: Callable[[], Operator]
    schemas: tuple[Schema, ...]
    rows_a_key: int = 10
    by_rows: bool = False
    """Elements live until so many later ones of their key have come, not for a time."""
    fill_at_once: bool = False
    """All that is there before the measured ticks begins at one instant: as many keys hold back that one."""


_CALLS = [Call("COUNT", "n", pa.int64()), Call("SUM", "total", pa.float64(), "price")]

CASES = (
    StateCase(
        "join",
        lambda: JoinOperator(BID, AUCTION, [("auction", "auction")], None, revisable=False),
        (BID, AUCTION),
        rows_a_key=2,
    ),
    StateCase("COUNT + SUM per key", lambda: AggregateOperator([BID], ["auction"], _CALLS, revisable=False), (BID,)),
    StateCase("DISTINCT", lambda: CountSweepOperator(KEY, "distinct"), (KEY,)),
    StateCase("EXCEPT ALL", lambda: CountSweepOperator(KEY, "except all"), (KEY, KEY)),
    StateCase(
        f"last {ROWS} rows per key",
        lambda: RowWindowOperator(BID, ROWS, partition=["auction"], speculative=False),
        (BID,),
        by_rows=True,
    ),
    StateCase(
        "last row per key, filled at one instant",
        lambda: RowWindowOperator(BID, 1, partition=["auction"], speculative=False),
        (BID,),
        rows_a_key=1,
        by_rows=True,
        fill_at_once=True,
    ),
)


def _ticks(case: StateCase, live: int) -> Iterator[tuple[tuple[Delta, ...], tuple[int, ...], bool]]:
    """Deltas and frontiers; the flag says which ticks are measured. Live elements are spread evenly over the inputs."""
    rng = np.random.default_rng(3)
    keys, window = max(live // case.rows_a_key, 1), live * _STEP
    at = 0
    sizes = [_FILL] * (2 * live // _FILL) or [live, live]
    for size, measured in [
        *((s, False) for s in sizes),
        *((DELTA, False) for _ in range(5)),
        *((DELTA, True) for _ in range(_TICKS)),
    ]:
        start = (at + np.arange(size)) * _STEP
        if case.fill_at_once and at < sum(sizes):
            start[:] = 0
        at += size
        deltas = []
        for side, schema in enumerate(case.schemas):
            mine = start[side :: len(case.schemas)]
            end = mine + (1 if case.by_rows else window)
            columns = [pa.array(rng.integers(0, keys, len(mine)))]
            columns += [
                pa.array(rng.random(len(mine)) if f.name == "price" else rng.integers(0, 1000, len(mine)))
                for f in schema.fields[1:]
            ]
            deltas.append(Delta(schema, columns, mine, end, np.ones(len(mine), np.int64)))
        yield tuple(deltas), (int(start[-1]),) * len(deltas), measured


def measure(case: StateCase, live: int, store: Store) -> tuple[float, float, Any]:
    """Median and worst milliseconds of a tick, and the state it left."""
    operator = case.make()
    state = operator.new_state(store)
    times = []
    for deltas, frontiers, measured in _ticks(case, live):
        began = time.perf_counter()
        operator.step(state, deltas, frontiers)
        if measured:
            times.append((time.perf_counter() - began) * 1e3)
        elif isinstance(store, FileStore):
            store.sweep({segment.name for segment in state.segments()})
    return float(np.median(times)), max(times), state


def run(sizes: tuple[int, ...] = LIVE) -> Table:
    """One table: median ms per tick by live elements, growth from 100 k to the largest, bytes per live element."""
    table = Table(title=f"median ms of a tick of {DELTA:,} rows by live elements (worst in brackets)")
    table.add_column("operator")
    table.add_column("state")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    table.add_column("growth", justify="right")
    table.add_column("bytes/element", justify="right")
    measure(CASES[1], sizes[0], MemoryStore())  # warm the kernels
    for case in CASES:
        for kind in ("memory", "files"):
            medians, shown, per_row = [], [], 0.0
            for live in sizes:
                with tempfile.TemporaryDirectory() as folder:
                    store = MemoryStore() if kind == "memory" else FileStore(Path(folder))
                    median, worst, state = measure(case, live, store)
                    medians.append(median)
                    shown.append(f"{median:.1f} ({worst:.0f})")
                    per_row = state.bytes / live
                    del state
            growth = medians[-1] / medians[1] if len(medians) > 1 else 1.0
            table.add_row(case.title, kind, *shown, f"{growth:.1f}x", f"{per_row:.0f}")
    return table
