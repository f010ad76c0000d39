"""The canonical order of rows: by their values, column after column, so that ties in time never depend on arrival.

Ascending, NULL first; NaN after infinity, -0.0 equal to 0.0; strings by bytes, false before true, lists and structs
item by item.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.arrays import Int64Array


def canonical_ranks(columns: Sequence[pa.Array]) -> Int64Array:
    """For each row its place among the distinct rows (0, 1, 2, …); equal rows have equal ranks.

    >>> canonical_ranks([pa.array([2, None, 2, 1]), pa.array(["b", "a", "a", "z"])]).tolist()
    [3, 0, 2, 1]
    """
    assert columns, "a row without columns has no order"
    codes = [code for column in columns for code in _codes(column)]
    order = np.lexsort(codes[::-1])
    rows = len(order)
    differs = np.zeros(rows, np.bool_)
    for code in codes:
        arranged = code[order]
        differs[1:] |= arranged[1:] != arranged[:-1]
    ranks = np.empty(rows, np.int64)
    ranks[order] = np.cumsum(differs)
    return ranks


def _codes(column: pa.Array) -> list[np.ndarray]:
    """Numbers in the order of the values; more than one array: to be compared one after another."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return _codes(column.dictionary_decode())
    if pa.types.is_null(type_):
        return [np.zeros(len(column), np.int64)]
    if pa.types.is_struct(type_):
        return [_valid(column), *(code for field in column.flatten() for code in _codes(field))]
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return [_list_codes(column)]
    if pa.types.is_floating(type_):
        return _with_nulls(column, _float_codes(column))
    if pa.types.is_boolean(type_):
        return _codes(column.cast(pa.int8()))
    if pa.types.is_integer(type_):
        filled = pc.fill_null(column, 0) if column.null_count else column
        return _with_nulls(column, filled.to_numpy(zero_copy_only=False))
    # Strings, decimals, dates, times: Arrow compares them as we do.
    options = pc.RankOptions(sort_keys=[("", "ascending", "at_start")], tiebreaker="dense")
    ranks = pc.call_function("rank", [column], options)
    return [ranks.to_numpy(zero_copy_only=False)]


def _valid(column: pa.Array) -> np.ndarray:
    return column.is_valid().to_numpy(zero_copy_only=False)


def _with_nulls(column: pa.Array, codes: np.ndarray) -> list[np.ndarray]:
    return [_valid(column), codes] if column.null_count else [codes]


def _float_codes(column: pa.Array) -> np.ndarray:
    values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)  # one NaN, and no -0.0
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _list_codes(column: pa.Array) -> Int64Array:
    """Ranks of whole lists: item by item, a prefix before what continues it. Not vectorised: lists in ties are rare."""
    items = column.flatten()  # without the items that hide under NULL
    ranks = canonical_ranks([items]).tolist()
    sizes = pc.fill_null(column.value_lengths(), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(sizes).tolist()
    valid = _valid(column).tolist()
    lists = [(ok, tuple(ranks[end - size : end])) for ok, end, size in zip(valid, ends, sizes.tolist(), strict=True)]
    places = {value: place for place, value in enumerate(sorted(set(lists)))}
    return np.array([places[value] for value in lists], np.int64)
