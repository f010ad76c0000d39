"""Aggregates over slices answer the same with rows put together where they come in: all cuts, forms, shards, retractions."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from attrs import evolve

from headwater.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Filter,
    HopWindow,
    Plan,
    PreAggregate,
    Project,
    Source,
    TimeWindow,
)
from headwater.algebra.plan_text import print_plan
from headwater.expressions.rewrite import column
from headwater.model.schema import Schema
from headwater.optimizer.optimize import apply_rule
from headwater.optimizer.physical.partial_aggregates import partial_aggregates
from headwater.testing.cases import fresh, scaled
from headwater.testing.checks import check_cases
from headwater.testing.choices import Dice
from headwater.testing.expression_text import bind_text
from headwater.testing.generate import Case, StreamShape, streams, whole
from headwater.testing.oracle import expected_histories
from headwater.testing.plan_text import parse_plan


def with_partials(plan: Plan) -> Plan:
    return apply_rule(partial_aggregates, plan)


LONG, DECIMAL = pa.int64(), pa.decimal128(38, 2)
SCHEMA = Schema.of(k="INT", name="STRING", v="INT", w="BIGINT", d=pa.decimal128(10, 2), p="BOOLEAN", x="DOUBLE")
LINEAR = [
    AggregateCall("COUNT", "n", LONG),
    AggregateCall("COUNT", "nv", LONG, "v"),
    AggregateCall("SUM", "sv", LONG, "v"),
    AggregateCall("SUM", "sw", LONG, "w", filter="p"),
    AggregateCall("SUM", "sd", DECIMAL, "d"),
    AggregateCall("AVG", "av", pa.float64(), "v"),
    AggregateCall("AVG", "ad", pa.float64(), "d", filter="p"),
    AggregateCall("COUNT", "np", LONG, filter="p"),
]
EXTREME = [
    AggregateCall("MIN", "lv", pa.int32(), "v"),
    AggregateCall("MAX", "mv", pa.int32(), "v", filter="p"),
    AggregateCall("MAX", "mx", pa.float64(), "x"),
    AggregateCall("MIN", "ld", pa.decimal128(10, 2), "d", distinct=True),
]


def plan_of(seed: int) -> Aggregate:
    """A random aggregate over slices."""
    rng = random.Random(seed)
    revisable = rng.random() < 0.5
    source = Source("s", SCHEMA, chronons=True, revisable=revisable)
    below: Plan = Filter(source, bind_text('"v" > -3', source.schema)) if rng.random() < 0.3 else source
    keys = rng.choice([(), ("k",), ("name",), ("k", "p")])
    if rng.random() < 0.25:
        below = HopWindow(below, rng.randrange(2, 9), rng.randrange(2, 6), rng.randrange(3), time=LONG)
        keys = (*keys, "window_end")
    else:
        below = TimeWindow(below, rng.randrange(1, 12), rng.randrange(2, 6))
    if rng.random() < 0.3:
        below = Project(below, tuple((f.name, column(f)) for f in below.schema))
    pool = LINEAR if revisable else [*LINEAR, *EXTREME]
    calls = tuple(sorted(rng.sample(pool, rng.randrange(1, 5)), key=lambda c: c.output))
    return Aggregate(below, keys, calls)


SHAPE = StreamShape(elements=22, span=10)


@pytest.mark.parametrize("seed", range(12))
def test_the_answer_is_the_same(seed: int):
    """Every trial of the battery (cuts, orders, shards, restarts, both forms) against the oracle."""
    plan = with_partials(plan_of(seed))
    assert any(isinstance(node, PreAggregate) for node in plan.walk())
    cases = [Case(plan, streams(Dice(100 * seed + i), plan, SHAPE), i) for i in range(4)]
    check_cases(cases, thorough=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + scaled(50)))
def test_the_answer_is_the_same_at_length(seed: int):
    seed = fresh(seed)
    plan = with_partials(plan_of(seed))
    check_cases([Case(plan, streams(Dice(100 * seed + i), plan, SHAPE), i) for i in range(12)], thorough=True)


@pytest.mark.parametrize("seed", range(6))
def test_the_meaning_of_the_plan_is_the_same(seed: int):
    plan = plan_of(seed)
    inputs = [{"s": whole(SCHEMA, streams(Dice(i), plan, SHAPE)["s"])} for i in range(20)]
    assert expected_histories(with_partials(plan), inputs) == expected_histories(plan, inputs)


# -- where --------------------------------------------------------------------------------------------------------------

SOURCE = "source s (k BIGINT, v INT, x DOUBLE, note STRING) chronons"


def rewritten(text: str) -> str:
    return print_plan(with_partials(parse_plan(text.strip())))


def test_rows_are_only_counted():
    assert rewritten(f"""
aggregate by "k": COUNT(*) AS "n" BIGINT
  window range 60 slide 10
    {SOURCE}""").splitlines() == [
        'aggregate by "k": COUNT(*) AS "n" BIGINT',
        '  partial aggregate by "k"',
        "    window range 60 slide 10",
        f"      {SOURCE}",
    ]


def test_a_sum_and_a_mean_share_a_part():
    assert rewritten(f"""
aggregate by "k": SUM("v") AS "s" BIGINT, AVG("v") AS "a" DOUBLE
  window range 60 slide 10
    {SOURCE}""").splitlines()[:2] == [
        'aggregate by "k": SUM("SUM v") AS "s" BIGINT, AVG("SUM v") AS "a" DOUBLE',
        '  partial aggregate by "k": SUM("v") AS "SUM v" BIGINT',
    ]


def test_extremes_of_what_is_never_revised():
    text = f"""
aggregate by "k": MAX("x") AS "m" DOUBLE
  window range 60 slide 10
    {SOURCE}"""
    assert "partial" not in rewritten(text)
    assert "partial" in rewritten(f"{text} final")


@pytest.mark.parametrize(
    "text",
    [
        f'aggregate by "k": COUNT(*) AS "n" BIGINT\n  window range 60\n    {SOURCE}',
        f'aggregate by "k": SUM("x") AS "n" DOUBLE\n  window range 60 slide 10\n    {SOURCE}',
        f'aggregate by "k": COUNT(DISTINCT "v") AS "n" BIGINT\n  window range 60 slide 10\n    {SOURCE}',
        f'aggregate by "k": MAX("note") AS "n" STRING\n  window range 60 slide 10\n    {SOURCE} final',
        f'aggregate by "k": MEDIAN("v") AS "n" DOUBLE\n  window range 60 slide 10\n    {SOURCE}',
        f'aggregate by "k": COUNT(*) AS "n" BIGINT\n  distinct\n    window range 60 slide 10\n      {SOURCE}',
        'aggregate by "k": COUNT(*) AS "n" BIGINT\n  window range 60 slide 10\n    source s (k BIGINT)',
    ],
)
def test_what_is_left_alone(text: str):
    assert rewritten(text) == text


def test_plans_with_parts_are_read_again():
    plan = with_partials(plan_of(3))
    assert parse_plan(print_plan(plan)) == plan
    assert with_partials(plan) == plan, "a part is not put together once more"
    assert with_partials(evolve(plan_of(3), keys=())).schema.names == tuple(c.output for c in plan_of(3).calls)
