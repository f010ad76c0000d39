"""Grouping with aggregation over running totals: COUNT, SUM, AVG, VAR, STDDEV; keys of all types; FILTER; DISTINCT."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.algebra.nodes import Source
from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.element import Element, Stable
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice
from headwater.testing.generate import StreamShape, cut, stream, whole
from headwater.testing.timeline import changes, timeline

FORMS = {
    "strong": {"speculative": False},
    "open": {"speculative": False, "hold": False},
    "speculative": {"speculative": True},
}
INF, NAN = math.inf, math.nan
LONG, DOUBLE = pa.int64(), pa.float64()
COUNT = Call("COUNT", "n", LONG)


def run(operator: AggregateOperator, ticks: Sequence[tuple[Sequence[Delta], int]], store=None) -> History:
    """Feed the ticks (a delta a port, frontier); the output must be valid, and the state empty in the end."""
    state = operator.new_state(store or MemoryStore())
    validator = StreamValidator(operator.schema)
    final = operator._hold and not operator._speculative
    deltas = []
    for inputs, frontier in ticks:
        step = operator.step(state, tuple(inputs), (frontier,) * len(inputs))
        validator.check_delta(step.delta, step.frontier)
        assert not final or (step.delta.weight > 0).all()
        deltas.append(step.delta)
    assert operator.buffered(state) == (0, 0)
    return History.of(operator.schema, deltas)


def ticks_of(schema: Schema, pieces: Sequence[Sequence[Element]]) -> list[tuple[list[Delta], int]]:
    """One tick a piece; the last one ends the stream."""
    frontier, ticks = BEGINNING, []
    for piece in pieces:
        frontier = max([frontier, *(e.at for e in piece if isinstance(e, Stable))])
        ticks.append(([whole(schema, piece)], frontier))
    return [*ticks, ([Delta.empty(schema)], INFINITY)]


def answer(schema: Schema, text: str, calls: list[Call], keys=(), **form: bool) -> list:
    """The history of the aggregate over a timeline, one tick per element."""
    operator = AggregateOperator([schema], keys, calls, **form)
    return run(operator, ticks_of(schema, [[e] for e in timeline(text, schema)])).rows()


def sums(rows, frontiers=(), *, calls, type_=DOUBLE, **form: bool) -> History:
    """The history of aggregates of x over (value, start, end) rows."""
    schema = Schema.of(x=type_)
    delta = Delta.from_rows(schema, [((x,), s, e, 1) for x, s, e in rows])
    operator = AggregateOperator([schema], [], calls, **form)
    ticks = [([delta if i == 0 else Delta.empty(schema)], f) for i, f in enumerate([*frontiers, INFINITY])]
    return run(operator, ticks)


# -- the works' own examples --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_scalar_sum_of_table_11_9(form):
    c, a, d, b = 1, 10, 100, 1000
    rows = answer(
        Schema.of(x="BIGINT"),
        "1 1-8, ~1, 10 5-11, ~5, 100 6-14, ~6, 10 9-10, ~9, 1000 12-17",
        [Call("SUM", "s", LONG, "x")],
        **form,
    )
    assert [(row[0], s, e) for row, s, e, _ in rows] == [
        (c, 1, 5), (c + a, 5, 6), (c + a + d, 6, 8), (a + d, 8, 9), (a + d + a, 9, 10), (a + d, 10, 11), (d, 11, 12),
        (d + b, 12, 14), (b, 14, 17),
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_grouped_count_of_table_11_10(form):
    text = "c 1-8, ~1, a 5-11, ~5, d 6-14, ~6, a 9-10, ~9, b 12-17"
    rows = answer(Schema.of(x="STRING"), text, [COUNT], ["x"], **form)
    assert {(*row, s, e) for row, s, e, _ in rows} == {
        ("c", 1, 1, 8), ("a", 1, 5, 9), ("d", 1, 6, 14), ("a", 2, 9, 10), ("a", 1, 10, 11), ("b", 1, 12, 17)
    }  # fmt: skip


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3 4-9, 2 5-11, 1 1-4", "1 1-4, 3 4-5, 5 5-9, 2 9-11"),
        ("3 0-, ~1, 3 2-8", "3 0-2, 6 2-8, 3 8-"),
        ("3 0-10, 3 0-10>5", "3 0-5"),
        ("2 0-6, 1 0-6", "3 0-6"),
        ("2 0-6, 1 5-9, 2 0-6>3", "2 0-3, 1 5-9"),
        ("1 0-9, 5 3-9, 2 5-9, 5 3-9>3", "1 0-5, 3 5-9"),
        ("1 0-9, 2 5-8, 2 5-8>5, 7 2-4", "1 0-2, 8 2-4, 1 4-9"),
        ("1 0-10, 2 5-8, ~3, 2 5-8>5", "1 0-10"),
        ("1 0-3, 3 8-10, 1 0-3>2, 1 0-2>1", "1 0-1, 3 8-10"),
    ],
)
def test_sums_with_retractions_of_golden_a_4(text, wanted, form):
    schema = Schema.of(x="BIGINT")
    rows = answer(schema, text, [Call("SUM", "s", LONG, "x")], **form)
    assert rows == History.of(schema, [changes(timeline(wanted, schema), schema)]).rows()


# -- random streams against the definition ----------------------------------------------------------------------------

SCHEMA = Schema.of(k="BIGINT", x="DOUBLE", s="STRING", p="BOOLEAN", d=pa.decimal128(10, 2), i="INT")
CALLS = [
    COUNT,
    Call("COUNT", "m", LONG, "x"),
    Call("COUNT", "o", LONG, None, "p"),
    Call("SUM", "a", DOUBLE, "x"),
    Call("AVG", "b", DOUBLE, "x"),
    Call("SUM", "c", LONG, "i", "p"),
    Call("AVG", "e", DOUBLE, "i"),
    Call("SUM", "f", pa.decimal128(38, 2), "d"),
    Call("AVG", "g", DOUBLE, "d", "p"),
    Call("VAR_POP", "v", DOUBLE, "x"),
    Call("STDDEV_SAMP", "w", DOUBLE, "i"),
    Call("MAX", "y", DOUBLE, "x"),
]


def define(call: Call, values: list):
    """The aggregate of one snapshot, by definition."""
    present = [v for v in values if v is not None]
    if call.function == "COUNT":
        return len(present)
    if not present:
        return None
    if call.function == "MAX":
        return max(present)
    if call.function == "SUM":
        return sum(present)
    exact = [Fraction(v) for v in present]
    if call.function == "AVG":
        return float(sum(exact) / len(exact))
    if call.function == "VAR_POP":
        return float(statistics.pvariance(exact))
    return math.sqrt(statistics.variance(exact)) if len(exact) > 1 else None


def expected(schema: Schema, keys: Sequence[str], delta: Delta, calls: Sequence[Call], horizon: int) -> list[dict]:
    """For each instant the results of each group."""
    names = delta.schema.names
    answers = []
    for t in range(horizon):
        copies: Counter = Counter()
        for row, start, end, weight in delta.rows():
            if start <= t < end:
                copies[row] += weight
        groups = defaultdict(list)
        for row, n in copies.items():
            named = dict(zip(names, row, strict=True)) | {None: True}
            groups[tuple(named[k] for k in keys)] += [named] * n
        answers.append({
            key: tuple(define(c, [r[c.argument] for r in rows if r[c.filter]]) for c in calls)
            for key, rows in groups.items() if rows
        })  # fmt: skip
    return answers


def close(a, b) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-14, abs_tol=1e-14)
    return a == b


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("keys", [[], ["k"], ["x"], ["s"], ["d", "p"]], ids=str)
def test_random_streams_give_the_answer_of_every_instant(keys, form, tmp_path: Path):
    calls = CALLS if keys != ["x"] else [c for c in CALLS if c.function != "VAR_POP"]
    for seed in range(14):
        dice = Dice(seed, len(keys))
        elements = stream(dice, Source("s", SCHEMA, revisable=seed % 3 > 0), StreamShape(elements=24))
        delta = whole(SCHEMA, elements)
        operator = AggregateOperator([SCHEMA], keys, calls, **form, revisable=seed % 3 > 0)
        store = FileStore(tmp_path / f"{seed}") if seed % 4 == 0 else MemoryStore()
        history = run(operator, ticks_of(SCHEMA, cut(dice, elements, dice.integer(1, 6))), store)
        for t, groups in enumerate(expected(SCHEMA, keys, delta, calls, 40)):
            snapshot = {row[: len(keys)]: (row[len(keys) :], n) for row, n in history.snapshot(t).items()}
            assert snapshot.keys() == groups.keys(), f"seed {seed} at {t}"
            for key, (results, n) in snapshot.items():
                assert n == 1
                assert all(map(close, results, groups[key])), f"seed {seed} at {t}: {results} != {groups[key]}"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_distinct_arguments_come_through_inputs_of_their_own(form):
    schema = Schema.of(k="STRING", x="BIGINT")
    calls = [COUNT, Call("SUM", "a", LONG, "x"), Call("SUM", "b", LONG, "x", port=1), Call("MAX", "c", LONG, "x", port=1),
             Call("ARRAY_AGG", "e", pa.list_(LONG), "x", port=1)]  # fmt: skip
    for seed in range(20):
        dice = Dice(seed)
        elements = stream(dice, Source("s", schema), StreamShape(elements=24))
        distinct = CountSweepOperator(schema, "distinct", **form)
        state = distinct.new_state(MemoryStore())
        operator = AggregateOperator([schema, schema], ["k"], calls, **form)
        main, deltas = operator.new_state(MemoryStore()), []
        for inputs, frontier in ticks_of(schema, cut(dice, elements, 4)):
            narrow = distinct.step(state, tuple(inputs), (frontier,))
            step = operator.step(main, (inputs[0], narrow.delta), (frontier, narrow.frontier))
            deltas.append(step.delta)
        history = History.of(operator.schema, deltas)
        once = [(row, t) for t in range(40) for row in History.of(schema, [whole(schema, elements)]).snapshot(t)]
        for t, groups in enumerate(expected(schema, ["k"], whole(schema, elements), calls[:2], 40)):
            wanted = {}
            for (k,), results in groups.items():
                values = sorted((r[1] for r, at in once if at == t and r[0] == k), key=lambda v: (v is not None, v))
                some = [v for v in values if v is not None]
                wanted[(k, *results, sum(some) if some else None, max(some, default=None), tuple(values))] = 1
            assert history.snapshot(t) == wanted, f"seed {seed} at {t}"


# -- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.bool_(), [True, False]),
        (pa.int8(), [-1, 0]),
        (pa.float32(), [1.5, NAN, INF]),
        (pa.float64(), [0.0, NAN, -INF]),
        (pa.string(), ["", "a", "a long text that does not fit a word"]),
        (pa.binary(), [b"", b"\x00"]),
        (pa.date32(), [date(1970, 1, 1), date(2026, 1, 1)]),
        (pa.timestamp("us"), [datetime(1970, 1, 1), datetime(2026, 1, 1)]),
        (pa.decimal128(30, 3), [Decimal("0.001"), Decimal("-1.000")]),
        (pa.list_(pa.int64()), [[], [1], [1, None]]),
        (pa.struct({"a": pa.int64(), "b": pa.string()}), [{"a": 1, "b": None}, {"a": None, "b": "x"}]),
    ],
    ids=str,
)
def test_groups_by_keys_of_every_type_and_null(type_, values, form):
    schema = Schema.of(k=type_, x="BIGINT")
    groups = [*values, None]
    rows = [((k, 10**i), i, 20 - i, 1) for i, k in enumerate(groups)] * 2
    operator = AggregateOperator([schema], ["k"], [Call("SUM", "s", LONG, "x")], **form)
    ticks = [
        ([Delta.from_rows(schema, [row])], frontier) for row, frontier in zip(rows, range(-len(rows), 0), strict=True)
    ]
    history = run(operator, [*ticks, ([Delta.empty(schema)], 5), ([Delta.empty(schema)], INFINITY)])
    wanted = [((k, 2 * 10**i), i, 20 - i, 1) for i, k in enumerate(groups)]
    assert history == History.of(operator.schema, [Delta.from_rows(operator.schema, wanted)])


# -- sums -------------------------------------------------------------------------------------------------------------


def test_integer_sums_are_exact_and_overflow_is_an_error():
    top = 2**63 - 1
    calls = [Call("SUM", "s", LONG, "x"), Call("AVG", "a", DOUBLE, "x")]
    rows = [(top, 0, 10), (-top, 0, 9), (top, 2, 8), (-(2**63), 2, 8), (5, 4, 6)]
    history = sums(rows, calls=calls, type_=LONG)
    assert [(r[0], s, e) for r, s, e, _ in history.rows()] == [
        (0, 0, 2), (-1, 2, 4), (4, 4, 6), (-1, 6, 8), (0, 8, 9), (top, 9, 10)
    ]  # fmt: skip
    with pytest.raises(StreamError) as caught:
        sums([(top, 0, 2), (1, 0, 2)], calls=calls[:1], type_=LONG)
    assert caught.value.code == "NUMERIC_OVERFLOW"
    assert "BIGINT" in caught.value.message
    average = sums([(top, 0, 2), (top, 0, 2)], calls=calls[1:], type_=LONG)
    assert average.rows() == [((float(top),), 0, 2, 1)]


@pytest.mark.parametrize("copies", [1, 2, 3, 2**40, -(2**40), -3])
def test_sums_of_many_copies(copies):
    """Weights multiply, also below zero on the way."""
    schema = Schema.of(x="BIGINT", d=pa.decimal128(38, 0), f="DOUBLE")
    types = {"x": pa.decimal128(38, 0), "d": pa.decimal128(38, 0), "f": DOUBLE}
    calls = [Call("SUM", f"sum_{name}", type_, name) for name, type_ in types.items()]
    x, d, f = -(2**62) - 12345, -(10**24) - 7, 0.1
    operator = AggregateOperator([schema], [], calls)
    row = (x, Decimal(d), f)
    delta = Delta.from_rows(schema, [(row, 0, 9, abs(copies)), (row, 3, 5, -abs(copies) + 1)])
    if copies < 0:
        delta = delta.take(np.array([1, 0]))
    n = abs(copies)  # Decimal equals int
    wanted = [((n * x, n * d, float(n * Fraction(f))), 0, 3, 1), ((x, d, f), 3, 5, 1)]
    rows = run(operator, [([delta], INFINITY)]).rows()
    assert rows[:2] == (wanted if n > 1 else [(wanted[1][0], 0, 9, 1)])


def test_decimal_sums():
    d12, d38 = pa.decimal128(12, 2), pa.decimal128(38, 2)
    rows = [(Decimal("1.25"), 0, 5), (Decimal("-0.50"), 2, 9), (None, 4, 12)]
    history = sums(rows, calls=[Call("SUM", "s", d38, "x"), Call("AVG", "a", DOUBLE, "x")], type_=d12)
    assert history.rows() == [
        ((Decimal("1.25"), 1.25), 0, 2, 1), ((Decimal("0.75"), 0.375), 2, 5, 1), ((Decimal("-0.50"), -0.5), 5, 9, 1),
        ((None, None), 9, 12, 1),
    ]  # fmt: skip
    big = Decimal("9" * 36 + ".99")
    minus = big.copy_negate()  # a plain minus would round
    rows = [
        (big, 0, 9),
        (big, 2, 4),
        (big, 2, 4),
        (minus, 2, 4),
        (minus, 2, 4),
        (Decimal("-0.01"), 2, 4),
        (minus, 5, 9),
    ]
    history = sums(rows, calls=[Call("SUM", "s", d38, "x")], type_=d38)
    least = Decimal("9" * 36 + ".98")
    assert [r[0] for r, *_ in history.rows()] == [big, least, big, Decimal("0.00")]


@pytest.mark.parametrize("copies", [2, 3, 4, 5, 17])
@pytest.mark.parametrize("sign", [1, -1])
def test_decimal_overflow_is_an_error_however_far_it_goes(copies, sign):
    d38 = pa.decimal128(38, 0)
    rows = [(Decimal(sign * (10**38 - 1)), 0, 9)] * copies
    with pytest.raises(StreamError) as caught:
        sums(rows, calls=[Call("SUM", "s", d38, "x")], type_=d38)
    assert caught.value.code == "NUMERIC_OVERFLOW"
    assert "DECIMAL(38,0)" in caught.value.message
    average = sums(rows, calls=[Call("AVG", "a", DOUBLE, "x")], type_=d38)
    assert average.rows()[0][0][0] == pytest.approx(sign * 1e38, rel=1e-15)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_nan_and_infinities_enter_and_leave(form):
    rows = [(1.5, 0, 20), (INF, 2, 6), (-INF, 4, 8), (NAN, 10, 12), (INF, 14, 16), (INF, 15, 18)]
    calls = [Call("SUM", "s", DOUBLE, "x"), Call("AVG", "a", DOUBLE, "x"), Call("VAR_POP", "v", DOUBLE, "x")]
    history = sums(rows, [0, 5, 11], calls=calls, **form)
    totals = {t: next(iter(history.snapshot(t))) for t in range(20)}
    for t, (total, mean, spread) in totals.items():
        wanted = sum(x for x, s, e in rows if s <= t < e)
        assert repr(total) == repr(float(wanted))
        assert math.isnan(mean) == math.isnan(wanted)
        assert (spread == 0.0) == math.isfinite(wanted)


def test_sums_that_overflow_come_back():
    """Half of the largest float, three times; and squares that no float holds."""
    huge = 2.0**1023
    calls = [Call("SUM", "s", DOUBLE, "x"), Call("AVG", "a", DOUBLE, "x"), Call("VAR_POP", "v", DOUBLE, "x")]
    rows = [(1.5, 0, 20), (huge, 2, 6), (huge, 4, 8), (huge, 4, 6), (2.5, 10, 20)]
    history = sums(rows, calls=calls)
    assert [(r, s, e) for r, s, e, _ in history.rows()] == [
        ((1.5, 1.5, 0.0), 0, 2), ((huge, huge / 2, INF), 2, 4), ((INF, huge * 0.75, INF), 4, 6),
        ((huge, huge / 2, INF), 6, 8), ((1.5, 1.5, 0.0), 8, 10), ((4.0, 2.0, 0.25), 10, 20),
    ]  # fmt: skip


def test_float_sums_do_not_drift():
    random = np.random.default_rng(7)
    schema = Schema.of(x="DOUBLE")
    operator = AggregateOperator([schema], [], [Call("SUM", "s", DOUBLE, "x")])
    state = operator.new_state(MemoryStore())
    values = random.standard_normal(40_000) * 10.0 ** random.integers(-8, 9, 40_000)
    start = np.arange(40_000)
    rows = []
    for tick in range(0, 40_000, 4000):
        part = slice(tick, tick + 4000)
        delta = Delta(schema, [pa.array(values[part])], start[part], start[part] + 50, np.ones(4000, np.int64))
        rows += operator.step(state, (delta,), (tick,)).delta.rows()
    for (total,), s, _, _ in rows[1000::997]:
        assert total == math.fsum(values[max(s - 49, 0) : s + 1])


# -- spread -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "noise"), [(0.0, 1.0), (1e9, 1e-3), (1e9, 1.0), (-1e6, 1e-6), (1.7e15, 60.0)])
def test_variance_is_precise_where_the_mean_is_large(offset, noise):
    values = (offset + np.random.default_rng(3).standard_normal(400) * noise).tolist()
    exact = [Fraction(v) for v in values]
    names = ("VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP")
    calls = [Call(name, name, DOUBLE, "x") for name in names]
    rows = [(v, 0, 100) for v in values] + [(offset * 3 + 1, 10, 20), (1e-3, 10, 20)]
    history = sums(rows, [5, 15], calls=calls)
    wanted = (
        float(statistics.variance(exact)),
        float(statistics.pvariance(exact)),
        math.sqrt(statistics.variance(exact)),
        math.sqrt(statistics.pvariance(exact)),
    )
    for t in (0, 50):
        assert next(iter(history.snapshot(t))) == pytest.approx(wanted, rel=1e-14)


def test_spread_of_one_value_and_of_equal_values():
    calls = [Call(name, name, DOUBLE, "x") for name in ("VAR_SAMP", "STDDEV_POP")]
    rows = [(0.1, 0, 10)] + [(0.1, 2, 8)] * 998 + [(None, 10, 12)]
    assert sums(rows, calls=calls).rows() == [
        ((None, 0.0), 0, 2, 1), ((0.0, 0.0), 2, 8, 1), ((None, 0.0), 8, 10, 1), ((None, None), 10, 12, 1)
    ]  # fmt: skip


def test_repairs_take_back_the_very_floats_that_were_given():
    """The same endpoints arrive and are kept in other orders: sums must round alike, or nothing would cancel."""
    schema = Schema.of(x="DOUBLE")
    calls = [Call("STDDEV_SAMP", "v", DOUBLE, "x"), Call("SUM", "s", DOUBLE, "x")]
    for seed in range(60):
        random = np.random.default_rng(seed)
        operator = AggregateOperator([schema], [], calls, speculative=True)
        ticks, frontier = [], 0
        for _ in range(12):
            n = int(random.integers(1, 40))
            start = frontier + random.integers(0, 4, n)
            end = start + random.integers(1, 6, n)
            values = random.standard_normal(n) * 10.0 ** random.integers(0, 90, n)
            frontier += int(random.integers(0, 3))
            ticks.append(([Delta(schema, [pa.array(values)], start, end, np.ones(n, np.int64))], frontier))
        run(operator, [*ticks, ([Delta.empty(schema)], INFINITY)])


# -- form -------------------------------------------------------------------------------------------------------------


def test_measures_are_shared():
    calls = [Call(f, f, DOUBLE, "x") for f in ("SUM", "AVG", "VAR_POP", "STDDEV_SAMP", "MEDIAN", "MAX")]
    operator = AggregateOperator([Schema.of(x="DOUBLE")], [], [COUNT, *calls])
    assert operator.totals == 1 + 1 + 3 + 4 + 1  # rows, values, sum, squares, fingerprint


def test_strong_form_holds_the_open_segment_and_says_so():
    schema = Schema.of(x="BIGINT")
    operator = AggregateOperator([schema], [], [Call("SUM", "s", LONG, "x")])
    state = operator.new_state(MemoryStore())
    step = operator.step(state, (changes(timeline("1 0-10, 2 5-8", schema), schema),), (7,))
    assert (step.delta.rows(), step.frontier) == ([((1,), 0, 5, 1)], 5)
    step = operator.step(state, (Delta.empty(schema),), (9,))
    assert (step.delta.rows(), step.frontier) == ([((3,), 5, 8, 1)], 8)


def test_speculative_form_shows_the_open_segment_until_infinity():
    schema = Schema.of(x="BIGINT")
    operator = AggregateOperator([schema], [], [Call("SUM", "s", LONG, "x")], speculative=True)
    state = operator.new_state(MemoryStore())
    step = operator.step(state, (changes(timeline("1 0-10, 2 5-8", schema), schema),), (2,))
    assert sorted(step.delta.rows()) == [((1,), 0, 5, 1), ((3,), 5, INFINITY, 1)]
    step = operator.step(state, (Delta.empty(schema),), (9,))
    assert sorted(step.delta.rows()) == [((1,), 8, INFINITY, 1), ((3,), 5, 8, 1), ((3,), 5, INFINITY, -1)]
