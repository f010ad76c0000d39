"""Every kind of node says everything that is asked of nodes, and every layer knows every kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.algebra import nodes as n
from headwater.algebra.plan_text import print_plan
from headwater.algebra.properties import properties
from headwater.language.subqueries.correlation import Domain
from headwater.optimizer.cost import estimate
from headwater.optimizer.estimation.nodes import ESTIMATIONS
from headwater.optimizer.labels import label
from headwater.runtime.builders import BUILDERS
from headwater.runtime.lower import lower
from headwater.testing.oracle import _Query
from headwater.testing.plan_text import parse_plan

S = "source s (k BIGINT, v DOUBLE, f BOOLEAN) chronons"
T = "source t (rk BIGINT, rv DOUBLE, rf BOOLEAN) chronons"

EXAMPLES: dict[type[n.Plan], tuple[str, ...]] = {
    n.Source: (S,),
    n.Constant: ("constant (k BIGINT) [(1), (2)]",),
    n.Filter: ('filter "k" > 1', S),
    n.Project: ('project "k", "x" DOUBLE = "v" * 2.0', S),
    n.Union: ("union", S, T, S),
    n.Join: ('left join on "k" = "rk" where "l.v" < "r.rv"', S, T),
    n.Unnest: ('unnest "a" as "x" place "n" outer', "source s (k BIGINT, a ARRAY<BIGINT>) chronons"),
    n.Distinct: ("distinct", S),
    n.SetOperation: ("intersect all", S, T),
    n.Aggregate: ('aggregate by "k": COUNT(*) AS "n" BIGINT, SUM("v") FILTER "f" AS "x" DOUBLE', S),
    n.PreAggregate: ('partial aggregate by "k": SUM("v") AS "x" DOUBLE', S),
    n.Await: ('await by "k"', S, T),
    n.TopK: ('top 2 by "v" desc nulls last partition by "k" as "rank"', S),
    n.TimeWindow: ("window range 10 slide 2", S),
    n.RowWindow: ('window rows 3 partition by "k"', S),
    n.HopWindow: ('hop size 4 slide 2 as "start", "end" BIGINT', S),
    n.SessionWindow: ('session gap 5 partition by "k" as "start", "end" BIGINT', S),
    n.Frames: (
        'frames partition by "k": SUM("v") FILTER "f" rows 2 to 0 AS "s" DOUBLE,'
        ' NTH_VALUE("v", 2) rows unbounded to peers AS "w" DOUBLE',
        S,
    ),
    n.Granularity: ("granularity 4", S),
    n.Sample: ("sample 4 offset 3", S),
    n.Stamp: ('stamp "at"', S),
    n.Split: ("split 2", S),
    n.Coalesce: ("coalesce", S),
    n.Istream: ("istream", S),
    n.Dstream: ("dstream", S),
    n.ToPositiveNegative: ('to positive negative "sign"', S),
    n.FromPositiveNegative: ('from positive negative "sign"', 'source s (k BIGINT, "sign" INT) chronons'),
}

every_kind = pytest.mark.parametrize("kind", n.NODES, ids=lambda kind: kind.__name__)


def example(kind: type[n.Plan]) -> n.Plan:
    line, *inputs = EXAMPLES[kind]
    return parse_plan("\n".join([line, *(f"  {child}" for child in inputs)]))


def subclasses(kind: type[n.Plan]) -> Iterator[type[n.Plan]]:
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def questions() -> list[str]:
    """What ``Plan`` asks without an answer of its own."""
    declared = [name for name in n.Plan.__annotations__ if not hasattr(n.Plan, name)]
    return [*declared, *(name for name, member in vars(n.Plan).items() if "NotImplementedError" in _words(member))]


def _words(member: object) -> tuple[str, ...]:
    """The names that the body of a method or property uses."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return getattr(getattr(function, "__code__", None), "co_names", ())


def test_all_kinds_are_listed():
    concrete = {kind for kind in subclasses(n.Plan) if not kind.__subclasses__()}
    assert concrete == {*n.NODES, Domain}  # which never leaves the binder


def test_nodes_are_asked_all_that():
    expected = {"words", "arity", "hides_pieces", "line", "read", "label", "_schema", "names", "reads", "grouped_by"}
    expected |= {"row_properties", "time_properties", "row_times", "at_instants", "reducible", "delay", "is_empty"}
    assert set(questions()) == expected | {"keeper", "is_stateless", "filter_may_use"}


@every_kind
def test_every_kind_answers_every_question(kind: type[n.Plan]):
    missing = [name for name in questions() if getattr(kind, name, None) is getattr(n.Plan, name, None)]
    assert not [name for name in missing if name != "arity" or kind is not n.Union]


JUDGED = {kind: None for kind in vars(_Query)["_sql"].dispatcher.registry if kind not in (object, n.Plan)}
TABLES = {"estimates": ESTIMATIONS, "operators": BUILDERS, "examples": EXAMPLES, "oracle": JUDGED}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_layer_knows_every_kind(table: dict[type[n.Plan], object]):
    assert set(table) == set(n.NODES)


@every_kind
def test_answers_fit_together(kind: type[n.Plan]):
    plan = example(kind)
    assert type(plan) is kind
    assert parse_plan(print_plan(plan)) == plan
    assert plan.with_inputs(*plan.inputs) == plan
    assert label(plan, timed=False)
    assert kind.arity in (None, len(plan.inputs))
    columns = [set(child.schema.names) for child in plan.inputs]
    everything = frozenset(plan.schema.names)
    for wanted in (frozenset[str](), everything):
        reads = plan.reads(wanted)
        assert len(reads) == len(plan.names()) == len(columns)
        for read, named, have in zip(reads, plan.names(), columns, strict=True):
            assert named <= have
            assert read <= have
    assert plan.filter_may_use() <= everything
    for port, child in enumerate(plan.inputs):
        assert set(plan.grouped_by(port)) <= columns[port]
        for name in plan.filter_may_use():
            assert set(plan.below(name, port).columns) <= set(child.schema.names)
    assert plan.is_empty([True] * len(plan.inputs)) == bool(plan.inputs)
    assert properties(plan).schema.types == plan.schema.types
    assert plan.problem() is None
    assert estimate(plan).root.columns.keys() == everything
    assert lower({"q": plan}).nodes[-1].schema.types == plan.schema.types
