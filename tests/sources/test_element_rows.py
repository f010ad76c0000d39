"""Rows that are inserts, adjusts, deletes, stable points and counts; what they cannot be is said of each row."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

from headwater.clock.seen import Seen
from headwater.errors import StreamError
from headwater.language.changes import ChangeFormat, Changes
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.sources.base import Piece
from headwater.sources.intake import Intake, Taken
from headwater.sources.memory import as_table

BARE = Schema((Field("x", pa.int64(), nullable=False),))
ELEMENTS = Changes(ChangeFormat.HEADWATER)


def rows_of(*elements: dict) -> pa.RecordBatch:
    return as_table(list(elements), BARE).to_batches()[0]


def take(*elements: dict, frontier: int = BEGINNING, changes: Changes = ELEMENTS, bad: str = "divert") -> Taken:
    intake = Intake("s", BARE, changes=changes, bad=bad)  # type: ignore[arg-type]
    return intake.take(Piece(rows_of(*elements), where="here"), frontier)


def insert(x: int, start: int, end: int | None = None, **more: object) -> dict:
    return {"_op": "insert", "x": x, "_start": start, "_end": end, **more}


def adjust(x: int, start: int, end: int | None, new_end: int | None, **more: object) -> dict:
    return {"_op": "adjust", "x": x, "_start": start, "_end": end, "_new_end": new_end, **more}


def delete(x: int, start: int, end: int | None = None) -> dict:
    return {"_op": "delete", "x": x, "_start": start, "_end": end}


def stable(at: int) -> dict:
    return {"_op": "stable", "_start": at}


def test_each_operation_becomes_weights():
    taken = take(insert(1, 1), adjust(1, 1, None, 7), adjust(2, 3, 9, 3), delete(3, 4, 6), adjust(4, 5, 6, None))
    assert taken.delta.rows() == [
        ((1,), 1, INFINITY, 1),
        ((1,), 1, INFINITY, -1),
        ((1,), 1, 7, 1),
        ((2,), 3, 9, -1),
        ((3,), 4, 6, -1),
        ((4,), 5, 6, -1),
        ((4,), 5, INFINITY, 1),
    ]
    assert len(taken.bad.reason) == 0


def test_the_elements_of_a_delta_come_back_as_the_same_delta():
    delta = Delta.from_rows(BARE, [((1,), 1, 5, 1), ((2,), 2, 9, -2), ((2,), 2, 6, 2), ((3,), 4, INFINITY, -1)])
    told = [
        insert(*e.row, e.start, e.end) if not hasattr(e, "new_end") else adjust(*e.row, e.start, e.end, e.new_end)
        for e in delta.to_elements()
    ]
    assert sorted(take(*told).delta.consolidate().rows()) == sorted(delta.consolidate().rows())


def test_stable_points_are_promises_and_have_no_row():
    taken = take(insert(1, 10), stable(4), stable(8))
    assert taken.seen == [Seen("", 10, 10, 1, promise=8)]
    assert len(taken.bad.reason) == 0, "x is NOT NULL, but a stable point has none"


def test_a_weight_is_a_number_of_copies():
    assert take(adjust(1, 1, 9, 5, _weight=3)).delta.rows() == [((1,), 1, 9, -3), ((1,), 1, 5, 3)]


def test_instants_may_be_timestamps_or_their_texts():
    stamps = take({"_op": "insert", "x": 1, "_start": datetime(1970, 1, 1, 0, 0, 1), "_end": None})
    texts = take({"_op": "insert", "x": 1, "_start": "1970-01-01T00:00:01", "_end": "1970-01-01 00:00:02"})
    assert stamps.delta.rows() == [((1,), 1_000_000, INFINITY, 1)]
    assert texts.delta.rows() == [((1,), 1_000_000, 2_000_000, 1)]


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        (
            {"_op": "upsert", "x": 1, "_start": 1},
            '_op is "upsert", which is none of insert, adjust, delete, stable, cti',
        ),
        ({"_op": None, "x": 1, "_start": 1}, "_op is NULL"),
        ({"_op": "insert", "x": 1, "_start": None}, "_start is not a whole number of instants"),
        ({"_op": "insert", "x": 1, "_start": 1.5}, "_start is not a whole number of instants"),
        (insert(1, 5, 5), "the interval is empty or begins before all time"),
        (adjust(1, 5, 9, 4), "_new_end is before _start"),
        (insert(1, 5, 9, _weight=0), "_weight is not 1 or more, as it must be beside _op"),
        ({"_op": "insert", "_start": 1}, 'column "x" is NOT NULL'),
        (
            {"_op": "cti", "_start": 1, "_end": 5, "_count": 2},
            "events are counted, which is not declared (counted => true)",
        ),
    ],
)
def test_what_cannot_be_is_a_bad_row(element: dict, reason: str):
    taken = take(element, insert(9, 20))
    assert taken.bad.reason.to_pylist() == [reason]
    assert taken.delta.rows() == [((9,), 20, INFINITY, 1)], "the good row stays"
    with pytest.raises(StreamError, match=r'BAD_ROW: stream "s" cannot take a row') as caught:
        take(element, bad="fail")
    assert "here" in caught.value.detail


def test_a_stable_point_that_goes_back_is_a_bad_row_unless_nothing_is_ordered():
    taken = take(stable(8), stable(5))
    assert taken.bad.reason.to_pylist() == ["_start of a stable point is before that of an earlier one"]
    anyhow = take(stable(8), stable(5), changes=Changes(ChangeFormat.HEADWATER, ordered=False))
    assert len(anyhow.bad.reason) == 0
    assert anyhow.seen[0].promise == 8


def test_rows_that_must_be_elements_and_are_not():
    rows = pa.RecordBatch.from_pydict({"x": [1]})
    taken = Intake("s", BARE, changes=ELEMENTS, bad="divert").take(Piece(rows), 0, now=5)
    assert taken.bad.reason.to_pylist() == ['column "_start" missing; the columns are x']


def test_changes_before_the_frontier_are_late_unless_only_an_open_end_moves():
    taken = take(adjust(1, 1, 20, 12), adjust(2, 1, 20, 8), delete(3, 1, 20), insert(4, 9), frontier=10)
    assert taken.delta.rows() == [((1,), 1, 20, -1), ((1,), 1, 12, 1)]
    assert taken.late.column(0).to_pylist() == [2, 3, 4], "each change once"
    assert taken.seen[0].late == 3


def test_counts_and_sync_times_are_told_where_they_are_declared():
    counted = Changes(ChangeFormat.HEADWATER, counted=True)
    # CEDR table 5: R(0,10->8) R(0,6->4) R(0,8->6) I(0,10) EXT(0,8,4) I(1,5)
    taken = take(
        adjust(0, 0, 10, 8),
        adjust(0, 0, 6, 4),
        adjust(0, 0, 8, 6),
        insert(0, 0, 10),
        {"_op": "cti", "_start": 0, "_end": 8, "_count": 4},
        insert(1, 1, 5),
        changes=counted,
    )
    assert taken.seen[0].counted == ((0, 8, 4),)
    assert taken.seen[0].syncs == ((0, 1), (1, 1), (4, 1), (6, 1), (8, 1))
