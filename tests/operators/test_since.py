"""Since: who comes in the middle of a stream sees no changes of what came before; all the rest passes as it is."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.since import SinceOperator
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice

X = Schema.of(x="STRING")
NARROW = Schema.of(x="BIGINT")


def ticks(operator: SinceOperator, state, *steps: tuple[list[tuple[str, int, int, int]], int]) -> list[list[str]]:
    """What passes in each tick, as ``a1-8:+1``."""
    shown = []
    for rows, frontier in steps:
        delta = Delta.from_rows(X, [((x,), s, e, w) for x, s, e, w in rows])
        out, reached = operator.step(state, (delta,), (frontier,))
        assert reached == frontier
        shown.append(sorted(f"{r[0]}{s}-{e}:{w:+d}" for r, s, e, w in out.rows()))
    return shown


def passed(*steps: tuple[list[tuple[str, int, int, int]], int]) -> list[list[str]]:
    operator = SinceOperator(X)
    return ticks(operator, operator.new_state(MemoryStore()), *steps)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # Rows that come, and their changes, pass.
        (
            [([("a", 1, 8, 1)], 0), ([("a", 1, 8, -1), ("a", 1, 5, 1)], 2), ([("a", 1, 5, -1)], 2)],
            [["a1-8:+1"], ["a1-5:+1", "a1-8:-1"], ["a1-5:-1"]],
        ),
        # Neither half of a change of something unseen does, nor what follows from it.
        ([([("a", 1, 8, -1), ("a", 1, 5, 1)], 0), ([("a", 1, 5, -1), ("a", 1, 6, 1)], 0)], [[], []]),
        # Nor does an unseen row that goes.
        ([([("a", 1, 8, -1)], 0), ([("a", 1, 8, 1)], 0)], [[], ["a1-8:+1"]]),
        # One seen and one unseen copy: the first change is of the one, the second of the other.
        (
            [([("a", 1, 8, 1)], 0), ([("a", 1, 8, -1)], 0), ([("a", 1, 8, -1), ("a", 1, 4, 1)], 0)],
            [["a1-8:+1"], ["a1-8:-1"], []],
        ),
        # Several copies, of which some are seen: as many come in their place as go.
        (
            [([("a", 1, 8, 2)], 0), ([("a", 1, 8, -3), ("a", 1, 5, 1), ("a", 1, 6, 2)], 0)],
            [["a1-8:+2"], ["a1-6:+2", "a1-8:-2"]],
        ),
        # Another start or another payload is another row.
        ([([("a", 1, 8, -1), ("a", 2, 8, 1), ("b", 1, 8, 1)], 0)], [["a2-8:+1", "b1-8:+1"]]),
    ],
)
def test_what_passes(steps, expected):
    assert passed(*steps) == expected


def test_what_cannot_change_any_more_is_forgotten():
    operator = SinceOperator(X)
    state = operator.new_state(MemoryStore())
    ticks(operator, state, ([("a", 1, 5, 1), ("b", 1, 9, 1), ("c", 2, INFINITY, 1)], 1))
    assert operator.buffered(state).rows == 3
    ticks(operator, state, ([], 6))
    assert operator.buffered(state).rows == 2
    ticks(operator, state, ([("b", 1, 9, -1), ("b", 1, 7, 1)], 8))
    assert operator.buffered(state).rows == 1
    ticks(operator, state, ([], INFINITY))
    assert operator.buffered(state).rows == 0


@pytest.mark.parametrize("schema", [X, NARROW], ids=["wide key", "narrow key"])
@pytest.mark.parametrize("seed", range(20))
def test_it_never_takes_back_what_did_not_pass(seed: int, schema: Schema, tmp_path):
    """Over random changes, saved, read back and spread over other shards in between."""
    dice, operator = Dice(seed, 5), SinceOperator(schema)
    states, shards = [operator.new_state(FileStore(tmp_path))], 1
    values = ["a", "b", "c"] if pa.types.is_string(schema.types[0]) else [1, 2, None]
    net: Counter[tuple[object, int, int]] = Counter()
    frontier = BEGINNING
    for tick in range(8):
        rows = [
            ((dice.pick(values),), s := dice.integer(tick, tick + 2), s + dice.integer(1, 4), dice.pick([1, 1, -1]))
            for _ in range(6)
        ]
        parts = Delta.from_rows(schema, rows).split(schema.names, shards)
        frontier = max(frontier, tick)
        for state, part in zip(states, parts, strict=True):
            for row, s, e, w in operator.step(state, (part,), (frontier,)).delta.rows():
                net[row[0], s, e] += w
        assert min(net.values(), default=0) >= 0
        saved = [operator.save(state) for state in states]
        shards = dice.integer(1, 3)
        states = operator.reshard(
            [operator.restore(m, FileStore(tmp_path)) for m in saved], shards, FileStore(tmp_path)
        )
