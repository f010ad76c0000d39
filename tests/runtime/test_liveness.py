"""Strong plans do not wait for the end: what is final comes out as the frontier moves."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.algebra import nodes as n
from headwater.expressions.nodes import Column
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.runtime.stepping import by_hand
from headwater.testing.expression_text import bind_text

S = n.Source("s", Schema.of(k="STRING", v="BIGINT"))
COUNT = n.AggregateCall("COUNT", "n", pa.int64())
PER_KEY = n.Aggregate(n.TimeWindow(S, INFINITY), ("k",), (COUNT,))
PLANS = {
    "aggregate": n.Aggregate(n.TimeWindow(S, 5), ("k",), (COUNT,)),
    "distinct": n.Distinct(n.TimeWindow(S, 5)),
    "last rows": n.RowWindow(S, 1, 1, ("k",)),
    "aggregate of aggregate": n.Aggregate(PER_KEY, (), (n.AggregateCall("MAX", "most", pa.int64(), "n"),)),
    "distinct of aggregate": n.Distinct(n.Project(PER_KEY, (("n", Column("n", pa.int64())),))),
    "aggregate of last rows": n.Aggregate(
        n.RowWindow(S, 2, 1, ("k",)), (), (n.AggregateCall("SUM", "total", pa.int64(), "v"),)
    ),
    "semi-join": n.Join(n.TimeWindow(S, 5), n.TimeWindow(S, 5), n.JoinKind.SEMI, (("k", "k"),)),
    "anti-join": n.Join(n.TimeWindow(S, 5), n.Istream(n.Filter(S, bind_text('"v" > 90', S.schema))),
                        n.JoinKind.ANTI, (("k", "k"),)),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_results_come_while_one_key_is_never_touched_again(name: str):
    runner = by_hand({"q": PLANS[name]})
    rows = [(("quiet", 0), 0, 1, 1)]
    emitted = 0
    for tick in range(20):
        rows += [((key, tick), 3 * tick + 1, 3 * tick + 2, 1) for key in ("a", "b")]
        step = runner.tick({"s": Delta.from_rows(S.schema, rows)}, {"s": 3 * tick})["q"]
        emitted += len(step.delta)
        rows = []
    assert emitted >= 10


def test_the_frontier_of_a_strong_query_follows_what_it_holds():
    runner = by_hand({"q": PLANS["aggregate"]})
    frontier = 0
    for tick in range(40):
        row = ((str(tick % 3), tick), 2 * tick, 2 * tick + 1, 1)
        frontier = runner.tick({"s": Delta.from_rows(S.schema, [row])}, {"s": 2 * tick})["q"].frontier
    assert 50 <= frontier <= 78
