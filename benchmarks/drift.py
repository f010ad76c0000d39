"""`headwater bench drift`: a sliding SUM over millions of elements: memory stays flat, the sum stays exact."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from rich.table import Table

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.state.store import MemoryStore

_SCHEMA = Schema.of(x="DOUBLE")
_WINDOW = 50_000
_TICK = 100_000


def run_drift(rows: int) -> tuple[list[int], float]:
    """Bytes of state after each tick, and the largest relative error of the last tick's sums against exact summation.

    The values span twelve orders of magnitude, so a plain running sum loses all its digits.
    """
    rng = np.random.default_rng(11)
    operator = AggregateOperator([_SCHEMA], [], [Call("SUM", "total", pa.float64(), "x")], revisable=False)
    state = operator.new_state(MemoryStore())
    sizes: list[int] = []
    window = np.empty(0)
    delta = Delta.empty(operator.schema)
    for at in range(0, rows, _TICK):
        values = rng.normal(size=_TICK) * 10.0 ** rng.integers(-6, 7, _TICK)
        start = np.arange(at, at + _TICK)
        arriving = Delta(_SCHEMA, [pa.array(values)], start, start + _WINDOW, np.ones(_TICK, np.int64))
        delta = operator.step(state, (arriving,), (at + _TICK,)).delta
        sizes.append(state.bytes)
        window = np.concatenate([window, values])[-_TICK - _WINDOW :]
    totals, first = delta.columns[0].to_numpy(), rows - len(window)
    worst = 0.0
    for i in np.linspace(0, len(delta) - 1, 200).astype(int):
        t = int(delta.start[i]) - first
        exact = math.fsum(window[max(t - _WINDOW + 1, 0) : t + 1])
        worst = max(worst, abs(totals[i] - exact) / abs(exact))
    return sizes, worst


def run(rows: int = 10_000_000) -> Table:
    sizes, worst = run_drift(rows)
    middle = sizes[len(sizes) // 2]
    table = Table(title=f"sliding SUM over {rows:,} elements, {_WINDOW:,} live")
    for heading in ("state at half time", "state at the end", "largest relative error"):
        table.add_column(heading, justify="right")
    table.add_row(f"{middle:,} B", f"{sizes[-1]:,} B", f"{worst:.1e}")
    return table
