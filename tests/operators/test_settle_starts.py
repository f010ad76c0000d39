"""Settle by the starts: what is known shows, without an end while that is open; nothing that came so is taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.operators.test_settle import CLOSED, OPEN, X, ticks

from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.waiting.pools import PoolState
from headwater.operators.waiting.settle import SettleOperator
from headwater.operators.waiting.settle_starts import SettleStartsOperator
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice
from headwater.testing.generate import cut, stream, whole
from headwater.testing.plans import source

NEVER = "9223372036854775807"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # A row shows with its start, and gets its end when that cannot move any more (errata 30).
        (
            [([("b", 5, 8, 1)], 5), ([], 6), ([], 8), ([], 9)],
            [([], 5), ([f"b5-{NEVER}:+1"], 6), ([], 8), (["b5-8:+1", f"b5-{NEVER}:-1"], 9)],
        ),
        # Where both are final, it comes with both.
        ([([("b", 5, 8, 1)], 5), ([], 9)], [([], 5), (["b5-8:+1"], 9)]),
        # A row that was shown without an end gets one, in one change, when that is certain.
        ([([OPEN, CLOSED], 4), ([], 9), ([], 10)], [([], 4), ([], 9), ([f"a3-{NEVER}:-1", "a3-9:+1"], 10)]),
        # One that was shown with an end that was wrong keeps it until the right one is known, or until it has passed.
        (
            [([("a", 3, 7, -1), CLOSED], 4), ([], 7), ([], 8), ([], 10)],
            [([], 4), ([], 7), (["a3-7:-1", f"a3-{NEVER}:+1"], 8), ([f"a3-{NEVER}:-1", "a3-9:+1"], 10)],
        ),
        # Of two that were shown one should not have been.
        ([([("a", 3, 9, -1)], 3), ([], 4), ([], 10)], [([], 3), (["a3-9:-1"], 4), ([], 10)]),
        # What comes and goes in the meantime never shows.
        ([([("b", 5, 8, 1)], 5), ([("b", 5, 8, -1)], 5), ([], 9)], [([], 5), ([], 5), ([], 9)]),
        # At the end of time all is certain.
        ([([("b", 5, 8, 1)], 6), ([], INFINITY)], [([f"b5-{NEVER}:+1"], 6), (["b5-8:+1", f"b5-{NEVER}:-1"], INFINITY)]),
    ],
)
def test_what_passes(steps, expected):
    state = PoolState(MemoryStore(), X)
    assert ticks(state, *steps, operator=SettleStartsOperator(X)) == expected
    assert state.rows == 0


def test_opened_it_lets_all_pass_that_waits():
    state = PoolState(MemoryStore(), X)
    ticks(state, ([("b", 5, 8, 1), ("c", 7, 9, 1)], 6), operator=SettleStartsOperator(X))
    opened = SettleStartsOperator(X, opened=True)
    assert ticks(state, ([], 6), operator=opened) == [(["b5-8:+1", f"b5-{NEVER}:-1", "c7-9:+1"], 6)]
    assert state.rows == 0


@pytest.mark.parametrize("seed", range(60))
def test_all_that_is_known_shows_and_stays(seed: int, tmp_path: Path):
    """Random streams that pass as they are for some ticks; saved, read back and spread over other shards in between."""
    dice = Dice(seed, 42)
    read = source(dice, "s")
    elements, schema = stream(dice, read), read.schema
    closed, opened = SettleStartsOperator(schema), SettleStartsOperator(schema, opened=True)
    shards, validator, frontier = 1, StreamValidator(schema), BEGINNING
    states, come, out = [closed.new_state(FileStore(tmp_path))], [], []
    final: set[tuple[str, int, int]] = set()
    begins = dice.integer(0, 3)
    for i, part in enumerate([*cut(dice, elements, 6), None]):
        operator: SettleOperator = closed if i >= begins else opened
        come.append(whole(schema, part or []))
        frontier = INFINITY if part is None else max([frontier, *(e.at for e in part if hasattr(e, "at"))])
        pieces = zip(states, come[-1].split(schema.names, shards), strict=True)
        steps = [operator.step(state, (piece,), (frontier,)) for state, piece in pieces]
        out.append(Delta.concat(schema, [step.delta for step in steps]))
        assert {step.frontier for step in steps} == {frontier}
        validator.check_delta(out[-1], frontier)
        assert History.of(schema, out).until(frontier) == History.of(schema, come).until(frontier)
        for row, start, end, weight in out[-1].rows() if operator is closed else ():
            if weight > 0:
                assert start < frontier
                assert end < frontier or end == INFINITY
                final.add((str(row), start, end))
            else:  # it gets its end, or was shown before
                assert end == INFINITY or (str(row), start, end) not in final
        saved, store = [operator.save(state) for state in states], FileStore(tmp_path)
        shards = dice.integer(1, 3)
        states = operator.reshard([operator.restore(m, store) for m in saved], shards, store)
    assert sum(closed.buffered(state).rows for state in states) == 0
