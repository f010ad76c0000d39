"""The table of aggregates against everything that must know an aggregate: what is left out of any fails."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from attrs import evolve
from tests.aggregate_meanings import MEANINGS

from headwater.algebra.nodes import Aggregate, AggregateCall, Project, Source, TimeWindow
from headwater.algebra.plan_text import print_plan
from headwater.expressions.aggregates import AGGREGATES, BY_SQL_NAME, packed
from headwater.expressions.rewrite import column
from headwater.language.binder import bind_script
from headwater.model.schema import Schema
from headwater.model.types import sql_type
from headwater.operators.aggregates import holistic_values, measures
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
STREAM = f"CREATE STREAM s ({', '.join(f'{name} {type_}' for name, type_ in TYPES.items())}, at INT) ORDERED BY at;"
PACKED = {"xk": ("x", "k"), "kx": ("k", "x"), "ks": ("k", "s"), "xp": ("x", "p")}
"""Two columns as one: the arguments of aggregates that take two."""

every_aggregate = pytest.mark.parametrize("name", AGGREGATES)


def of_types(name: str) -> list[tuple[str, pa.DataType]]:
    """The columns that the aggregate takes, and its type then."""
    types = {c: sql_type(type_) for c, type_ in TYPES.items()}
    types |= {c: rows().schema.field(c).type for c in PACKED if name not in ("ARRAY_AGG", "COUNT")}
    results = [(c, AGGREGATES[name].result(type_)) for c, type_ in types.items()]
    return [(c, type_) for c, type_ in results if type_ is not None]


def rows(*, revisable: bool = True) -> Project:
    source = Source("s", Schema.of(**TYPES), chronons=True, revisable=revisable)
    columns = {f.name: column(f) for f in source.schema}
    pairs = {name: packed([columns[a], columns[b]], unless_null=[columns[a]]) for name, (a, b) in PACKED.items()}
    return Project(TimeWindow(source, 5, 2), tuple({**columns, **pairs}.items()))


def calls(name: str) -> tuple[AggregateCall, ...]:
    ways = list(product(of_types(name), (False, True), (None, "p"), AGGREGATES[name].samples))
    return tuple(
        AggregateCall(name, f"c{i}", type_, argument, distinct, condition, parameters)
        for i, ((argument, type_), distinct, condition, parameters) in enumerate(ways)
    )


def aggregation(name: str, *, revisable: bool = True) -> Aggregate:
    return Aggregate(rows(revisable=revisable), ("k",), calls(name))


def test_each_has_a_value_and_a_meaning():
    additive = {name for name, aggregate in AGGREGATES.items() if aggregate.additive}
    assert set(measures.VALUES) == additive
    assert set(holistic_values.VALUES) == set(AGGREGATES) - additive
    assert set(MEANINGS) == set(AGGREGATES)


def test_names_are_told_apart():
    named = [name for aggregate in {id(a): a for a in BY_SQL_NAME.values()}.values() for name in aggregate.names]
    assert len(named) == len(set(named)) == len(BY_SQL_NAME)
    meant = {a.means or a.name for a in BY_SQL_NAME.values()}
    assert meant | {a.in_order for a in BY_SQL_NAME.values() if a.in_order} == set(AGGREGATES)


CALLS = {
    "pair": "{0}(k, x)",
    "by": "{0}(s, x)",
    "time": "{0}(s)",
    "rough": "{0}(s, 0.01)",
    "share": "{0}(x, 0.5)",
    "rough share": "{0}(k, 0.5, 100)",
}
"""How aggregates with several arguments are called, by their form."""


@pytest.mark.parametrize("name", BY_SQL_NAME)
def test_a_query_may_call_it(name: str):
    aggregate = BY_SQL_NAME[name]
    known = AGGREGATES[aggregate.means or aggregate.name]
    taken = [(c, aggregate.result(sql_type(type_))) for c, type_ in TYPES.items()]
    calls = [(f"{name}({c})", type_) for c, type_ in taken if type_ is not None and aggregate.form in ("", "list")]
    if aggregate.form in CALLS:
        pattern = "{0}(0.5) WITHIN GROUP (ORDER BY x)" if name.startswith("percentile_") else CALLS[aggregate.form]
        pattern = CALLS["rough share"] if name == "percentile_approx" else pattern
        types = {"by": pa.string(), "time": pa.string(), "rough share": pa.int64(), "share": pa.float64()}
        default = pa.int64() if aggregate.counts else pa.float64()
        calls = [(pattern.format(name), types.get(aggregate.form, default))]
    assert calls
    for call, type_ in calls:
        query = f"{STREAM} SELECT {call} AS v, (SELECT {call} FROM s) AS w FROM s GROUP BY k"
        bound = bind_script(query).result.plan
        assert [str(f.type) for f in bound.schema] == [str(type_)] * 2
        if aggregate.means and aggregate.form == "":
            assert known.result(pa.bool_() if aggregate.of is not None else sql_type(TYPES["p"])) is not None
            assert (known.counts, known.nulls) == (aggregate.counts, aggregate.nulls)


@every_aggregate
def test_plans_can_have_it(name: str):
    plan = aggregation(name)
    assert parse_plan(print_plan(plan)) == plan
    assert estimate(plan).cost.time > 0
    assert optimize(plan).plan.schema.names == plan.schema.names


@every_aggregate
def test_rows_are_put_together_for_it_if_they_may_be(name: str):
    argument, type_ = of_types(name)[0]
    call = AggregateCall(name, "c", type_, argument, parameters=AGGREGATES[name].samples[0])
    plan = evolve(aggregation(name, revisable=False), calls=(call,))
    made = apply_rule(partial_aggregates, plan)
    part = AGGREGATES[name].part
    assert (made != plan) == (part is not None)
    if part is not None:
        given = streams(Dice(1), plan)
        inputs = {"s": whole(Schema.of(**TYPES), given["s"])}
        assert expected_history(made, inputs) == expected_history(plan, inputs)
        check_cases([Case(made, given, 1)])


@every_aggregate
@pytest.mark.parametrize("revisable", [True, False])
def test_it_is_what_the_oracle_says(name: str, revisable: bool):
    plan = aggregation(name, revisable=revisable)
    check_cases([Case(plan, streams(Dice(seed), plan), seed) for seed in range(4)])


def test_random_plans_have_them_all():
    found = {call.function for kind in OPERATORS if kind.startswith("aggregate") for call in drawn(kind)}
    assert found == set(AGGREGATES)
    types = rows().schema.types
    assert {f for type_ in types for f, _ in plans._functions_of(type_)} == set(AGGREGATES)


def drawn(kind: str) -> list[AggregateCall]:
    made = [OPERATORS[kind](Dice(seed)) for seed in range(60)]
    return [call for plan in made if isinstance(plan, Aggregate) for call in plan.calls]
