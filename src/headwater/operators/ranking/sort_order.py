"""The order of ORDER BY: sort columns as words that compare as the values do, and with them the place of each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.model.arrays import Int64Array
from headwater.model.order import canonical_ranks
from headwater.operators.words import fits_word, to_words


@frozen
class SortColumn:
    """One column to sort by, and where its NULLs go."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        return f"{self.column} {'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def sort_ranks(columns: Sequence[pa.Array], order: Sequence[tuple[pa.Array, SortColumn]]) -> Int64Array:
    """The place 0, 1, 2, … of each row; ``columns`` are the whole rows, which are all different.

    Rows by the sort columns, then by the canonical order of all their values. That one is asked only about rows which the
    sort columns leave tied.

    >>> x, y = pa.array([1.5, None, 2.5, 1.5]), pa.array(["b", "c", "a", "a"])
    >>> sort_ranks([x, y], [(x, SortColumn("x", descending=True, nulls_first=False))]).tolist()
    [2, 3, 0, 1]
    """
    rows = len(columns[0])
    words = [word for column, how in order for word in sort_words(column, how)]
    places = np.lexsort(words[::-1]) if words else np.arange(rows)
    follows = np.zeros(rows + 1, np.bool_)  # tied with the row before
    if rows > 1:
        follows[1:rows] = True
        for word in words:
            arranged = word[places]
            follows[1:rows] &= arranged[1:] == arranged[:-1]
    tied = np.flatnonzero(follows[:-1] | follows[1:])
    if len(tied):
        chosen = places[tied]
        where = pa.array(chosen)
        ranks = canonical_ranks([column.take(where) for column in columns])
        group = np.cumsum(~follows[:-1])[tied]
        places[tied] = chosen[np.lexsort((ranks, group))]
    result = np.empty(rows, np.int64)
    result[places] = np.arange(rows)
    return result


def sort_words(column: pa.Array, how: SortColumn) -> list[Int64Array]:
    """One or two words per value, in the order wished for; to be compared one after another.

    Numbers, dates, times and truth values as their bits (NaN is the largest, -0.0 equals 0.0); other types as the place of
    the value among those of the column.
    """
    words = to_words(column) if fits_word(column.type) else canonical_ranks([column])
    words = ~words if how.descending else words
    if column.null_count == 0:
        return [words]
    null = column.is_null().to_numpy(zero_copy_only=False)
    side = null != how.nulls_first  # false sorts first
    return [side.astype(np.int64), np.where(null, 0, words)]
