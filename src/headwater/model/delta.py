"""A delta: what happens to a stream in one tick, as a weighted set of (row, interval) in Arrow columns.

Weight +n adds n copies of the row over ``[start, end)``, -n takes them away; an adjust is one row with -1 and one with +1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from headwater.kernels.consolidate import consolidate_rows
from headwater.model.arrays import BoolArray, Int64Array, int64_values
from headwater.model.element import Adjust, Insert, Row
from headwater.model.identity import Identity, identify
from headwater.model.python_values import python_values
from headwater.model.schema import END, RESERVED, START, WEIGHT, Schema
from headwater.model.time import BEGINNING

_NO_TIMES = np.empty(0, np.int64)


@lru_cache(maxsize=1024)
def _no_values(type_: pa.DataType) -> pa.Array:
    return pa.array([], type_)


class Delta:
    """Payload columns and the three reserved columns, all of one length.

    Rows whose weights would cancel are tolerated everywhere; ``consolidate`` removes them.
    """

    __slots__ = ("columns", "end", "schema", "start", "weight")

    def __init__(
        self, schema: Schema, columns: Sequence[pa.Array], start: Int64Array, end: Int64Array, weight: Int64Array
    ) -> None:
        assert len(columns) == len(schema)
        self.schema, self.columns = schema, tuple(columns)
        self.start, self.end, self.weight = start, end, weight

    # -- making -----------------------------------------------------------------------------------------------------

    @classmethod
    def empty(cls, schema: Schema) -> Delta:
        return cls(schema, [_no_values(f.type) for f in schema], _NO_TIMES, _NO_TIMES, _NO_TIMES)

    @classmethod
    def from_rows(cls, schema: Schema, rows: Iterable[tuple[Sequence[object], int, int, int]]) -> Delta:
        """From (row, start, end, weight) tuples: for tests and small inputs."""
        listed = list(rows)
        if not listed:
            return cls.empty(schema)
        payload, start, end, weight = zip(*listed, strict=True)
        columns = [pa.array([row[i] for row in payload], f.type) for i, f in enumerate(schema)]
        return cls(schema, columns, *(np.array(x, np.int64) for x in (start, end, weight)))

    @classmethod
    def from_elements(cls, schema: Schema, elements: Iterable[Insert | Adjust]) -> Delta:
        """Inserts and adjusts as weights; stable points are no part of a delta."""
        rows: list[tuple[Sequence[object], int, int, int]] = []
        for element in elements:
            if isinstance(element, Insert):
                rows.append((element.row, element.start, element.end, 1))
            else:
                rows.append((element.row, element.start, element.end, -1))
                if element.new_end > element.start:
                    rows.append((element.row, element.start, element.new_end, 1))
        return cls.from_rows(schema, rows)

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> Delta:
        """From an Arrow batch with the reserved columns."""
        schema = Schema.from_arrow(batch.schema)
        start, end, weight = (int64_values(batch.column(name)) for name in RESERVED)
        return cls(schema, [batch.column(n) for n in schema.names], start, end, weight)

    def to_batch(self) -> pa.RecordBatch:
        arrays = [*self.columns, pa.array(self.start), pa.array(self.end), pa.array(self.weight)]
        reserved = [pa.field(name, pa.int64(), nullable=False) for name in (START, END, WEIGHT)]
        fields = [pa.field(f.name, c.type, f.nullable) for f, c in zip(self.schema, self.columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *reserved]))

    # -- looking ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.start)

    def column(self, name: str) -> pa.Array:
        return self.columns[self.schema.index(name)]

    def key(self, names: Sequence[str] | None = None) -> Identity:
        """The identity of each row by some columns, or by all of them."""
        columns = self.columns if names is None else [self.column(n) for n in names]
        return identify(columns, len(self))

    @property
    def bytes(self) -> int:
        """Its size in memory."""
        return 24 * len(self) + sum(column.nbytes for column in self.columns)

    def largest_start(self) -> int:
        """The largest start of a row that is added."""
        return int(self.start[self.weight > 0].max(initial=BEGINNING))

    def rows(self) -> list[tuple[tuple[object, ...], int, int, int]]:
        """(row, start, end, weight) tuples: the opposite of ``from_rows``."""
        payload = zip(*map(python_values, self.columns), strict=True) if self.columns else [()] * len(self)
        return list(zip(payload, self.start.tolist(), self.end.tolist(), self.weight.tolist(), strict=True))

    def to_elements(self) -> list[Insert | Adjust]:
        """The opposite of ``from_elements``: what goes and what comes of one row and start is one change of its end."""
        low, high = self.key()
        identity = zip(low.tolist(), high.tolist() if len(high) else [0] * len(self), self.start.tolist(), strict=True)
        changes: dict[tuple[int, int, int], tuple[Row, list[int], list[int]]] = {}
        for key, (row, _, end, weight) in zip(identity, self.rows(), strict=True):
            _, gone, come = changes.setdefault(key, (row, [], []))
            (come if weight > 0 else gone).extend([end] * abs(weight))
        elements: list[Insert | Adjust] = []
        for (_, _, start), (row, gone, come) in changes.items():
            gone.sort()
            come.sort()
            ends = come[: len(gone)] + [start] * (len(gone) - len(come))
            elements += [Adjust(row, start, end, new_end) for end, new_end in zip(gone, ends, strict=True)]
            elements += [Insert(row, start, end) for end in come[len(gone) :]]
        return elements

    def __repr__(self) -> str:
        shown = ", ".join(f"{row}[{s},{e}){w:+d}" for row, s, e, w in self.rows()[:20])
        return f"Delta({shown}{', …' if len(self) > 20 else ''})"

    # -- changing ---------------------------------------------------------------------------------------------------

    def take(self, indices: Int64Array) -> Delta:
        where = pa.array(indices)
        return Delta(
            self.schema,
            [c.take(where) for c in self.columns],
            self.start[indices],
            self.end[indices],
            self.weight[indices],
        )

    def filter(self, mask: BoolArray) -> Delta:
        if mask.all():
            return self
        kept = pa.array(mask)
        columns = [c.filter(kept) for c in self.columns]
        return Delta(self.schema, columns, self.start[mask], self.end[mask], self.weight[mask])

    def with_times(self, start: Int64Array, end: Int64Array) -> Delta:
        """The same rows over other intervals; rows whose interval became empty are dropped."""
        moved = Delta(self.schema, self.columns, start, end, self.weight)
        return moved.filter(start < end)

    def with_columns(self, schema: Schema, columns: Sequence[pa.Array]) -> Delta:
        return Delta(schema, columns, self.start, self.end, self.weight)

    def select(self, schema: Schema) -> Delta:
        """The columns of these names, however these are spelled."""
        if self.schema.names == schema.names:
            return self
        places = {name.casefold(): i for i, name in enumerate(self.schema.names)}
        return self.with_columns(schema, [self.columns[places[name.casefold()]] for name in schema.names])

    def with_weight(self, weight: Int64Array) -> Delta:
        return Delta(self.schema, self.columns, self.start, self.end, weight)

    def negate(self) -> Delta:
        return self.with_weight(-self.weight)

    @classmethod
    def concat(cls, schema: Schema, deltas: Sequence[Delta]) -> Delta:
        """One delta after another (all of the schema's types)."""
        deltas = [d for d in deltas if len(d)]
        if not deltas:
            return cls.empty(schema)
        if len(deltas) == 1:
            return deltas[0].with_columns(schema, deltas[0].columns)
        columns = [pa.concat_arrays([d.columns[i] for d in deltas]) for i in range(len(schema))]
        times = (np.concatenate([getattr(d, name) for d in deltas]) for name in ("start", "end", "weight"))
        return cls(schema, columns, *times)

    def consolidate(self) -> Delta:
        """Sum the weights of equal (row, interval) and drop what cancels; sorted by (start, end) within equal keys."""
        if len(self) == 0:
            return self
        low, high = self.key()
        kept, weight = consolidate_rows(low, high, self.start, self.end, self.weight)
        if len(kept) == len(self):
            return self
        return self.take(kept).with_weight(weight)

    def split(self, by: Sequence[str], shards: int) -> list[Delta]:
        """One delta per shard, by the top bits of the key's hash: equal keys always go together."""
        if shards == 1:
            return [self]
        shard = shard_of(self.key(by), shards)
        return [self.take(np.flatnonzero(shard == s)) for s in range(shards)]


def shard_of(key: Identity, shards: int) -> Int64Array:
    """The shard of each key, from the top 32 bits of its hash."""
    return (((key.low >> np.uint64(32)) * np.uint64(shards)) >> np.uint64(32)).astype(np.int64)
