"""Aggregates of two numbers: no drift, and what is no number."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from tests.aggregate_meanings import meant

from headwater.expressions.aggregates import AGGREGATES
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.state.store import MemoryStore

PAIRS = [name for name, aggregate in AGGREGATES.items() if aggregate.form == "pair"]
SCHEMA = Schema.of(pair=pa.struct({"c0": pa.float64(), "c1": pa.float64()}))
NAN, INF = math.nan, math.inf


def operator(*, speculative: bool = False) -> AggregateOperator:
    calls = [Call(name, name, pa.float64(), "pair") for name in PAIRS]
    return AggregateOperator([SCHEMA], [], calls, speculative=speculative)


def rows(pairs, starts, ends) -> Delta:
    values = [None if pair is None else {"c0": pair[0], "c1": pair[1]} for pair in pairs]
    return Delta.from_rows(SCHEMA, [((v,), s, e, 1) for v, s, e in zip(values, starts, ends, strict=True)])


def answers(pairs) -> dict[str, float | None]:
    """Of pairs that are all valid at one instant."""
    step = operator().step(
        (tested := operator()).new_state(MemoryStore()), (rows(pairs, [0] * len(pairs), [1] * len(pairs)),), (INFINITY,)
    )
    ((row, *_),) = step.delta.rows()
    return dict(zip(tested.schema.names, row, strict=True))


@pytest.mark.parametrize("speculative", [False, True])
@pytest.mark.parametrize("origin", [0.0, 1e9, -3e12])
def test_nothing_drifts_while_thousands_come_and_go(origin: float, speculative: bool):
    rng = np.random.default_rng(7)
    count = 3000
    x = origin + rng.normal(size=count)
    y = 2 * x + origin + rng.normal(size=count) * 1e-3
    starts = np.arange(count)
    tested = operator(speculative=speculative)
    state, last = tested.new_state(MemoryStore()), {}
    for cut in range(0, count, 500):
        part = slice(cut, cut + 500)
        pairs = zip(y[part].tolist(), x[part].tolist(), strict=True)
        delta = rows(pairs, starts[part].tolist(), (starts[part] + 40).tolist())
        step = tested.step(state, (delta,), (min(cut + 500, count - 1),))
        last |= {start: row for row, start, _, weight in step.delta.rows() if weight > 0}
    shown = dict(zip(tested.schema.names, last[count - 5], strict=True))
    window = slice(count - 5 - 39, count - 4)
    values = [
        {"c0": Fraction(a), "c1": Fraction(b)} for a, b in zip(y[window].tolist(), x[window].tolist(), strict=True)
    ]
    for name in PAIRS:
        tolerance = 1e-7 if name == "REGR_INTERCEPT" else 1e-12  # a small difference of two large numbers
        assert shown[name] == pytest.approx(meant(name, values), rel=tolerance), name


def test_what_does_not_vary_has_no_line():
    flat = answers([(1.0, 0.1), (2.0, 0.1), (4.0, 0.1)])
    assert flat["CORR"] is flat["REGR_SLOPE"] is flat["REGR_INTERCEPT"] is flat["REGR_R2"] is None
    assert flat["REGR_SXX"] == flat["COVAR_POP"] == 0.0
    level = answers([(0.1, 1.0), (0.1, 2.0), (0.1, 4.0)])
    assert (level["CORR"], level["REGR_SLOPE"], level["REGR_R2"]) == (None, 0.0, 1.0)
    assert level["REGR_INTERCEPT"] == pytest.approx(0.1)


def test_one_pair_and_none():
    one = answers([(1.0, 2.0), None])
    assert (one["COVAR_POP"], one["COVAR_SAMP"], one["CORR"], one["REGR_AVGX"]) == (0.0, None, None, 2.0)
    assert set(answers([None, (None, 1.0), (1.0, None)]).values()) == {None}


@pytest.mark.parametrize("value", [NAN, INF, -INF, 1e200])
def test_what_is_no_number_stays_where_it_is(value: float):
    found = answers([(1.0, 2.0), (value, 3.0), (4.0, 6.0)])
    assert all(math.isnan(found[name]) for name in ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_SXY"))
    assert found["REGR_AVGX"] == pytest.approx(11 / 3)
    assert found["REGR_SXX"] == pytest.approx(26 / 3)
    assert not math.isfinite(found["REGR_SYY"])


def test_it_leaves_nothing_behind():
    tested = operator()
    state = tested.new_state(MemoryStore())
    pairs = [(1.0, 2.0), (INF, 3.0), (4.0, 6.0), (1e200, 1.0)]
    step = tested.step(state, (rows(pairs, [0, 1, 0, 2], [9, 3, 9, 4]),), (INFINITY,))
    spans = {(start, end): row for row, start, end, _ in step.delta.rows()}
    assert spans[0, 1] == spans[4, 9]
    assert tested.buffered(state) == (0, 0)
