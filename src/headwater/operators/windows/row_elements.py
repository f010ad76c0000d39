"""The elements of a stream in the order in which row windows count them: by key, start, and the rows' values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.errors import StreamError
from headwater.kernels import rows as kernel
from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity
from headwater.model.order import canonical_ranks
from headwater.state.columns import Columns


class Elements(NamedTuple):
    """Row order[i] occurred before[i] times and occurs after[i] times now; sorted by (key, time, canonical order)."""

    rows: Columns
    order: Int64Array
    time: Int64Array
    before: Int64Array
    after: Int64Array
    groups: Int64Array
    key: Identity  # one per group

    def single(self) -> Elements:
        """One entry for each copy that there is now."""
        if (self.after == 1).all():
            return self
        order, time = np.repeat(self.order, self.after), np.repeat(self.time, self.after)
        groups = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.after)])[self.groups]
        one = np.ones(len(order), np.int64)
        return self._replace(order=order, time=time, before=np.zeros_like(one), after=one, groups=groups)


def columns_of(delta: Delta, partition: Sequence[str]) -> Columns:
    """What is kept of a delta of single instants: key, ``time``, ``weight`` and ``column.i``."""
    columns = Columns.under(delta.key(partition), {"time": delta.start, "weight": delta.weight})
    return columns | Columns.numbered(delta.columns)


def arrange(rows: Columns, before: Int64Array, after: Int64Array) -> Elements:
    """Sort the rows and sum the weights of equal ones; what has none left is gone, and so is a key without rows."""
    key, time = rows.key, rows.time
    order, groups = sort_by_key_time(*key, time)
    distinct = key.take(order[groups[:-1]])
    tied = kernel.find_ties(order, groups, time)
    if len(tied) == 0 and before.min() >= 0 and after.min() > 0:
        return Elements(rows, order, time[order], before[order], after[order], groups, distinct)
    # Ranks are needed only among rows of one key and instant. Equal rows have equal ranks: they serve as identity too.
    where = pa.array(order[tied])
    payload = [column.take(where) for name, column in rows.items() if name.startswith("column.")]
    order, before, after, groups = kernel.settle_ties(
        order, groups, time, tied, canonical_ranks(payload), before, after
    )
    kept = np.flatnonzero(np.diff(groups))
    groups = np.append(groups[kept], groups[-1])
    return Elements(rows, order, time[order], before, after, groups, distinct.take(kept))


def check_ends(delta: Delta) -> None:
    """With a slide, and without a size, a window over an element that never ends does not come to rest (17.2)."""
    endless = np.flatnonzero(delta.end - delta.start != 1)
    if len(endless):
        row = delta.take(endless[:1]).rows()[0][0]
        raise StreamError(
            "ENDLESS_ROWS",
            f"the element {row}, which never ends, would come anew at every instant",
            hint="Let the elements end, or use a window of finitely many rows with slide 1.",
        )
