"""Finalize: what is closed stays as it is, what comes too late is counted, and nothing is taken back that did not come."""

from __future__ import annotations

from collections import Counter

import pytest

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.waiting.finalize import FinalizeOperator
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice

X = Schema.of(x="STRING", y="INT")
Row = tuple[str, int, int, int]


def ticks(*steps: tuple[list[Row], int], revisable: bool = True) -> tuple[list[list[str]], int]:
    """What passes in each tick when the past is closed so far after it, as ``a1-8:+1``; and how much was forgotten."""
    operator = FinalizeOperator(X, ["y"], revisable=revisable)
    state = operator.new_state(MemoryStore())
    shown, validator = [], StreamValidator(X)
    for rows, closed in steps:
        delta = _delta(rows)
        out, promised = operator.step(state, (delta,), (BEGINNING,), closed)
        assert promised == max(closed, validator.frontier)
        validator.check_delta(out, promised)
        shown.append(sorted(f"{r[0]}{s}-{e}:{w:+d}" for r, s, e, w in out.rows()))
    return shown, operator.counts(state)["forgotten"]


def _delta(rows: list[Row]) -> Delta:
    return Delta.from_rows(X, [((x, len(x)), s, e, w) for x, s, e, w in rows])


A = ("a", 3, 30, 1)
_A = ("a", 3, 30, -1)


@pytest.mark.parametrize(
    ("steps", "expected", "forgotten"),
    [
        # Rows of one tick are judged by what was closed before it, not by each other.
        (
            [([("a", 1, 9, 1), ("b", 8, 9, 1)], 8), ([("c", 8, 9, 1), ("d", 7, 9, 1)], 8)],
            [["a1-9:+1", "b8-9:+1"], ["c8-9:+1"]],
            1,
        ),
        # An end that is open may move, as long as it stays so.
        (
            [([A], 10), ([_A, ("a", 3, 12, 1)], 10), ([("a", 3, 12, -1), ("a", 3, 20, 1)], 10)],
            [["a3-30:+1"], ["a3-12:+1", "a3-30:-1"], ["a3-12:-1", "a3-20:+1"]],
            0,
        ),
        # One that moves into the closed past is cut there, and so is a row that is removed.
        ([([A], 10), ([_A, ("a", 3, 7, 1)], 10)], [["a3-30:+1"], ["a3-10:+1", "a3-30:-1"]], 1),
        ([([A], 10), ([_A], 10)], [["a3-30:+1"], ["a3-10:+1", "a3-30:-1"]], 1),
        # From then on its end is past, whatever becomes of it.
        (
            [([A], 10), ([_A, ("a", 3, 7, 1)], 10), ([("a", 3, 7, -1), ("a", 3, 15, 1)], 10), ([("a", 3, 15, -1)], 10)],
            [["a3-30:+1"], ["a3-10:+1", "a3-30:-1"], [], []],
            2,
        ),
        # The changes of a row that was not let in do not show either, nor does its end.
        ([([], 10), ([A], 10), ([_A, ("a", 3, 20, 1)], 10), ([("a", 3, 20, -1)], 10)], [[], [], [], []], 2),
        # One was let in and one was not: a change is of the hidden one as long as there is one.
        (
            [([A], 10), ([A], 10), ([_A], 10), ([_A, ("a", 3, 20, 1)], 10)],
            [["a3-30:+1"], [], [], ["a3-20:+1", "a3-30:-1"]],
            1,
        ),
        # An end at the frontier can still be lengthened (errata 30).
        (
            [([("a", 3, 10, 1)], 10), ([("a", 3, 10, -1), ("a", 3, 11, 1)], 10)],
            [["a3-10:+1"], ["a3-10:-1", "a3-11:+1"]],
            0,
        ),
        ([([("a", 3, 9, 1)], 10), ([("a", 3, 9, -1), ("a", 3, 11, 1)], 10)], [["a3-9:+1"], []], 1),
    ],
)
def test_what_passes(steps, expected, forgotten):
    assert ticks(*steps) == (expected, forgotten)


def test_the_frontier_of_the_stream_counts_too():
    operator = FinalizeOperator(X, ["y"])
    state = operator.new_state(MemoryStore())
    delta = _delta([A])
    assert operator.step(state, (delta,), (7,), 4).frontier == 7
    assert operator.step(state, (_delta([]),), (7,)).frontier == 7


def test_hidden_rows_are_forgotten_when_they_have_ended():
    operator = FinalizeOperator(X, ["x"])
    state = operator.new_state(MemoryStore())
    for rows, closed, kept in [
        ([], 10, 0),
        ([("a", 3, 20, 1), ("b", 4, 40, 1)], 10, 2),
        ([], 30, 2),
        ([], 31, 1),
        ([], INFINITY, 0),
    ]:
        delta = _delta(rows)
        operator.step(state, (delta,), (BEGINNING,), closed)
        assert operator.buffered(state).rows == kept


@pytest.mark.parametrize("revisable", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_only_what_is_late_is_forgotten(seed: int, revisable: bool, tmp_path):
    """Random streams against a model that looks at one row at a time; saved, read back, on other shards in between."""
    dice = Dice(seed, 31)
    operator, model, validator = FinalizeOperator(X, ["y"], revisable=revisable), _Model(), StreamValidator(X)
    states, shards, closed, live = [operator.new_state(FileStore(tmp_path))], 1, BEGINNING, []
    for tick in range(10):
        events = [_event(dice, live, tick, revisable=revisable) for _ in range(dice.integer(0, 5))]
        before, closed = closed, max(closed, tick * 2 - dice.integer(0, 6)) if tick < 9 else INFINITY
        rows = [row for event in events for row in event]
        expected = model.tick(rows, before)
        steps = []
        for state, part in zip(states, _delta(rows).split(["y"], shards), strict=True):
            steps.append(operator.step(state, (part,), (BEGINNING,), closed))
        delta = Delta.concat(X, [step.delta for step in steps])
        validator.check_delta(delta, closed)
        assert {((r[0]), s, e): w for r, s, e, w in delta.consolidate().rows()} == expected
        saved, store = [operator.save(state) for state in states], FileStore(tmp_path)
        shards = dice.integer(1, 3)
        states = operator.reshard([operator.restore(m, store) for m in saved], shards, store)
        assert sum(operator.counts(state)["forgotten"] for state in states) == model.forgotten
    assert sum(operator.buffered(state).rows for state in states) == 0


def _event(dice: Dice, live: list[tuple[str, int, int]], tick: int, *, revisable: bool) -> list[Row]:
    if revisable and live and dice.chance(50):
        x, start, end = live.pop(dice.integer(0, len(live) - 1))
        new_end = dice.pick([start, start + dice.integer(1, 12), INFINITY])
        if new_end > start:
            live.append((x, start, new_end))
        return [(x, start, end, -1), *([(x, start, new_end, 1)] if new_end > start else [])]
    start = max(tick * 2 + dice.integer(-6, 3), 0)
    row = (dice.pick(["a", "bb", "c"]), start, start + dice.integer(1, 12))
    live.append(row)
    return [(*row, 1)]


class _Model:
    """The rules, for one payload and start at a time, with bags of ends."""

    def __init__(self) -> None:
        self.hidden: Counter[tuple[str, int, int]] = Counter()
        self.forgotten = 0

    def tick(self, rows: list[Row], closed: int) -> dict[tuple[str, int, int], int]:
        change: Counter[tuple[str, int, int]] = Counter()
        for x, start, end, weight in rows:
            change[x, start, end] += weight
        out: Counter[tuple[str, int, int]] = Counter({k: w for k, w in change.items() if k[1] >= closed})
        for x, start in sorted({k[:2] for k, w in change.items() if w and k[1] < closed}):
            ends = {end: w for (y, s, end), w in change.items() if (y, s) == (x, start) and w}
            goes = sorted(e for e, w in ends.items() for _ in range(-w))
            comes = sorted(e for e, w in ends.items() for _ in range(w))
            seen: list[int] = []
            lost = 0
            unseen = 0
            for end in goes:
                if end < closed:
                    unseen, lost = unseen + 1, lost + 1
                elif self.hidden[x, start, end]:
                    self.hidden[x, start, end] -= 1
                    unseen += 1
                else:
                    seen.append(end)
            follow, rest = comes[:unseen], comes[unseen:]
            passing, new = rest[: len(seen)], rest[len(seen) :]
            for end in (*follow, *new):
                self.hidden[x, start, end] += 1
            self.forgotten += len(follow) + len(new) + max(lost - len(follow), 0)
            for end in seen:
                out[x, start, end] -= 1
            passing += [BEGINNING] * (len(seen) - len(passing))
            for end in passing:
                self.forgotten += end < closed
                out[x, start, max(end, closed)] += 1
        return {k: w for k, w in out.items() if w}
