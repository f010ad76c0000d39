"""A node of 64 inputs: written, read, estimated, optimized, lowered, spread over shards, and right."""

from __future__ import annotations

import pytest

from headwater.algebra import nodes as n
from headwater.algebra.plan_text import print_plan
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.time import INFINITY
from headwater.operators.rows.union import UnionOperator
from headwater.optimizer.cost import estimate
from headwater.optimizer.optimize import optimize
from headwater.runtime.lower import lower
from headwater.runtime.stepping import by_hand
from headwater.testing.choices import Dice
from headwater.testing.generate import streams, whole
from headwater.testing.oracle import expected_history
from headwater.testing.plan_text import parse_plan
from headwater.testing.shape import sources

MANY = 64
STREAMS = [f"      source s{i} (k{i} BIGINT, v{i} DOUBLE) chronons final" for i in range(MANY)]
TEXT = "\n".join(['aggregate by "k0": COUNT(*) AS "n" BIGINT', "  window range 3", "    union", *STREAMS])


def union_in(plan: n.Plan) -> n.Union:
    (union,) = (node for node in plan.walk() if isinstance(node, n.Union))
    return union


def test_it_is_written_and_read():
    plan = parse_plan(TEXT)
    assert len(union_in(plan).inputs) == MANY
    assert print_plan(plan) == TEXT
    assert plan.schema.names == ("k0", "n")


def test_its_estimate_is_that_of_all_inputs():
    union = union_in(parse_plan(TEXT))
    estimates = estimate(union)
    assert estimates.root.rate == MANY * estimates[union.inputs[0]].rate
    assert estimates.root.alive == MANY * estimates[union.inputs[0]].alive


def test_many_unions_of_two_become_one():
    pair: n.Plan = union_in(parse_plan(TEXT)).inputs[0]
    for further in union_in(parse_plan(TEXT)).inputs[1:]:
        pair = n.Union((pair, further))
    assert len(union_in(optimize(n.Distinct(pair)).plan).inputs) == MANY


def test_a_filter_goes_to_all_inputs():
    plan = parse_plan("\n".join(['filter "k0" > 1', *(line[2:] for line in TEXT.splitlines()[2:])]))
    union = union_in(optimize(plan).plan)
    assert [node.line() for node in union.inputs] == [f'filter "k{i}" > 1' for i in range(MANY)]


def test_it_is_one_operator():
    graph = lower({"q": parse_plan(TEXT)})
    (node,) = (node for node in graph.nodes if isinstance(node.operator, UnionOperator))
    assert len(node.inputs) == node.operator.arity == MANY


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("speculative", [False, True])
def test_its_answer_is_right(shards: int, speculative: bool):
    plan = parse_plan(TEXT)
    rows = streams(Dice(shards), plan)
    deltas = {source.name: whole(source.schema, rows[source.name]) for source in sources(plan)}
    runner = by_hand({"q": plan}, speculative=speculative, shards=shards)
    parts: list[Delta] = []
    for half in (slice(0, MANY, 2), slice(1, MANY, 2)):  # every second stream first
        brought = dict(list(deltas.items())[half])
        parts.append(runner.tick(brought, dict.fromkeys(brought, INFINITY))["q"].delta)
    assert History.of(plan.schema, parts) == expected_history(plan, deltas)
    assert expected_history(plan, deltas).delta()
    assert not runner.buffered().rows
