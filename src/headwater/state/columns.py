"""Row-aligned columns, numpy or Arrow: the small algebra that the state layouts need."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import cast

import numpy as np
import pyarrow as pa

from headwater.kernels.merge import take_two
from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity

Column = np.ndarray | pa.Array


class Columns(Mapping[str, Column]):
    """Columns of the same rows by their names; the key of a row is kept as ``low`` and, if it is wide, ``high``.

    >>> columns = Columns({"time": np.array([3, 5]), "low": np.array([7, 8], np.uint64)})
    >>> columns.take(np.array([1])).time, columns.key.low
    (array([5]), array([7, 8], dtype=uint64))
    """

    __slots__ = ("_by_name",)

    def __init__(self, by_name: Mapping[str, Column] | None = None) -> None:
        self._by_name = by_name._by_name if isinstance(by_name, Columns) else {} if by_name is None else by_name

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def items(self) -> ItemsView[str, Column]:
        return self._by_name.items()

    def values(self) -> ValuesView[Column]:
        return self._by_name.values()

    def __or__(self, other: Mapping[str, Column]) -> Columns:
        return Columns({**self._by_name, **other})

    def __ror__(self, other: Mapping[str, Column]) -> Columns:
        return Columns({**other, **self._by_name})

    @classmethod
    def under(cls, key: Identity, columns: Mapping[str, Column]) -> Columns:
        """The columns, and after them those of the key."""
        return cls({**columns, "low": key.low, "high": key.high} if len(key.high) else {**columns, "low": key.low})

    @classmethod
    def numbered(cls, columns: Iterable[Column]) -> Columns:
        """The columns of rows that are kept as they are: ``column.0`` and so on; ``payload`` gives them back."""
        return cls({f"column.{i}": column for i, column in enumerate(columns)})

    @classmethod
    def concat(cls, parts: Sequence[Columns]) -> Columns:
        """One after another, contiguous; all parts have the same columns."""
        return cls({name: concat_column([p[name] for p in parts]) for name in parts[0]})

    @property
    def rows(self) -> int:
        return len(next(iter(self._by_name.values()))) if self._by_name else 0

    def identity(self, prefix: str = "") -> Identity:
        """What is kept as ``<prefix>low`` and ``<prefix>high``."""
        low, high = self._by_name[f"{prefix}low"], self._by_name.get(f"{prefix}high")
        return Identity(low) if high is None else Identity(low, high)

    @property
    def key(self) -> Identity:
        return self.identity()

    @property
    def time(self) -> Int64Array:
        return self.array("time")

    @property
    def weight(self) -> Int64Array:
        """As it was before it was compressed."""
        return np.ascontiguousarray(self["weight"], np.int64)

    @property
    def nbytes(self) -> int:
        return sum(c.itemsize if is_constant(c) else int(c.nbytes) for c in self.values())

    def array(self, name: str) -> np.ndarray:
        """A column that is known to be of numpy."""
        column = self[name]
        assert isinstance(column, np.ndarray)
        return column

    def arrow(self, name: str) -> pa.Array:
        """A column that is known to be of Arrow."""
        column = self[name]
        assert isinstance(column, pa.Array)
        return column

    def payload(self, width: int) -> list[pa.Array]:
        return [self[f"column.{i}"] for i in range(width)]

    def only(self, names: Iterable[str]) -> Columns:
        return Columns({name: self[name] for name in names})

    def without(self, *names: str) -> Columns:
        return Columns({name: column for name, column in self.items() if name not in names})

    def take(self, indices: np.ndarray) -> Columns:
        return Columns({name: take_column(column, indices) for name, column in self.items()})

    def where(self, mask: np.ndarray) -> Columns:
        return self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> Columns:
        return Columns(
            {
                name: column[start:stop] if isinstance(column, np.ndarray) else column.slice(start, stop - start)
                for name, column in self.items()
            }
        )

    def compress(self, names: Iterable[str]) -> Columns:
        """The same columns with the named ones kept small: a single value once, int64 that fits a byte as bytes.

        Whoever reads them back widens them again.
        """
        packed = dict(self._by_name)
        for name in names:
            column = packed.get(name)
            if not isinstance(column, np.ndarray) or len(column) < 2:
                continue
            least, most = column.min(), column.max()
            if least == most:
                packed[name] = np.broadcast_to(column[:1].copy(), len(column))
            elif column.dtype == np.int64 and least >= -128 and most <= 127:
                packed[name] = column.astype(np.int8)
        return Columns(packed)


def is_constant(column: Column) -> bool:
    """Is it a constant column, kept as one value that is repeated by a stride of zero?"""
    return isinstance(column, np.ndarray) and column.strides == (0,) and len(column) > 0  # empty ones have it too


def once(column: Column) -> np.ndarray:
    """A constant column as its one value, any other as it is: for kernels that take either."""
    assert isinstance(column, np.ndarray)
    return column[:1].copy() if is_constant(column) else column


def take_column(column: Column, indices: np.ndarray) -> Column:
    if isinstance(column, np.ndarray):
        if is_constant(column):  # numpy's take would first write out the whole column
            return np.full(len(indices), column[0], column.dtype)
        return column.take(indices, axis=0)
    return column.take(pa.array(indices))


def take_either(older: Column, newer: Column, indices: np.ndarray) -> Column:
    """Rows of two columns, one after another: indices count on from the older one's into the newer one's."""
    if isinstance(older, np.ndarray) and isinstance(newer, np.ndarray):
        return take_two(np.ascontiguousarray(older), np.ascontiguousarray(newer), indices)
    return take_column(concat_column([older, newer]), indices)


def concat_column(parts: Sequence[Column]) -> Column:
    if len(parts) == 1:
        part = parts[0]
        return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(cast("Sequence[np.ndarray]", parts))
    return pa.concat_arrays(cast("Sequence[pa.Array]", parts))
