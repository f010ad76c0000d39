"""Histories: coalesced, canonical, comparable."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.element import Stable
from headwater.model.history import History, canonical_order
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.testing import strategies
from headwater.testing.timeline import LETTERS, changes, history, timeline

NAN = float("nan")


def of(schema: Schema, *rows: tuple) -> History:
    return History.of(schema, [Delta.from_rows(schema, rows)])


def test_adjacent_and_overlapping_intervals_are_cut_where_the_multiplicity_changes():
    assert history("a 1-5, a 3-9, b 2-").rows() == [
        (("a",), 1, 3, 1),
        (("b",), 2, INFINITY, 1),
        (("a",), 3, 5, 2),
        (("a",), 5, 9, 1),
    ]
    assert history("a 1-5, a 5-9").rows() == [(("a",), 1, 9, 1)]


def test_the_cutting_of_intervals_does_not_matter():
    # The two streams of algebra.md 2.9.
    assert history("a 1-2, a 2-3, a 2-3, b 2-3") == history("a 1-3, a 2-3, b 2-3")
    assert history("a 1-9, a 1-9>4") == history("a 1-4")
    assert history("a 1-9, a 1-9>1") == history("")


def test_the_order_of_deltas_does_not_matter():
    parts = [changes(timeline(t)) for t in ("a 1-9", "a 1-9>4", "b 2-3", "a 1-4>7")]
    assert History.of(LETTERS, parts) == History.of(LETTERS, parts[::-1]) == history("a 1-7, b 2-3")


def test_histories_of_other_types_differ():
    assert of(Schema.of(x="BIGINT"), ((1,), 1, 2, 1)) != of(Schema.of(x="INT"), ((1,), 1, 2, 1))
    assert history("a 1-2") != history("a 1-2, a 1-2")
    assert history("a 1-2") != "a 1-2"


def test_null_nan_and_nested_values_have_one_identity_each():
    schema = Schema.of(d="DOUBLE", l=pa.list_(pa.int64()), s=pa.struct({"f": pa.float64()}))
    rows = [
        ((NAN, [1, None], {"f": NAN}), 1, 3, 1),
        ((float("-nan"), [1, None], {"f": NAN}), 3, 5, 1),
        ((None, [], None), 2, 4, 1),
        ((None, None, None), 4, 6, 1),
        ((0.0, [1], {"f": None}), 1, 2, 1),
        ((-0.0, [1], {"f": None}), 2, 3, 1),
    ]
    listed = of(schema, *rows).rows()
    assert [(start, end) for _, start, end, _ in listed] == [(1, 3), (1, 5), (2, 4), (4, 6)]
    assert of(schema, *rows).snapshot(2) == of(schema, *rows[::-1]).snapshot(2)


def test_rows_are_sorted_by_start_end_and_value_with_null_first_and_nan_last():
    schema = Schema.of(d="DOUBLE", s="STRING")
    rows = [((v, s), 1, 2, 1) for v in (NAN, 2.0, None, float("-inf")) for s in ("b", None)]
    listed = [row for row, *_ in of(schema, *rows).rows()]
    assert [repr(d) for d, _ in listed] == ["None", "None", "-inf", "-inf", "2.0", "2.0", "nan", "nan"]
    assert [s for _, s in listed] == [None, "b"] * 4
    assert sorted([[1], [], None, [None]], key=canonical_order) == [None, [], [None], [1]]


def test_a_stream_without_columns_has_a_history():
    nothing = Schema(())
    assert of(nothing, ((), 1, 3, 2), ((), 3, 4, 2)).rows() == [((), 1, 4, 2)]


def test_a_negative_multiplicity_is_an_error():
    with pytest.raises(StreamError, match="NEGATIVE_MULTIPLICITY") as caught:
        of(LETTERS, (("a",), 1, 9, 1), (("a",), 3, 5, -2))
    assert "is valid -1 times from 3 to 5" in str(caught.value)


def test_difference_tells_what_is_too_much_and_what_is_missing():
    assert history("a 1-8, c 2-").difference(history("a 1-5, a 5-7, b 1-2, c*2 2-9, c 9-")) == [
        (("b",), 1, 2, -1),
        (("c",), 2, 9, -1),
        (("a",), 7, 8, 1),
    ]
    assert history("a 1-8").difference(history("a 1-3, a 3-8")) == []


def test_snapshot_is_the_multiset_at_an_instant():
    stream = history("a 1-5, a 3-9, b 2-")
    assert stream.snapshot(0) == Counter()
    assert stream.snapshot(3) == Counter({("a",): 2, ("b",): 1})
    assert stream.snapshot(9) == Counter({("b",): 1})


def test_logical_is_the_table_of_the_thesis():
    assert history("a 1-3, a 2-3, b 2-").logical(4) == {
        (("a",), 1): 1,
        (("a",), 2): 2,
        (("b",), 2): 1,
        (("b",), 3): 1,
    }


def test_until_keeps_what_lies_before_and_shift_moves_everything():
    assert history("a 1-8, b 2-, c 5-6").until(5) == history("a 1-5, b 2-5")
    assert history("a 1-8, b 2-").shift(3) == history("a 4-11, b 5-")
    assert history("a 1-8, b 2-").shift(3).shift(-3) == history("a 1-8, b 2-")


def test_a_large_history_is_swept_without_a_loop_over_rows():
    n = 200_000
    keys = np.arange(n) % 1000
    schema = Schema.of(k="BIGINT")
    start = np.arange(n, dtype=np.int64) // 1000
    delta = Delta(schema, [pa.array(keys)], start, start + 1, np.ones(n, np.int64))
    swept = History.of(schema, [delta])
    assert len(swept) == 1000
    assert set(swept.end.tolist()) == {200}


@given(strategies.streams(Schema.of(x="STRING", v="DOUBLE"), shape=None))
def test_history_equals_counting_at_every_instant(elements):
    schema = Schema.of(x="STRING", v="DOUBLE")
    changed = changes(elements, schema)
    swept = History.of(schema, [changed])
    for t in range(40):
        counted: Counter = Counter()
        for row, start, end, weight in changed.rows():
            if start <= t < end:
                counted[row] += weight
        assert swept.snapshot(t) == +counted
    for (row, start, end, count), following in zip(swept.rows(), swept.rows()[1:], strict=False):
        assert start < end
        assert count > 0
        assert (row, end, count) != (following[0], following[1], following[3])


def test_stable_points_have_no_part_in_a_history():
    assert history("a 1-8, ~3, b 3-4, ~") == history("a 1-8, b 3-4")
    assert timeline("~3") == [Stable(3)]
