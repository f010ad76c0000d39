"""Rows put together before they are sent: which rows come out, what is never put together, and when it is worth it."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.operators.aggregates.aggregate import Call
from headwater.operators.aggregates.pre_aggregate import PreAggregateOperator, ReductionMeter, partial_type

LONG = pa.int64()
SCHEMA = Schema.of(k="STRING", v="INT", w="BIGINT", d=pa.decimal128(18, 2), p="BOOLEAN", x="DOUBLE")
COUNT = Call("COUNT", "c", pa.bool_(), "v")
SUM = Call("SUM", "s", LONG, "v")


def rows(*listed: tuple) -> Delta:
    """(k, v, start, end, weight), or with further columns by name."""
    full = []
    for k, v, start, end, weight, *more in listed:
        named = {"w": None, "d": None, "p": None, "x": None, **(more[0] if more else {})}
        full.append(((k, v, *named.values()), start, end, weight))
    return Delta.from_rows(SCHEMA, full)


def out(delta: Delta, *calls: Call, keys: tuple[str, ...] = ("k",)) -> list[tuple]:
    made = PreAggregateOperator(SCHEMA, keys, calls).step(None, (delta,), (0,))
    assert made.frontier == 0
    return sorted(made.delta.rows(), key=repr)


def test_rows_that_are_only_counted_add_up_their_weights():
    delta = rows(("a", 1, 0, 9, 1), ("a", 2, 0, 9, 2), ("b", 3, 0, 9, 1), ("a", 4, 5, 9, 1), ("b", 5, 0, 9, -1))
    assert out(delta) == [(("a",), 0, 9, 3), (("a",), 5, 9, 1)]


def test_one_row_carries_the_sum_and_the_rest_is_nothing():
    delta = rows(("a", 3, 0, 9, 1), ("a", 4, 0, 9, 1), ("a", 5, 0, 9, 1))
    assert out(delta, SUM) == [(("a", 0), 0, 9, 2), (("a", 12), 0, 9, 1)]


def test_a_sum_of_nothing_needs_no_row_of_its_own():
    assert out(rows(("a", 3, 0, 9, 1), ("a", -3, 0, 9, 1)), SUM) == [(("a", 0), 0, 9, 2)]
    assert out(rows(("a", 3, 0, 9, 1)), SUM) == [(("a", 3), 0, 9, 1)]


def test_retractions_are_of_the_opposite_sign():
    assert out(rows(("a", 7, 0, 9, -1)), SUM) == [(("a", -7), 0, 9, 1), (("a", 0), 0, 9, -2)]
    assert out(rows(("a", 7, 0, 9, 1), ("a", 7, 0, 9, -1)), SUM) == []
    assert out(rows(("a", 7, 0, 9, 1), ("a", 5, 0, 9, -1)), SUM) == [(("a", 0), 0, 9, -1), (("a", 2), 0, 9, 1)]


def test_null_stays_null_and_counts_for_nothing():
    delta = rows(("a", None, 0, 9, 1), ("a", None, 0, 9, 1), ("a", 4, 0, 9, 1))
    assert out(delta, SUM, COUNT) == [(("a", 4, True), 0, 9, 1), (("a", None, None), 0, 9, 2)]
    assert out(rows((None, 1, 0, 9, 1), (None, 2, 0, 9, 1)), SUM) == [((None, 0), 0, 9, 1), ((None, 3), 0, 9, 1)]


def test_a_filter_decides_who_takes_part():
    only = Call("SUM", "s", LONG, "v", "p")
    delta = rows(*(("a", v, 0, 9, 1, {"p": p}) for v, p in ((1, True), (2, False), (4, None), (8, True))))
    assert out(delta, only) == [(("a", 0), 0, 9, 1), (("a", 9), 0, 9, 1), (("a", None), 0, 9, 2)]


def test_decimals_are_summed_exactly():
    delta = rows(*(("a", 1, 0, 9, 1, {"d": Decimal(v)}) for v in ("0.10", "0.20", "-5.00")))
    total = Call("SUM", "s", pa.decimal128(18, 2), "d")
    assert out(delta, total) == [(("a", Decimal("-4.70")), 0, 9, 1), (("a", Decimal("0.00")), 0, 9, 2)]


def test_extremes_stand_in_every_row():
    most, least = Call("MAX", "m", pa.float64(), "x"), Call("MIN", "l", pa.int32(), "v")
    delta = rows(*(("a", v, 0, 9, 1, {"x": x}) for v, x in ((3, 0.5), (1, float("inf")), (2, -1.0))))
    assert out(delta, most, least, SUM) == [(("a", float("inf"), 1, 0), 0, 9, 2), (("a", float("inf"), 1, 6), 0, 9, 1)]


def test_nan_is_the_largest():
    delta = rows(("a", 1, 0, 9, 1, {"x": float("nan")}), ("a", 1, 0, 9, 1, {"x": 1.0}))
    ((row, *_),) = out(delta, Call("MAX", "m", pa.float64(), "x"))
    assert np.isnan(row[1])


def test_what_is_taken_back_is_not_put_under_an_extreme():
    delta = rows(("a", 3, 0, 9, 1), ("a", 4, 0, 9, 1), ("a", 3, 0, 9, -1))
    assert len(out(delta, Call("MAX", "m", pa.int32(), "v"))) == 3


@pytest.mark.parametrize("values", [(2**62, 2**62), (-(2**62), -(2**62)), (2**63 - 1, 1), (-(2**63), -1)])
def test_a_sum_that_does_not_fit_is_left_to_the_aggregate(values: tuple[int, int]):
    delta = rows(*(("a", 1, 0, 9, 1, {"w": v}) for v in values))
    assert out(delta, Call("SUM", "s", LONG, "w")) == sorted([(("a", v), 0, 9, 1) for v in values], key=repr)


def test_many_weights_do_not_overflow_unseen():
    delta = rows(("a", 1, 0, 9, 2**40, {"w": 2**40}), ("a", 1, 0, 9, 1, {"w": 1}))
    assert len(out(delta, Call("SUM", "s", LONG, "w"))) == 2


def test_several_keys_or_none():
    delta = rows(("a", 1, 0, 9, 1), ("a", 1, 0, 9, 1), ("b", 1, 0, 9, 1))
    assert out(delta, keys=("k", "v")) == [(("a", 1), 0, 9, 2), (("b", 1), 0, 9, 1)]
    assert out(delta, keys=()) == [((), 0, 9, 3)]
    assert out(Delta.empty(SCHEMA), SUM) == []


@pytest.mark.parametrize("keys", [50, 5_000, 100_000])
def test_large_deltas_as_numpy_counts_them(keys: int):
    """More rows than are grouped at once."""
    rng = np.random.default_rng(keys)
    n = 300_000
    key, start, value = rng.integers(0, keys, n), rng.integers(0, 4, n) * 10, rng.integers(-1000, 1000, n)
    schema = Schema.of(k="BIGINT", v="BIGINT")
    delta = Delta(schema, [pa.array(key), pa.array(value)], start, start + 60, np.ones(n, np.int64))
    made = PreAggregateOperator(schema, ["k"], [Call("SUM", "s", LONG, "v")]).step(None, (delta,), (0,)).delta
    assert len(made) <= 2 * len(np.unique(key * 100 + start))
    place = np.asarray(made.column("k")) * 100 + made.start
    expected_place = key * 100 + start
    size = keys * 100 + 100
    assert (made.end == made.start + 60).all()
    assert (np.bincount(place, made.weight, size) == np.bincount(expected_place, minlength=size)).all()
    sums = np.bincount(place, made.weight * np.asarray(made.column("s")), size)
    assert (sums == np.bincount(expected_place, value, size)).all()


# -- whether ----------------------------------------------------------------------------------------------------------


def test_what_does_not_pay_is_left_alone_for_a_while():
    meter = ReductionMeter(patience=2)
    assert meter.is_due()
    meter.record(10_000, 9_500)
    assert [meter.is_due() for _ in range(3)] == [False, False, True]
    meter.record(10_000, 8_500)
    assert not meter.is_due(), "once off, it must become clearly better"
    meter.record(10_000, 5_000)
    assert meter.is_due()
    meter.record(12_000, 10_000)
    assert meter.is_due(), "once on, a little worse is still good enough"
    assert meter.ratio == pytest.approx(1.2)


def test_a_few_rows_tell_nothing():
    meter = ReductionMeter()
    meter.record(100, 100)
    assert meter.is_due()


def test_rows_pass_one_by_one_while_it_does_not_pay():
    n = 2_000
    delta = Delta(
        Schema.of(k="BIGINT"),
        [pa.array(np.arange(n))],
        np.zeros(n, np.int64),
        np.ones(n, np.int64),
        np.ones(n, np.int64),
    )
    operator = PreAggregateOperator(delta.schema, ["k"], [])
    twice = Delta.concat(delta.schema, [delta, delta])
    assert len(operator.step(None, (delta,), (0,)).delta) == n
    assert len(operator.step(None, (twice,), (0,)).delta) == 2 * n
    fresh: PreAggregateOperator = pickle.loads(pickle.dumps(operator))
    fresh.meter = ReductionMeter()
    assert len(fresh.step(None, (twice,), (0,)).delta) == n


def test_which_aggregates_have_parts():
    assert partial_type("SUM", pa.int32()) == LONG
    assert partial_type("AVG", pa.decimal128(10, 2)) == pa.decimal128(18, 2)
    assert partial_type("SUM", pa.decimal128(19, 2)) is None
    assert partial_type("SUM", pa.float64()) is None
    assert partial_type("MAX", pa.string()) is None
    assert partial_type("MEDIAN", pa.int32()) is None
    assert partial_type("COUNT", None) == pa.bool_()
