"""Unnest: a row per item."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.operators.rows.unnest import UnnestOperator

BELOW = Schema.of(k=pa.int64(), a=pa.list_(pa.int64()), v=pa.string())
ROWS = [
    ((1, [5, None, 5], "x"), 0, 4, 2),
    ((2, [], "y"), 1, 3, 1),
    ((3, None, "z"), 1, 9, 1),
    ((1, [5], "x"), 2, 4, -1),
]


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("place", [False, True])
@pytest.mark.parametrize("first", [0, 1])
def test_a_row_per_item_with_the_intervals_and_weights_of_the_row(outer: bool, place: bool, first: int):
    """Also of a part of a column, whose items do not begin at the beginning."""
    schema = Schema.of(k=pa.int64(), v=pa.string(), x=pa.int64(), **({"n": pa.int64()} if place else {}))
    operator = UnnestOperator(BELOW, schema, "a", place=place, outer=outer)
    whole = Delta.from_rows(BELOW, ROWS)
    delta = Delta(
        BELOW, [c.slice(first) for c in whole.columns], *(t[first:] for t in (whole.start, whole.end, whole.weight))
    )
    expected = []
    for (k, items, v), start, end, weight in ROWS[first:]:
        pairs = list(enumerate(items or (), 1)) or ([(None, None)] if outer else [])
        expected += [((k, v, x, *([n] if place else [])), start, end, weight) for n, x in pairs]
    step = operator.step(None, (delta,), (7,))
    assert step.delta.rows() == expected
    assert step.frontier == 7


def test_items_that_are_structs():
    item = pa.struct({"p": pa.string(), "q": pa.list_(pa.int64())})
    below = Schema.of(a=pa.list_(item))
    operator = UnnestOperator(below, Schema.of(x=item), "a", place=False, outer=False)
    rows = [(([{"p": "u", "q": [1]}, None],), 0, 1, 1), (([{"p": None, "q": None}],), 0, 1, 1)]
    made = operator.step(None, (Delta.from_rows(below, rows),), (1,)).delta
    assert [row for (row,), *_ in made.rows()] == [{"p": "u", "q": [1]}, None, {"p": None, "q": None}]


def test_no_rows():
    operator = UnnestOperator(BELOW, Schema.of(k=pa.int64(), v=pa.string(), x=pa.int64()), "a", place=False, outer=True)
    step = operator.step(None, (Delta.empty(BELOW),), (7,))
    assert History.of(operator.schema, [step.delta]) == History.of(operator.schema, [])
