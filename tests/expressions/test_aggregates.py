"""The table of aggregates against everything that must know an aggregate: what is left out of any fails."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from attrs import evolve
from tests.aggregate_meanings import MEANINGS

from headwater.algebra.nodes import Aggregate, AggregateCall, Source, TimeWindow
from headwater.algebra.plan_text import print_plan
from headwater.expressions.aggregates import AGGREGATES, BY_SQL_NAME
from headwater.language.binder import bind_script
from headwater.model.schema import Schema
from headwater.model.types import sql_type
from headwater.operators.aggregates import holistic, measures
from headwater.optimizer.cost import estimate
from headwater.optimizer.optimize import apply_rule, optimize
from headwater.optimizer.physical.partial_aggregates import partial_aggregates
from headwater.testing import plans
from headwater.testing.cases import OPERATORS
from headwater.testing.checks import check_cases
from headwater.testing.choices import Dice
from headwater.testing.generate import Case, streams, whole
from headwater.testing.oracle import expected_history
from headwater.testing.plan_text import parse_plan

TYPES = {"k": "BIGINT", "x": "DOUBLE", "s": "STRING", "p": "BOOLEAN"}
STREAM = f"CREATE STREAM s ({', '.join(f'{name} {type_}' for name, type_ in TYPES.items())});"

every_aggregate = pytest.mark.parametrize("name", AGGREGATES)


def of_types(name: str) -> list[tuple[str, pa.DataType]]:
    """The columns that the aggregate takes, and its type then."""
    results = [(column, AGGREGATES[name].result(sql_type(type_))) for column, type_ in TYPES.items()]
    return [(column, type_) for column, type_ in results if type_ is not None]


def calls(name: str) -> tuple[AggregateCall, ...]:
    ways = list(product(of_types(name), (False, True), (None, "p")))
    return tuple(
        AggregateCall(name, f"c{i}", type_, column, distinct, condition)
        for i, ((column, type_), distinct, condition) in enumerate(ways)
    )


def aggregation(name: str, *, revisable: bool = True) -> Aggregate:
    source = Source("s", Schema.of(**TYPES), chronons=True, revisable=revisable)
    return Aggregate(TimeWindow(source, 5, 2), ("k",), calls(name))


def test_each_has_a_value_and_a_meaning():
    additive = {name for name, aggregate in AGGREGATES.items() if aggregate.additive}
    assert set(measures.VALUES) == additive
    assert set(holistic.VALUES) == set(AGGREGATES) - additive
    assert set(MEANINGS) == set(AGGREGATES)


def test_names_are_told_apart():
    named = [name for aggregate in {id(a): a for a in BY_SQL_NAME.values()}.values() for name in aggregate.names]
    assert len(named) == len(set(named)) == len(BY_SQL_NAME)
    assert {a.means or a.name for a in BY_SQL_NAME.values()} == set(AGGREGATES)


@pytest.mark.parametrize("name", BY_SQL_NAME)
def test_a_query_may_call_it(name: str):
    aggregate = BY_SQL_NAME[name]
    known = AGGREGATES[aggregate.means or aggregate.name]
    taken = [(column, aggregate.result(sql_type(type_))) for column, type_ in TYPES.items()]
    assert any(type_ is not None for _, type_ in taken)
    for column, type_ in taken:
        if type_ is not None:
            query = f"{STREAM} SELECT {name}({column}) AS v, (SELECT {name}({column}) FROM s) AS w FROM s GROUP BY k"
            bound = bind_script(query).result.plan
            assert [str(f.type) for f in bound.schema] == [str(type_)] * 2
            if not aggregate.means:
                continue
            assert known.result(type_ if aggregate.of is None else pa.bool_()) == type_
            assert (known.counts, known.nulls) == (aggregate.counts, aggregate.nulls)


@every_aggregate
def test_plans_can_have_it(name: str):
    plan = aggregation(name)
    assert parse_plan(print_plan(plan)) == plan
    assert estimate(plan).cost.time > 0
    assert optimize(plan).plan.schema.names == plan.schema.names


@every_aggregate
def test_rows_are_put_together_for_it_if_they_may_be(name: str):
    column, type_ = of_types(name)[0]
    plan = evolve(aggregation(name, revisable=False), calls=(AggregateCall(name, "c", type_, column),))
    made = apply_rule(partial_aggregates, plan)
    part = AGGREGATES[name].part
    assert (made != plan) == (part is not None)
    if part is not None:
        given = streams(Dice(1), plan)
        rows = {"s": whole(Schema.of(**TYPES), given["s"])}
        assert expected_history(made, rows) == expected_history(plan, rows)
        check_cases([Case(made, given, 1)])


@every_aggregate
@pytest.mark.parametrize("revisable", [True, False])
def test_it_is_what_the_oracle_says(name: str, revisable: bool):
    plan = aggregation(name, revisable=revisable)
    check_cases([Case(plan, streams(Dice(seed), plan), seed) for seed in range(4)])


def test_random_plans_have_them_all():
    found = {call.function for kind in OPERATORS if kind.startswith("aggregate") for call in drawn(kind)}
    assert found == set(AGGREGATES)
    assert {f for column in TYPES.values() for f, _ in plans._functions_of(sql_type(column))} == set(AGGREGATES)


def drawn(kind: str) -> list[AggregateCall]:
    made = [OPERATORS[kind](Dice(seed)) for seed in range(60)]
    return [call for plan in made if isinstance(plan, Aggregate) for call in plan.calls]
