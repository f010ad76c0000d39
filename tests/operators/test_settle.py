"""Settle: only what is final passes, with what it takes back of what was shown before; opened, everything does."""

from __future__ import annotations

import pytest

from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.waiting.pools import PoolState
from headwater.operators.waiting.settle import SettleOperator
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice
from headwater.testing.generate import cut, stream, whole
from headwater.testing.plans import source

X = Schema.of(x="STRING")
Row = tuple[str, int, int, int]


def ticks(
    state: PoolState, *steps: tuple[list[Row], int], operator: SettleOperator | None = None
) -> list[tuple[list[str], int]]:
    """What passes in each tick, as ``a1-8:+1``, and how far it is final."""
    shown, operator = [], operator or SettleOperator(X)
    for rows, frontier in steps:
        delta = Delta.from_rows(X, [((x,), s, e, w) for x, s, e, w in rows])
        out, promised = operator.step(state, (delta,), (frontier,))
        shown.append((sorted(f"{r[0]}{s}-{e}:{w:+d}" for r, s, e, w in out.rows()), promised))
    return shown


OPEN, CLOSED = ("a", 3, INFINITY, -1), ("a", 3, 9, 1)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # A row passes once its end cannot move any more: at the frontier itself it still can (errata 30).
        ([([("b", 5, 8, 1)], 5), ([], 8), ([], 9)], [([], 5), ([], 5), (["b5-8:+1"], 9)]),
        # A row that was shown without an end gets one, in one change, when that is certain.
        ([([OPEN, CLOSED], 4), ([], 9), ([], 10)], [([], 4), ([], 9), (["a3-9223372036854775807:-1", "a3-9:+1"], 10)]),
        # One that should not have been shown goes when nothing can begin there any more.
        ([([("a", 6, INFINITY, -1)], 4), ([], 6), ([], 7)], [([], 4), ([], 6), (["a6-9223372036854775807:-1"], 7)]),
        # What comes and goes in the meantime never shows.
        ([([("b", 5, 8, 1)], 5), ([("b", 5, 8, -1)], 5), ([], 9)], [([], 5), ([], 5), ([], 9)]),
        # At the end of time all is certain.
        ([([("b", 5, INFINITY, 1)], 6), ([], INFINITY)], [([], 5), (["b5-9223372036854775807:+1"], INFINITY)]),
    ],
)
def test_what_passes(steps, expected):
    assert ticks(PoolState(MemoryStore(), X), *steps) == expected


def test_opened_it_lets_all_pass_that_waits_and_may_be_closed_again():
    state = PoolState(MemoryStore(), X)
    ticks(state, ([("b", 5, 8, 1)], 5))
    opened = SettleOperator(X, opened=True)
    assert ticks(state, ([("c", 6, 9, 1)], 5), operator=opened) == [(["b5-8:+1", "c6-9:+1"], 5)]
    assert ticks(state, ([("c", 6, 9, -1)], 5), operator=opened) == [(["c6-9:-1"], 5)]
    assert state.rows == 0
    assert ticks(state, ([("d", 7, 9, 1)], 6), ([], 10)) == [([], 6), (["d7-9:+1"], 10)]


@pytest.mark.parametrize("seed", range(25))
def test_a_stream_from_its_beginning_is_never_taken_back(seed: int, tmp_path):
    """Random streams, saved, read back and spread over other shards in between."""
    dice = Dice(seed, 41)
    read = source(dice, "s")
    elements, schema = stream(dice, read), read.schema
    operator, shards, validator = SettleOperator(schema), 1, StreamValidator(schema)
    states, out, frontier = [operator.new_state(FileStore(tmp_path))], [], BEGINNING
    for part in [*cut(dice, elements, 4), None]:
        delta = whole(schema, part or [])
        frontier = INFINITY if part is None else max([frontier, *(e.at for e in part if hasattr(e, "at"))])
        pieces = zip(states, delta.split(schema.names, shards), strict=True)
        steps = [operator.step(state, (piece,), (frontier,)) for state, piece in pieces]
        together = Delta.concat(schema, [step.delta for step in steps])
        assert (together.weight > 0).all()
        validator.check_delta(together, min(step.frontier for step in steps))
        out.append(together)
        saved, store = [operator.save(state) for state in states], FileStore(tmp_path)
        shards = dice.integer(1, 3)
        states = operator.reshard([operator.restore(m, store) for m in saved], shards, store)
    assert History.of(schema, out) == History.of(schema, [whole(schema, elements)])
    assert sum(operator.buffered(state).rows for state in states) == 0
