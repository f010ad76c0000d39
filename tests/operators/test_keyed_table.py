"""A keyed table is what a row window of one row per key shows, without deletions; and it forgets who is gone."""

from __future__ import annotations

import random

import pytest

from headwater.algebra import nodes as n
from headwater.expressions.rewrite import column
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.tables.keyed_table import KeyedTableOperator
from headwater.operators.tables.standing_rows import StandingRowsOperator
from headwater.runtime.stepping import by_hand
from headwater.state.store import MemoryStore
from headwater.testing.cases import scaled
from headwater.testing.expression_text import bind_text

WIDE, NARROW = Schema.of(_sequence="BIGINT", k="STRING", x="INT", _deleted="BOOLEAN"), Schema.of(k="STRING", x="INT")
EVENTS, ROW = Schema.of(_sequence="BIGINT", k="INT", x="INT", _deleted="BOOLEAN"), Schema.of(k="INT", x="INT")
GONE = ("_deleted",)


def by_row_window(events: Schema, row: Schema) -> n.Plan:
    """Krämer 8.19 with one row: the last event of each key, shown unless it is a deletion."""
    last = n.RowWindow(n.Source("s", events, chronons=True, revisable=False), 1, partition=("k",))
    there = n.Filter(last, bind_text('NOT "_deleted"', last.schema))
    return n.Project(there, tuple((f.name, column(f)) for f in row))


def random_ticks(chance: random.Random, events: Schema) -> list[tuple[Delta, int]]:
    """Events that come up to five instants late, some of them at one instant; each tick says how far it is."""
    ticks, frontier = [], 0
    for _ in range(chance.randint(1, 8)):
        rows = []
        for _ in range(chance.randint(0, 6)):
            key = chance.randrange(3)
            named = f"key {key}" if events is WIDE else key
            at = frontier + chance.randrange(5)
            row = (chance.randrange(2), named, chance.randrange(3), chance.random() < 0.3)
            rows.append((row, at, at + 1, 1))
        frontier += chance.randrange(4)
        ticks.append((Delta.from_rows(events, rows), frontier))
    return [*ticks, (Delta.empty(events), INFINITY)]


def check_table(seed: int) -> None:
    chance = random.Random(seed)
    events, row = (WIDE, NARROW) if chance.random() < 0.5 else (EVENTS, ROW)
    operator, kept = KeyedTableOperator(events, row, ("k",), "_deleted"), StandingRowsOperator(row)
    state, known = operator.new_state(MemoryStore()), kept.new_state(MemoryStore())
    runner = by_hand({"q": by_row_window(events, row)}, speculative=True)
    shown, right = [Delta.empty(row)], [Delta.empty(row)]
    for delta, frontier in random_ticks(chance, events):
        step = operator.step(state, (delta,), (frontier,))
        kept.step(known, (step.delta,), (step.frontier,))
        shown.append(step.delta)
        right.append(runner.tick({"s": delta}, {"s": frontier})["q"].delta)
        now = Delta.concat(row, shown).consolidate()
        expected = History.of(row, right).rows()
        assert History.of(row, [now]).rows() == expected, seed
        holds = History.of(row, [now.filter(now.end >= frontier)]).rows()
        assert History.of(row, [operator.standing(state)]).rows() == holds, seed
        assert History.of(row, [kept.standing(known)]).rows() == holds, seed


@pytest.mark.parametrize("piece", range(2))
def test_random_events(piece: int):
    for seed in range(piece * scaled(60), (piece + 1) * scaled(60)):
        check_table(seed)


def test_who_is_gone_is_forgotten():
    operator = KeyedTableOperator(EVENTS, ROW, ("k",), "_deleted")
    state = operator.new_state(MemoryStore())
    for tick in range(50):
        at = 10 * tick
        come = [((0, 100 * tick + i, 1, False), at, at + 1, 1) for i in range(100)]
        go = [((0, 100 * tick + i, 1, True), at + 5, at + 6, 1) for i in range(100)]
        operator.step(state, (Delta.from_rows(EVENTS, come + go),), (at,))
        assert state.rows == 200  # those of this tick, of which nothing is final
    operator.step(state, (Delta.empty(EVENTS),), (10_000,))
    assert state.rows == 0
