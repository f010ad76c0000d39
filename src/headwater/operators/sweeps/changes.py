"""What enters and what leaves at each instant: Istream, Dstream, and intervals as signed instants."""
#  in       a |--------)     a |----)
#  Istream  a |)             a |)
#  Dstream            a |)         a |)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.kernels.sweep_counts import sweep_changes
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity
from headwater.model.schema import Field, Schema
from headwater.operators.sight import Sight
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.operators.sweeps.endpoints import Segments, Swept
from headwater.operators.sweeps.sweep import SweepOperator
from headwater.state.columns import Columns


class ChangesOperator(SweepOperator):
    """One element [t, t+1) for each copy of a row that appears (Istream) or disappears (Dstream) at t.

    Multiset differences of neighbouring snapshots (Krämer 17.2 with errata E11); a disappearance is stamped at the first
    instant without the row, as in CQL. ``signed``: both, with a column that says +1 or -1 (the positive-negative form).
    State: per live row value its count, and one end to come a live row.
    """

    name = "changes"
    totals = 1

    def __init__(self, schema: Schema, kind: str, *, sign: str = "sign", speculative: bool = False) -> None:
        super().__init__(schema.types, speculative=speculative)
        self._input, self._kind = schema, kind
        signed = (Field(sign, pa.int32(), nullable=False),) if kind == "signed" else ()
        self.schema = Schema(schema.fields + signed)

    def describe(self) -> dict[str, object]:
        return {"kind": self._kind, "speculative": self._speculative}

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self._input.names,)

    def key_columns(self, delta: Delta, port: int) -> tuple[Identity, Sequence[pa.Array]]:
        return delta.key(), delta.columns

    def sweep(self, swept: Swept, totals: Int64Array, since: Int64Array, horizon: int, *, show_open: bool) -> Segments:
        key, instant, change = sweep_changes(swept.groups, swept.columns["time"], swept.columns["weight"])
        past = instant < horizon
        np.add.at(totals[0], key[past], change[past])
        if self._kind != "signed":
            shown = np.flatnonzero(change > 0 if self._kind == "istream" else change < 0)
            key, instant, change = key[shown], instant[shown], change[shown]
        return Segments(key, instant, instant + 1, np.abs(change), np.arange(len(key)), np.sign(change)[None, :])

    def open_segments(self, totals: Int64Array, since: Int64Array) -> Segments:
        nothing = np.empty(0, np.int64)
        return Segments(nothing, nothing, nothing, nothing, nothing, np.empty((1, 0), np.int64))

    def is_dead(self, totals: Int64Array) -> BoolArray:
        return totals[0] == 0

    def is_silent(self, totals: Int64Array) -> BoolArray:
        return np.ones(totals.shape[1], np.bool_)

    def output(self, state: Any, key: Identity, segments: Segments, columns: Sequence[pa.Array]) -> Delta:
        signs = [pa.array(segments.words[0][segments.source].astype(np.int32))] if self._kind == "signed" else []
        return Delta(self.schema, [*columns, *signs], segments.start, segments.end, segments.weight)


class FromSignedOperator(CountSweepOperator):
    """Signed instants as intervals: +1 opens an element of the row, -1 closes one (Krämer 17.3)."""

    name = "from signed"

    def __init__(self, schema: Schema, sign: str = "sign", *, speculative: bool = False, hold: bool = True) -> None:
        rest = Schema(tuple(f for f in schema if f.name != sign))
        super().__init__(rest, "coalesce", speculative=speculative, hold=hold)
        self._sign = sign

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self.schema.names,)

    def sight(self, port: int) -> Sight | None:
        return None  # a sign says what begins and what ends

    def key_columns(self, delta: Delta, port: int) -> tuple[Identity, Sequence[pa.Array]]:
        return delta.key(self.schema.names), [delta.column(n) for n in self.schema.names]

    def _endpoints(self, delta: Delta, port: int, bounds: Sequence[tuple[int, int]]) -> list[Columns]:
        sign = delta.column(self._sign).to_numpy(zero_copy_only=False).astype(np.int64)
        key, payload = self.key_columns(delta, port)
        whole = Columns.under(key, {"time": delta.start, "weight": delta.weight * sign})
        if not self._recoverable:
            whole |= {"begins": (sign > 0).astype(np.uint8)}
            whole |= {f"key.{i}": column for i, column in enumerate(payload)}
        return [whole.where((delta.start >= low) & (delta.start < high)) for low, high in bounds]
