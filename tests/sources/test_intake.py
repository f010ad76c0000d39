"""Rows become elements; late and bad ones are kept apart."""

from __future__ import annotations

import pickle
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.clock.seen import Seen
from headwater.errors import StreamError
from headwater.language.catalog import Stream
from headwater.language.time_clauses import Disorder, HeartbeatFromSource, LatePolicy, LateRows, SentAt
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.sources.base import Piece
from headwater.sources.intake import Intake, Taken, as_delta
from headwater.sources.malformed import BAD_SCHEMA, bad_batch
from headwater.sources.memory import MemorySource

NUMBERED = Schema.of(x="BIGINT", t="BIGINT")


def batch(**columns: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def take(schema: Schema, rows: pa.RecordBatch, frontier: int = BEGINNING, **options: object) -> Taken:
    options = {"time": "t", "bad": "divert", **options}
    return Intake("s", schema, **options).take(Piece(rows, where="here"), frontier)


def reasons(taken: Taken) -> list[str]:
    return taken.bad.reason.to_pylist()


def test_a_row_is_valid_at_its_one_instant():
    taken = take(NUMBERED, batch(x=[1, 2], t=[5, 3]))
    assert taken.delta.rows() == [((1, 5), 5, 6, 1), ((2, 3), 3, 4, 1)]
    assert taken.seen == [Seen("", 5, 3, 2)]


def test_malformed_times_before_any_that_can_be_shown_are_told_all_the_same():
    times = pa.array([BEGINNING, 1_000_000, BEGINNING + 1, None], pa.timestamp("us"))
    taken = take(Schema.of(x="BIGINT", t="TIMESTAMP"), batch(x=[1, 2, 3, 4], t=times))
    assert len(taken.delta) == 2
    assert taken.bad.raw.to_pylist() == ['{"x":1,"t":"-9223372036854775808"}', '{"x":4,"t":null}']


@pytest.mark.parametrize(
    ("type_", "column", "instants"),
    [
        ("TIMESTAMP", pa.array([datetime(1970, 1, 2)], pa.timestamp("us")), [86_400_000_000]),
        ("TIMESTAMP", pa.array([1], pa.timestamp("s", "America/New_York")), [1_000_000]),
        ("TIMESTAMP", pa.array([5_000], pa.timestamp("ns")), [5]),
        ("TIMESTAMP", pa.array([date(1970, 1, 2)]), [86_400_000_000]),
        ("DATE", pa.array([date(1970, 1, 3)]), [2 * 86_400_000_000]),
        ("INT", pa.array([7], pa.int64()), [7]),
        ("BIGINT", pa.array([7], pa.uint64()), [7]),
        ("TIMESTAMP", pa.array(["1970-01-01T00:00:01+00:00"]), [1_000_000]),
    ],
)
def test_times_of_all_types(type_: str, column: pa.Array, instants: list[int]):
    taken = take(Schema.of(t=type_), batch(t=column))
    assert taken.delta.start.tolist() == instants


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([None], pa.int64()), 'the time column "t" is NULL'),
        (pa.array([INFINITY]), 'the time column "t" is out of range'),
        (pa.array([INFINITY - 1]), 'the time column "t" is out of range'),
        (pa.array([BEGINNING]), 'the time column "t" is out of range'),
        (pa.array([1.5]), 'column "t" is BIGINT, which 1.5 is not'),
        (pa.array(["soon"]), 'column "t" is BIGINT, which "soon" is not'),
    ],
)
def test_times_that_cannot_be_are_bad_rows(column: pa.Array, reason: str):
    taken = take(Schema.of(t="BIGINT"), batch(t=column))
    assert reasons(taken) == [reason]
    assert len(taken.delta) == 0
    assert taken.seen == [Seen("", BEGINNING, INFINITY, 0, bad=1)]


def test_a_bad_row_names_its_place_and_shows_itself():
    with pytest.raises(StreamError) as caught:
        take(NUMBERED, batch(x=[1, 2], t=[1, None]), bad="fail")
    assert caught.value.code == "BAD_ROW"
    assert caught.value.message == 'stream "s" cannot take a row: the time column "t" is NULL'
    assert caught.value.detail == 'here: {"x":2,"t":null}'
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("type_", "column", "good", "why"),
    [
        (pa.int8(), pa.array([1, 300]), [1], 'column "x" is TINYINT, which 300 is not'),
        (pa.int64(), pa.array([1.0, 2.5, None]), [1, None], 'column "x" is BIGINT, which 2.5 is not'),
        (pa.float32(), pa.array([0.5, 0.1]), [0.5], 'column "x" is FLOAT, which 0.1 is not'),
        (pa.float64(), pa.array([2**53, 2**53 + 1]), [2.0**53], 'column "x" is DOUBLE, which 9007199254740993 is not'),
        (
            pa.decimal128(4, 2),
            pa.array([1.25, 1.255]),
            [Decimal("1.25")],
            'column "x" is DECIMAL(4,2), which 1.255 is not',
        ),
        (pa.decimal128(4, 2), pa.array([12, 123]), [Decimal("12.00")], 'column "x" is DECIMAL(4,2), which 123 is not'),
        (pa.date32(), pa.array([0, 1], pa.timestamp("us")), [date(1970, 1, 1)], None),
        (pa.timestamp("us"), pa.array([1000, 1], pa.timestamp("ns")), [datetime(1970, 1, 1, 0, 0, 0, 1)], None),
        (pa.list_(pa.int8()), pa.array([[1, None], [1, 300], None]), [[1, None], None], None),
        (
            pa.struct([("a", pa.int8()), ("b", pa.string())]),
            pa.array([{"b": "x", "a": 1}, {"b": "y", "a": 300}, None]),
            [{"a": 1, "b": "x"}, None],
            None,
        ),
        (pa.string(), pa.array(["a", "b"]).dictionary_encode(), ["a", "b"], ""),
        (pa.string(), pa.array([1]), ["1"], ""),
    ],
)
def test_values_are_converted_without_loss_or_not_at_all(type_, column, good, why):
    schema = Schema((Field("x", type_), Field("t", pa.int64())))
    taken = take(schema, pa.RecordBatch.from_arrays([column, pa.array(range(len(column)))], names=["x", "t"]))
    assert taken.delta.columns[0].type == type_
    assert taken.delta.columns[0].to_pylist() == good
    assert len(taken.bad.reason) == (0 if why == "" else 1)
    if why:
        assert reasons(taken) == [why]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([True]), 'column "x" is declared BIGINT, but the data has BOOLEAN'),
        (pa.array([0], pa.timestamp("us")), 'column "x" is declared BIGINT, but the data has TIMESTAMP'),
    ],
)
def test_a_column_of_a_foreign_type_is_one_bad_row(column: pa.Array, reason: str):
    assert reasons(take(NUMBERED, batch(x=column, t=[1]))) == [reason]


def test_a_column_that_is_not_there_is_null_and_told():
    taken = take(NUMBERED, batch(xx=[1, 2], t=[1, 2]))
    assert [row[0] for row in taken.delta.rows()] == [(None, 1), (None, 2)]
    assert taken.missing == {
        "x": 'stream "s": there are rows without column "x" ("here"), so it is NULL in them.'
        ' Did you mean "xx", which they have and the declaration does not?'
    }


@pytest.mark.parametrize(
    ("missing", "options"),
    [
        ("t", {}),
        ("x", {"partition": "x"}),
        ("x", {"heartbeat": "x"}),
        ("x", {"sent": "x"}),
        ("x", {"schema": Schema((Field("x", pa.int64(), nullable=False), NUMBERED.field("t")))}),
    ],
)
def test_a_column_that_must_be_there_and_is_not_is_one_bad_row(missing: str, options: dict):
    rows = batch(y=[1, 2], **{name: [1, 2] for name in ("x", "t") if name != missing})
    taken = take(options.pop("schema", NUMBERED), rows, **options)
    assert reasons(taken) == [f'column "{missing}" missing; the columns are {", ".join(rows.schema.names)}']


def test_columns_are_found_by_name_in_any_order_and_case():
    taken = take(NUMBERED, batch(T=[5], extra=["?"], X=[1]))
    assert taken.delta.rows() == [((1, 5), 5, 6, 1)]


def test_not_null_columns_hold_no_null():
    schema = Schema((Field("x", pa.int64(), nullable=False), Field("t", pa.int64())))
    taken = take(schema, batch(x=[1, None], t=[1, 2]))
    assert taken.delta.rows() == [((1, 1), 1, 2, 1)]
    assert reasons(taken) == ['column "x" is NOT NULL']


# -- late rows --------------------------------------------------------------------------------------------------------


def test_rows_before_the_frontier_are_late_and_those_at_it_are_not():
    taken = take(NUMBERED, batch(x=[1, 2, 3], t=[9, 10, 11]), frontier=10)
    assert taken.delta.start.tolist() == [10, 11]
    assert taken.late.to_pylist() == [{"x": 1, "t": 9}]
    assert taken.seen == [Seen("", 11, 10, 2, late=1, late_newest=9, late_oldest=9)]


@pytest.mark.parametrize(("policy", "rows"), [(LatePolicy.DROP, []), (LatePolicy.ADJUST, [((1, 10), 10, 11, 1)])])
def test_other_policies_for_late_rows(policy: LatePolicy, rows: list):
    taken = take(NUMBERED, batch(x=[1], t=[9]), frontier=10, late=policy)
    assert taken.delta.rows() == rows
    assert taken.late.num_rows == 0
    assert taken.seen[0].late == 1


def test_a_late_row_can_be_an_error():
    with pytest.raises(StreamError, match='LATE_ROW: stream "s" cannot take a row: it comes too late, at 9'):
        take(NUMBERED, batch(x=[1], t=[9]), frontier=10, late=LatePolicy.ERROR)


def test_diverted_rows_are_elements_of_their_own_stream_which_never_goes_back():
    late = take(NUMBERED, batch(x=[1], t=[9]), frontier=10).late
    assert as_delta(NUMBERED, late, 10).rows() == [((1, 9), 10, 11, 1)]
    bad = bad_batch(take(NUMBERED, batch(x=[1], t=pa.array([None], pa.int64()))).bad)
    text = '{"x":1,"t":null}'
    assert as_delta(BAD_SCHEMA, bad, BEGINNING).rows() == [
        (("here", None, 'the time column "t" is NULL', text), 0, 1, 1)
    ]
    assert as_delta(NUMBERED, late, INFINITY).end.tolist() == [INFINITY]


# -- partitions and clocks --------------------------------------------------------------------------------------------


def test_each_partition_has_its_statistics():
    schema = Schema.of(p="STRING", t="BIGINT")
    taken = take(schema, batch(p=["a", "b", "a", None], t=[1, 5, 3, 2]), partition="p")
    assert sorted(taken.seen) == [Seen("", 2, 2, 1), Seen("a", 3, 1, 2), Seen("b", 5, 5, 1)]


def test_late_rows_are_told_of_their_partition():
    schema = Schema.of(p="STRING", t="BIGINT")
    taken = take(schema, batch(p=["a", "b", "b", "b"], t=[12, 5, 3, 20]), frontier=10, partition="p")
    assert sorted(taken.seen) == [
        Seen("a", 12, 12, 1),
        Seen("b", 20, 20, 1, late=2, late_newest=5, late_oldest=3),
    ]


def test_the_declaration_says_how_rows_are_taken():
    stream = Stream("s", NUMBERED, time="t", clauses=(Disorder(5), LateRows(LatePolicy.DROP)))
    intake = Intake.of(stream, MemorySource(NUMBERED, malformed="divert"))
    assert intake == Intake("s", NUMBERED, "t", None, LatePolicy.DROP, "divert")
    assert pickle.loads(pickle.dumps(intake)) == intake
    assert intake.is_plain
    with_more = Stream("s", NUMBERED, time="t", clauses=(HeartbeatFromSource("x"), SentAt("x")))
    intake = Intake.of(with_more, MemorySource(NUMBERED))
    assert (intake.heartbeat, intake.sent, intake.is_plain) == ("x", "x", False)


# -- streams that carry intervals -------------------------------------------------------------------------------------

BARE = Schema.of(x="BIGINT")


def test_rows_without_a_time_column_carry_their_intervals():
    rows = batch(x=[1, 2], _start=[1, 5], _end=pa.array([3, None], pa.int64()), _weight=[1, 2])
    assert take(BARE, rows, time=None).delta.rows() == [((1,), 1, 3, 1), ((2,), 5, INFINITY, 2)]


def test_rows_without_a_time_column_and_without_intervals_are_stamped_on_entry():
    taken = Intake("s", BARE).take(Piece(batch(x=[1, 2])), 7, now=8)
    assert taken.delta.rows() == [((1,), 8, 9, 1), ((2,), 8, 9, 1)]
    assert taken.seen == [Seen("", 8, 8, 2, promise=9)]
    nothing = Intake("s", BARE).take(Piece(batch(x=pa.array([], pa.int64()))), 7, now=8)
    assert nothing.seen[0].promise == BEGINNING  # a promise alone may come to a stream with intervals


def test_intervals_where_rows_are_stamped_on_entry_are_a_mistake():
    with pytest.raises(StreamError, match='CHANGES_UNDECLARED: stream "s" is declared without a time column'):
        Intake("s", BARE, arrival=True).take(Piece(batch(x=[1], _start=[1])), 0)


def test_empty_intervals_are_bad():
    taken = take(BARE, batch(x=[1, 2], _start=[3, 3], _end=[3, 4]), time=None)
    assert taken.delta.rows() == [((2,), 3, 4, 1)]
    assert reasons(taken) == ["the interval is empty or begins before all time"]


def test_an_open_end_can_be_changed_after_the_start_is_final():
    rows = batch(x=[1, 1, 2, 3, 3], _start=[1, 1, 1, 1, 1], _end=[20, 12, 20, 5, 9], _weight=[-1, 1, 1, -1, 1])
    taken = take(BARE, rows, time=None, frontier=10)
    assert taken.delta.rows() == [((1,), 1, 20, -1), ((1,), 1, 12, 1)]
    assert taken.late.column(0).to_pylist() == [2, 3, 3]


# -- columns that the engine fills in ---------------------------------------------------------------------------------


def test_when_a_row_came_is_a_column_where_it_is_declared():
    schema = Schema.of(x="BIGINT", _arrived="TIMESTAMP", t="BIGINT")
    taken = Intake("s", schema, "t").take(Piece(batch(x=[1], t=[5], _arrived=[77])), BEGINNING, now=1_000_000)
    assert taken.delta.rows() == [((1, datetime(1970, 1, 1, 0, 0, 1), 5), 5, 6, 1)]


def test_a_row_whose_time_is_adjusted_keeps_the_original():
    schema = Schema.of(x="BIGINT", t="BIGINT", _original_ts="BIGINT")
    taken = take(schema, batch(x=[1, 2], t=[9, 12]), frontier=10, late=LatePolicy.ADJUST)
    assert taken.delta.rows() == [((1, 10, 9), 10, 11, 1), ((2, 12, None), 12, 13, 1)]
    assert taken.seen == [Seen("", 12, 10, 2, late=1, late_newest=9, late_oldest=9)]


# -- what the source says of its time ---------------------------------------------------------------------------------

BEATS = Schema((Field("x", pa.int64(), nullable=False), Field("t", pa.int64()), Field("h", pa.int64())))


def beats(x: list, t: list, h: list) -> pa.RecordBatch:
    return batch(**{name: pa.array(v, pa.int64()) for name, v in (("x", x), ("t", t), ("h", h))})


def test_a_row_with_a_heartbeat_and_no_time_is_nothing_else():
    taken = take(BEATS, beats([1, None, 2], [5, None, 9], [None, 6, 7]), heartbeat="h")
    assert taken.delta.rows() == [((1, 5, None), 5, 6, 1), ((2, 9, 7), 9, 10, 1)]
    assert taken.seen == [Seen("", 9, 5, 2, promise=8)]
    assert reasons(taken) == []


def test_a_row_without_time_and_without_heartbeat_is_bad():
    taken = take(BEATS, beats([1], [None], [None]), heartbeat="h")
    assert reasons(taken) == ['the time column "t" is NULL']


def test_a_time_that_cannot_be_read_is_no_heartbeat():
    taken = take(BEATS, batch(x=[1], t=["soon"], h=[6]), heartbeat="h")
    assert reasons(taken) == ['column "t" is BIGINT, which "soon" is not']
    assert taken.seen[0].promise == BEGINNING


def test_a_heartbeat_that_goes_back_is_a_bad_row():
    taken = take(BEATS, beats([None, 1, 2], [None, 7, 8], [6, 5, 6]), heartbeat="h")
    assert reasons(taken) == ['the heartbeat in "h" is before an earlier one']
    assert taken.delta.rows() == [((2, 8, 6), 8, 9, 1)]
    assert taken.seen[0].promise == 7


def test_heartbeats_out_of_range_are_bad_rows():
    taken = take(BEATS, beats([1], [7], [INFINITY]), heartbeat="h")
    assert reasons(taken) == ['the time column "h" is out of range']
    assert taken.seen[0].promise == BEGINNING


def test_the_latest_time_of_sending_is_told_also_of_late_rows():
    schema = Schema.of(t="BIGINT", sent="TIMESTAMP")
    rows = batch(t=[3, 12], sent=pa.array([900, 800], pa.timestamp("us")))
    assert take(schema, rows, frontier=10, sent="sent").seen[0].sent == 900


# -- at random --------------------------------------------------------------------------------------------------------

VALUES = st.one_of(st.none(), st.integers(-5, 20), st.sampled_from([INFINITY, BEGINNING, 2**40]))


@settings(deadline=None)
@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(-200, 200)), VALUES), max_size=30), st.integers(-5, 20))
def test_no_row_is_lost_and_none_is_changed(rows: list, frontier: int):
    schema = Schema((Field("x", pa.int8(), nullable=False), Field("t", pa.int64())))
    arrays = [pa.array([v for v, _ in rows], pa.int64()), pa.array([t for _, t in rows], pa.int64())]
    taken = take(schema, pa.RecordBatch.from_arrays(arrays, names=["x", "t"]), frontier)
    fine = [(x, t) for x, t in rows if x is not None and -128 <= x < 128 and t is not None and abs(t) < 2**62]
    assert [row for row, *_ in taken.delta.rows()] == [(x, t) for x, t in fine if t >= frontier]
    assert [tuple(r.values()) for r in taken.late.to_pylist()] == [(x, t) for x, t in fine if t < frontier]
    assert len(taken.bad.reason) == len(rows) - len(fine)
    assert np.all(taken.delta.end == taken.delta.start + 1)


def test_partitions_of_a_column_have_heartbeats_of_their_own():
    schema = Schema.of(p="STRING", t="BIGINT", hb="BIGINT")
    given = batch(p=["a", "b", "a", None, "b"], t=[3, 9, None, None, None], hb=[2, 8, 5, 4, 7])
    taken = take(schema, given, partition="p", heartbeat="hb", bad="divert")
    told = {s.partition: (s.rows, s.promise, s.own_promise) for s in taken.seen}
    assert told == {"a": (1, BEGINNING, 6), "b": (1, BEGINNING, 9), "": (0, BEGINNING, 5)}
    assert taken.bad.reason.to_pylist() == ['the heartbeat in "hb" is before an earlier one'], "of b, not of a"


def test_the_heartbeat_of_a_partition_is_no_promise_of_the_stream():
    piece = Piece(beats([None], [None], [6]), partition="a")
    assert Intake("s", BEATS, "t", heartbeat="h").take(piece, BEGINNING).seen[0].promise == BEGINNING
