"""A delta as final rows, and as a changelog."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.model.delta import Delta
from headwater.model.element import Adjust
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.sinks.base import Output
from headwater.sinks.tables import (
    arrow_schema,
    changelog,
    check_names,
    final_rows,
    instant_of,
    render_instant,
    to_table,
)

XY = Schema.of(x="BIGINT", y="STRING")


def output(**options) -> Output:
    return Output("hot", XY, **{"timestamps": False, **options})


def test_copies_become_rows_and_infinity_null():
    delta = Delta.from_rows(XY, [((1, "a"), 0, 5, 1), ((2, None), 3, INFINITY, 2)])
    table = final_rows(output(), delta)
    assert table.schema == arrow_schema(output())
    assert table.to_pylist() == [
        {"x": 1, "y": "a", "_start": 0, "_end": 5},
        {"x": 2, "y": None, "_start": 3, "_end": None},
        {"x": 2, "y": None, "_start": 3, "_end": None},
    ]


def test_instants_of_timestamps_are_timestamps_without_a_zone():
    delta = Delta.from_rows(XY, [((1, "a"), 0, 1_500_000, 1)])
    table = final_rows(output(timestamps=True), delta)
    assert table.schema.field("_start").type == pa.timestamp("us")
    assert table.to_pylist()[0]["_end"] == datetime(1970, 1, 1, 0, 0, 1, 500_000)


def test_an_answer_that_is_final_takes_nothing_back():
    with pytest.raises(AssertionError, match="takes rows back"):
        final_rows(output(), Delta.from_rows(XY, [((1, "a"), 0, 5, -1)]))


@pytest.mark.parametrize(("start", "end"), [(0, 10**18), (-(10**17), 5)])
def test_an_instant_that_is_no_timestamp_is_an_error(start: int, end: int):
    delta = Delta.from_rows(XY, [((1, "a"), start, end, 1)])
    with pytest.raises(HeadwaterError, match="which is no TIMESTAMP") as caught:
        to_table(output(timestamps=True), delta, 0)
    assert caught.value.code == "INSTANT_RANGE"
    assert final_rows(output(), delta).num_rows == 1


def test_a_changelog_has_its_columns_in_order():
    table = changelog(output(speculative=True), Delta.from_rows(XY, [((1, "a"), 0, 5, -1), ((1, "a"), 0, 7, 1)]), 12)
    assert table.schema == arrow_schema(output(speculative=True))
    assert table.to_pylist() == [
        {"_op": "adjust", "x": 1, "y": "a", "_start": 0, "_end": 5, "_new_end": 7, "_tick": 12}
    ]


def test_what_goes_alone_is_adjusted_to_its_start():
    table = changelog(output(speculative=True), Delta.from_rows(XY, [((1, "a"), 2, INFINITY, -1)]), 0)
    assert table.select(["_op", "_start", "_end", "_new_end"]).to_pylist() == [
        {"_op": "adjust", "_start": 2, "_end": None, "_new_end": 2}
    ]


def test_nothing_gives_an_empty_table():
    for speculative in (False, True):
        table = to_table(output(speculative=speculative), Delta.empty(XY), 0)
        assert (table.num_rows, table.schema) == (0, arrow_schema(output(speculative=speculative)))


ENDS = st.sampled_from([1, 2, 3, 4, INFINITY])
ROWS = st.tuples(
    st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, "", "a"])),
    st.just(0) | st.just(-3),
    ENDS,
    st.integers(-3, 3),
)


@given(st.lists(ROWS, max_size=30), st.permutations(range(30)))
def test_a_changelog_tells_the_same_changes_as_the_elements(rows, order):
    delta = Delta.from_rows(XY, rows).consolidate()
    delta = delta.take(np.array([i for i in order if i < len(delta)], np.int64))
    expected = Counter(
        ("adjust", e.row, e.start, e.end, e.new_end)
        if isinstance(e, Adjust)
        else ("insert", e.row, e.start, e.end, None)
        for e in delta.to_elements()
    )
    told = Counter(
        (
            r["_op"],
            (r["x"], r["y"]),
            r["_start"],
            INFINITY if r["_end"] is None else r["_end"],
            INFINITY if r["_new_end"] is None and r["_op"] == "adjust" else r["_new_end"],
        )
        for r in changelog(output(speculative=True), delta, 0).to_pylist()
    )
    assert told == expected


def test_a_stream_without_columns_has_a_changelog_too():
    nothing = Schema(())
    delta = Delta.from_rows(nothing, [((), 0, 5, -1), ((), 0, 9, 1), ((), 1, 9, 2)])
    table = changelog(Output("ticks", nothing, speculative=True, timestamps=False), delta, 0)
    assert Counter(table.column("_op").to_pylist()) == {"adjust": 1, "insert": 2}


@pytest.mark.parametrize(
    ("name", "speculative", "refused"),
    [("_op", True, True), ("_OP", True, True), ("_op", False, False), ("_End", False, True)],
)
def test_columns_must_not_have_the_names_that_sinks_add(name: str, speculative: bool, refused: bool):
    clash = Output("hot", Schema.of(**{name: "BIGINT"}), speculative=speculative)
    if not refused:
        return check_names(clash)
    with pytest.raises(HeadwaterError, match=f'column "{name}" of "hot" would be in the output twice'):
        check_names(clash)


HALF_PAST = 1_893_457_800_000_000  # 2030-01-01 00:30:00


@pytest.mark.parametrize(
    "at",
    [
        HALF_PAST,
        "2030-01-01 00:30:00",
        "2030-01-01T01:30:00+01:00",
        datetime(2030, 1, 1, 0, 30),
        datetime(2030, 1, 1, 0, 30, tzinfo=UTC),
        datetime(2030, 1, 1, 2, 30, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64("2030-01-01T00:30:00", "ns"),
    ],
)
def test_an_instant_may_be_given_in_many_ways(at: object):
    assert instant_of(output(timestamps=True), at) == HALF_PAST


@pytest.mark.parametrize(("at", "timestamps"), [("soon", True), (None, True), (True, True), ("2030-01-01", False)])
def test_what_is_no_instant_is_refused(at: object, timestamps: bool):
    with pytest.raises(HeadwaterError, match="is no instant"):
        instant_of(output(timestamps=timestamps), at)


def test_instants_are_readable():
    assert render_instant(output(timestamps=True), HALF_PAST) == "2030-01-01 00:30:00"
    assert [render_instant(output(), i) for i in (7, INFINITY)] == ["7", "infinity"]
