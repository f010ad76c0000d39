"""The canonical order of rows."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from headwater.model.order import canonical_ranks

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("type_", "ordered"),
    [
        (pa.int64(), [None, -(2**63), -1, 0, 2**63 - 1]),
        (pa.uint64(), [None, 0, 1, 2**63, 2**64 - 1]),
        (pa.int8(), [-128, 0, 127]),
        (pa.float64(), [None, -INF, -1.5, -1e-300, 0.0, 1e-300, 1.5, INF, NAN]),
        (pa.float32(), [None, -INF, -1.5, 0.0, 2.5, INF, NAN]),
        (pa.bool_(), [None, False, True]),
        (pa.string(), [None, "", "A", "a", "aa", "b", "é", "😀"]),
        (pa.binary(), [None, b"", b"\x00", b"a", b"\xff"]),
        (pa.decimal128(10, 2), [None, Decimal("-1.50"), Decimal("0.00"), Decimal("100.00")]),
        (pa.date32(), [None, date(1960, 1, 1), date(2026, 1, 1)]),
        (pa.timestamp("us"), [None, datetime(1960, 1, 1), datetime(2026, 1, 1)]),
        (pa.dictionary(pa.int32(), pa.string()), [None, "a", "b"]),
        (pa.list_(pa.float64()), [None, [], [None], [1.0], [1.0, None], [1.0, 2.0], [NAN]]),
        (
            pa.struct({"x": pa.int64(), "y": pa.string()}),
            [None, {"x": None, "y": "b"}, {"x": 1, "y": None}, {"x": 1, "y": "a"}],
        ),
        (pa.list_(pa.struct({"x": pa.int64()})), [None, [], [{"x": 1}], [{"x": 1}, {"x": 1}], [{"x": 2}]]),
    ],
    ids=str,
)
def test_values_are_ranked_in_order(type_, ordered):
    places = [3, 0, *range(len(ordered) - 1, -1, -1), 1, 1]
    places = [p % len(ordered) for p in places]
    column = pa.array([ordered[p] for p in places], type_)
    assert canonical_ranks([column]).tolist() == places
    assert canonical_ranks([column.slice(2, len(ordered))]).tolist() == places[2 : 2 + len(ordered)]


def test_zero_has_no_sign_and_there_is_one_nan():
    ranks = canonical_ranks([pa.array([0.0, -0.0, NAN, -NAN, 1.0])])
    assert ranks.tolist() == [0, 0, 2, 2, 1]


def test_columns_are_compared_in_turn():
    left, right = pa.array([1, None, 1, 0, 1]), pa.array(["b", "z", "a", None, "b"])
    assert canonical_ranks([left, right]).tolist() == [3, 0, 2, 1, 3]


def test_hidden_items_of_null_lists_and_structs_do_not_count():
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([7, 8, 9]), mask=pa.array([True, False]))
    assert canonical_ranks([pa.concat_arrays([lists, pa.array([None, [9]], lists.type)])]).tolist() == [0, 1, 0, 1]
    struct = pa.StructArray.from_arrays([pa.array([5, 6])], ["x"], mask=pa.array([True, True]))
    assert canonical_ranks([struct]).tolist() == [0, 0]


def test_no_rows_have_no_ranks():
    assert canonical_ranks([pa.array([], pa.string()), pa.array([], pa.float64())]).tolist() == []
    assert canonical_ranks([pa.nulls(3)]).tolist() == [0, 0, 0]
