"""Turn how often a row occurs in one or two inputs into how often it occurs in the output, at every instant."""
#  left   a |-----------------)          left multiplicity n1, right n2
#  right       a |------)
#  except a |--)        |-----)          max(n1 - n2, 0)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.kernels import sweep_counts as kernel
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.base import EVERY_COLUMN
from headwater.operators.sight import Sight
from headwater.operators.sweeps.endpoints import Segments, Swept
from headwater.operators.sweeps.sweep import SweepOperator

KINDS = {
    "distinct": kernel.DISTINCT,
    "coalesce": kernel.BAG,
    "except all": kernel.EXCEPT_ALL,
    "except": kernel.EXCEPT,
    "strict difference": kernel.STRICT_DIFFERENCE,
    "intersect all": kernel.INTERSECT_ALL,
    "intersect": kernel.INTERSECT,
    "max union": kernel.MAX_UNION,
    "semi": kernel.SEMI,
}
_NO_WORDS = np.empty((0, 0), np.int64)  # the multiplicity is the whole answer
_UNARY = ("distinct", "coalesce")


class CountSweepOperator(SweepOperator):
    """DISTINCT, EXCEPT [ALL], INTERSECT [ALL], strict difference, max-union, coalesce, and semi-join by row.

    State: per distinct row two counts and the start of its open segment; per live row one end still to come.
    """

    name = "count sweep"
    totals = 2

    def __init__(
        self,
        schema: Schema,
        kind: str,
        *,
        longest: int = INFINITY,
        speculative: bool = False,
        hold: bool = True,
        once: bool = False,
    ) -> None:
        super().__init__(schema.types, longest=longest, speculative=speculative, hold=hold, once=once)
        self.schema, self._kind = schema, kind
        self._code = KINDS[kind]
        self.arity = 1 if kind in _UNARY else 2

    def describe(self) -> dict[str, object]:
        return {"kind": self._kind, "speculative": self._speculative}

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (EVERY_COLUMN,) * self.arity

    def sight(self, port: int) -> Sight | None:
        return Sight(every=True)

    def key_columns(self, delta: Delta, port: int) -> tuple[Identity, Sequence[pa.Array]]:
        return delta.key(), delta.columns

    def sweep(self, swept: Swept, totals: Int64Array, since: Int64Array, horizon: int, *, show_open: bool) -> Segments:
        time, weight = swept.columns["time"], swept.columns["weight"]
        port = swept.columns["port"] if self.arity > 1 else np.zeros(len(time), np.uint8)
        counts = totals[0], totals[1]
        parts = kernel.sweep_counts(self._code, swept.groups, time, port, weight, *counts, since, horizon, show_open)
        return Segments(*parts, parts[0], _NO_WORDS)

    def open_segments(self, totals: Int64Array, since: Int64Array) -> Segments:
        count = kernel.all_multiplicities(self._code, totals[0], totals[1])
        key = np.flatnonzero(count > 0)
        end = np.full(len(key), INFINITY, np.int64)
        return Segments(key, since[key], end, count[key], key, _NO_WORDS)

    def is_dead(self, totals: Int64Array) -> BoolArray:
        return (totals[0] == 0) & (totals[1] == 0)

    def is_silent(self, totals: Int64Array) -> BoolArray:
        return kernel.all_multiplicities(self._code, totals[0], totals[1]) <= 0

    def output(self, state: Any, key: Identity, segments: Segments, columns: Sequence[pa.Array]) -> Delta:
        return Delta(self.schema, columns, segments.start, segments.end, segments.weight)
