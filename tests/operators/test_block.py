"""Block: rows wait, what is taken back meanwhile never shows, and in the end everything has passed."""

from __future__ import annotations

import pytest

from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.waiting.block import BlockOperator, BlockState
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice
from headwater.testing.generate import StreamShape, cut, stream, whole
from headwater.testing.plans import source

X = Schema.of(x="STRING")


def ticks(state: BlockState, *steps: tuple[list[tuple[str, int, int, int]], int, int]) -> list[list[str]]:
    """What passes in each tick, as ``a1-8:+1``, when time has come so far and the frontier is so far."""
    shown, operator = [], BlockOperator(X, ["x"])
    for rows, come, frontier in steps:
        delta = Delta.from_rows(X, [((x,), s, e, w) for x, s, e, w in rows])
        out, promised = operator.step(state, (delta,), (frontier,), come)
        assert promised == frontier
        shown.append(sorted(f"{r[0]}{s}-{e}:{w:+d}" for r, s, e, w in out.rows()))
    return shown


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # A row waits until time has come to its start, and no longer.
        ([([("a", 5, 9, 1)], 3, BEGINNING), ([], 4, BEGINNING), ([], 5, BEGINNING)], [[], [], ["a5-9:+1"]]),
        # What is taken back while it waits never shows; a changed end shows only as it is then.
        ([([("a", 5, 9, 1)], 3, 0), ([("a", 5, 9, -1)], 4, 0), ([], 9, 0)], [[], [], []]),
        ([([("a", 5, 9, 1)], 3, 0), ([("a", 5, 9, -1), ("a", 5, 7, 1)], 5, 0)], [[], ["a5-7:+1"]]),
        # Once out, all changes pass.
        (
            [([("a", 5, 9, 1)], 5, 0), ([("a", 5, 9, -1), ("a", 5, 7, 1)], 5, 0), ([("a", 5, 7, -1)], 6, 0)],
            [["a5-9:+1"], ["a5-7:+1", "a5-9:-1"], ["a5-7:-1"]],
        ),
        # What is final need not wait, whatever its end (errata 11: in the order of the starts; nothing leaks before).
        (
            [([("a", 0, 9, 1), ("b", 5, 6, 1)], BEGINNING, 0), ([], BEGINNING, 5), ([], BEGINNING, 6)],
            [[], ["a0-9:+1"], ["b5-6:+1"]],
        ),
        # Time does not go back when the wait becomes longer: what has passed may change at once.
        (
            [([("a", 5, 9, 1)], 5, 0), ([("a", 5, 9, -1)], 2, 0), ([("b", 5, 9, 1)], 2, 0)],
            [["a5-9:+1"], ["a5-9:-1"], ["b5-9:+1"]],
        ),
    ],
)
def test_when_rows_pass(steps, expected):
    assert ticks(BlockState(MemoryStore()), *steps) == expected


def test_what_comes_and_goes_takes_no_room():
    state = BlockState(MemoryStore())
    rows = [("a", 5, 9, 1), ("b", 6, 9, 1)]
    for _ in range(50):
        ticks(state, (rows, 0, 0), ([(*row[:3], -1) for row in rows], 0, 0))
        assert state.rows <= 4
    assert ticks(state, (rows, 0, 0), ([], 9, 0)) == [[], ["a5-9:+1", "b6-9:+1"]]
    assert state.rows == 0


@pytest.mark.parametrize("seed", range(30))
def test_it_only_delays(seed: int, tmp_path):
    """Random streams: legal tick by tick, the history as it came in, nothing before its time; kept and spread anew."""
    dice = Dice(seed, 17)
    read = source(dice, "s")
    elements = stream(dice, read, StreamShape())
    schema, by = read.schema, read.schema.names[:1]
    operator, shards = BlockOperator(schema, by), 1
    states = [operator.new_state(FileStore(tmp_path))]
    validator, out, come, frontier = StreamValidator(schema), [], BEGINNING, BEGINNING
    parts = [*cut(dice, elements, 4), []]
    for i, part in enumerate(parts):
        delta = whole(schema, part)
        last = i == len(parts) - 1
        frontier = INFINITY if last else max([frontier, *(e.at for e in part if hasattr(e, "at"))])
        come = max(come, delta.largest_start() - 3) if len(delta) else come
        steps = []
        for state, piece in zip(states, delta.split(by, shards), strict=True):
            steps.append(operator.step(state, (piece,), (frontier,), come).delta)
        together = Delta.concat(schema, steps)
        assert ((together.start <= come) | (together.start < frontier)).all()
        validator.check_delta(together, frontier)
        out.append(together)
        saved = [operator.save(state) for state in states]
        shards = dice.integer(1, 3)
        store = FileStore(tmp_path)
        states = operator.reshard([operator.restore(m, store) for m in saved], shards, store)
    assert History.of(schema, out) == History.of(schema, [whole(schema, elements)])
    assert sum(operator.buffered(state).rows for state in states) == 0
