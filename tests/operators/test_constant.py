"""Constants: rows that come once, are valid for ever, and that nobody waits for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.algebra import nodes as n
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.rows.constant import ConstantOperator
from headwater.runtime.stepping import by_hand
from headwater.state.store import MemoryStore
from headwater.testing.expression_text import bind_text
from headwater.testing.oracle import expected_history
from headwater.testing.timeline import changes, history, timeline

X = Schema.of(x="STRING")
LETTERS = n.Constant(X, (("a",), ("b",), ("b",), (None,)))
S = n.Source("s", X)
COUNT = n.AggregateCall("COUNT", "n", pa.int64())
FORMS = pytest.mark.parametrize("speculative", [False, True], ids=["strong", "speculative"])


def test_the_rows_come_in_the_first_tick():
    operator = ConstantOperator(X, LETTERS.rows)
    state = operator.new_state(MemoryStore())
    first, second = (operator.step(state, (), ()) for _ in range(2))
    assert History.of(X, [first.delta]) == history("a 0-, b*2 0-, null 0-")
    assert len(second.delta) == 0
    assert first.frontier == second.frontier == INFINITY
    assert operator.buffered(state).rows == 0


def test_values_of_every_kind():
    schema = Schema.of(n="BIGINT", l=pa.list_(pa.int64()), s=pa.struct({"a": pa.int64(), "b": pa.string()}))
    constant = n.Constant(schema, ((1, (1, 2), (1, "x")), (None, (), None)))
    step = by_hand({"q": constant}).tick({}, {})["q"]
    rows = [row for row, *_ in step.delta.rows()]
    assert rows == [(1, [1, 2], {"a": 1, "b": "x"}), (None, [], None)]


ALONE = {
    "rows": (LETTERS, "a 0-, b*2 0-, null 0-"),
    "no rows": (n.Constant(X), ""),
    "distinct": (n.Distinct(LETTERS), "a 0-, b 0-, null 0-"),
    "filter": (n.Filter(LETTERS, bind_text("\"x\" > 'a'", LETTERS.schema)), "b*2 0-"),
    "aggregate": (n.Aggregate(LETTERS, ("x",), (COUNT,)), "a/1 0-, b/2 0-, null/1 0-"),
    "set operation": (n.SetOperation(LETTERS, n.Constant(X, (("b",),)), n.SetKind.EXCEPT_ALL), "a 0-, b 0-, null 0-"),
    "semi-join": (n.Join(LETTERS, n.Constant(X, (("b",),)), n.JoinKind.SEMI, (("x", "x"),)), "b*2 0-"),
    "time window": (n.TimeWindow(n.Constant(X, (("a",),)), 2), "a 0-, a 1-"),
    "row window": (n.RowWindow(n.Constant(X, (("a",),)), 2), "a 0-, a 1-"),
    "istream": (n.Istream(LETTERS), "a 0-1, b*2 0-1, null 0-1"),
    "union": (n.Union((LETTERS, LETTERS)), "a*2 0-, b*4 0-, null*2 0-"),
    "session window": (n.SessionWindow(LETTERS, 3), ""),
}


@FORMS
@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("name", ALONE)
def test_a_query_over_constants_alone_is_answered_in_the_first_tick(name, speculative, shards):
    plan, expected = ALONE[name]
    runner = by_hand({"q": plan}, speculative=speculative, shards=shards)
    assert not runner.layout.graph.sources
    step = runner.tick({}, {})["q"]
    assert History.of(plan.schema, [step.delta]) == history(expected, plan.schema)
    assert step.frontier == INFINITY
    assert runner.buffered().rows == 0
    again = runner.tick({}, {})["q"]
    assert (len(again.delta), again.frontier) == (0, INFINITY)


@pytest.mark.parametrize("name", [name for name in ALONE if name != "row window"])
def test_the_oracle_knows_constants(name):
    plan, expected = ALONE[name]
    assert expected_history(plan, {}) == history(expected, plan.schema)


WITH_A_STREAM = {
    "union": n.Union((S, LETTERS)),
    "join": n.Join(S, n.Constant(Schema.of(y="STRING"), (("a",), ("c",))), n.JoinKind.INNER, (("x", "y"),)),
    "left join": n.Join(S, n.Constant(Schema.of(y="STRING"), (("a",), ("c",))), n.JoinKind.LEFT, (("x", "y"),)),
    "full join": n.Join(n.Constant(Schema.of(y="STRING"), (("a",), ("c",))), S, n.JoinKind.FULL, (("y", "x"),)),
    "anti-join": n.Join(S, LETTERS, n.JoinKind.ANTI, (("x", "x"),)),
    "anti-join of the constant": n.Join(LETTERS, S, n.JoinKind.ANTI, (("x", "x"),)),
    "except": n.SetOperation(LETTERS, S, n.SetKind.EXCEPT_ALL),
    "aggregate": n.Aggregate(n.Union((S, LETTERS)), ("x",), (COUNT,)),
    "product of an aggregate": n.Join(
        n.Aggregate(S, (), (COUNT,)), n.Constant(Schema.of(limit="BIGINT"), ((3,),)), n.JoinKind.INNER
    ),
}


@FORMS
@pytest.mark.parametrize("name", WITH_A_STREAM)
def test_the_frontier_is_that_of_the_stream(name, speculative):
    plan = WITH_A_STREAM[name]
    runner = by_hand({"q": plan}, speculative=speculative)
    ticks = [("", BEGINNING), ("a 1-3, c 2-5", 0), ("b 4-6, a 4-8", 4), ("a 4-8>5", 5), ("", 20), ("d @30", INFINITY)]
    out, arrived = [], []
    for rows, frontier in ticks:
        arrived += timeline(rows)
        step = runner.tick({"s": changes(timeline(rows))}, {"s": frontier})["q"]
        assert step.frontier <= frontier
        assert step.frontier == frontier or not speculative
        out.append(step.delta)
    assert runner.buffered().rows == 0
    assert History.of(plan.schema, out) == expected_history(plan, {"s": changes(arrived)})


def test_speculation_goes_no_further_because_of_a_constant():
    answers = []
    beside = n.Join(S, n.Constant(Schema.of(y="INT"), ((1,),)), n.JoinKind.INNER)
    for below in (S, n.Union((S, n.Constant(X))), beside):
        plan = n.Aggregate(below, (), (COUNT,))
        runner = by_hand({"q": plan}, speculative=True)
        step = runner.tick({"s": changes(timeline("a 1-9, b 3-5, c 6-7"))}, {"s": 2})["q"]
        step = Delta.concat(plan.schema, [step.delta, runner.tick({}, {})["q"].delta])
        answers.append(sorted(step.rows()))
    assert answers[0] == [((1,), 1, 3, 1), ((1,), 5, 6, 1), ((2,), 3, 5, 1), ((2,), 6, INFINITY, 1)]  # up to 6
    assert answers == [answers[0]] * 3
