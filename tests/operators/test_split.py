"""Split: tables of the thesis, and random streams that must keep their snapshots."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.rows.split import SplitOperator
from headwater.state.store import FileStore, MemoryStore

X = Schema.of(x="STRING")
S1 = [(("c",), 1, 8, 1), (("a",), 5, 11, 1), (("d",), 6, 14, 1), (("a",), 9, 10, 1), (("b",), 12, 17, 1)]


def split(length, rows):
    operator = SplitOperator(X, length)
    return operator.step(operator.new_state(MemoryStore()), (Delta.from_rows(X, rows),), (INFINITY,)).delta


def test_table_11_14():
    expected = """c1 c2 c3 c4 c5 a5 c6 a6 d6 c7 a7 d7 a8 d8 a9 d9 a9 a10 d10 d11 d12 b12 d13 b13 b14 b15 b16"""
    rows = sorted((s, r[0], e - s, w) for r, s, e, w in split(1, S1).rows())
    assert rows == sorted((int(x[1:]), x[0], 1, 1) for x in expected.split())


def test_pieces_of_length_three():
    expected = "c1-4 c4-7 a5-8 d6-9 c7-8 a8-11 d9-12 a9-10 d12-14 b12-15 b15-17"
    assert sorted(f"{r[0]}{s}-{e}" for r, s, e, _ in split(3, S1).rows()) == sorted(expected.split())


def test_what_is_short_passes_untouched():
    operator = SplitOperator(X, 1, for_window=True)
    state = operator.new_state(MemoryStore())
    delta = Delta.from_rows(X, [(("a",), t, t + 1, w) for t, w in ((3, 1), (3, -1), (9, 2))])
    step = operator.step(state, (delta,), (3,))
    assert step.delta.columns[0].buffers()[2].address == delta.columns[0].buffers()[2].address
    assert step.frontier == 3


def test_an_endless_element_is_cut_as_far_as_the_frontier():
    operator = SplitOperator(X, 2)
    state = operator.new_state(MemoryStore())

    def tick(rows, frontier):
        step = operator.step(state, (Delta.from_rows(X, rows),), (frontier,))
        return sorted(f"{r[0]}{s}-{'∞' if e == INFINITY else e}:{w:+d}" for r, s, e, w in step.delta.rows())

    assert tick([(("a",), 1, INFINITY, 1)], BEGINNING) == []
    assert tick([], 4) == ["a1-3:+1", "a3-5:+1"]
    assert tick([(("b",), 4, INFINITY, 1)], 5) == ["b4-6:+1"]
    assert tick([], 6) == ["a5-7:+1"]
    assert tick([(("a",), 1, INFINITY, -1), (("a",), 1, 6, 1)], 6) == ["a5-6:+1", "a5-7:-1"]
    assert tick([(("c",), 6, INFINITY, 3)], INFINITY) == ["b6-∞:+1", "c6-∞:+3"]
    assert (state.rows, state.bytes, state.segments()) == (0, 0, [])


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("files", [False, True], ids=["memory", "files"])
def test_snapshots_stay_the_same_in_short_pieces(length, files, tmp_path: Path):
    rng = random.Random(length)
    for case in range(3 if files else 20):
        operator, checker, ours, theirs = SplitOperator(X, length), StreamValidator(X), [], []
        state = operator.new_state(FileStore(tmp_path / str(case)) if files else MemoryStore())
        frontier, live = BEGINNING, []
        for tick in range(8):
            low = -9 if frontier == BEGINNING else frontier
            rows = []
            for i in rng.sample(range(len(live)), min(3, len(live))):
                row, start, end = live[i]
                if end < low:
                    continue
                rows.append((row, start, end, -1))
                new = rng.choice([low, low + 1, low + rng.randint(0, 12), INFINITY])
                if start >= low and rng.random() < 0.3:
                    new = start
                live[i] = row, start, new
                if new > start:
                    rows.append((row, start, new, 1))
                else:
                    live[i] = row, start, BEGINNING
            for _ in range(rng.randint(0, 4)):
                start = low + rng.randint(0, 5)
                live.append(((rng.choice("ab"),), start, rng.choice([start + 1, start + rng.randint(1, 14), INFINITY])))
                rows.append((*live[-1], 1))
            frontier = INFINITY if tick == 7 else rng.choice([frontier, low + rng.randint(0, 9)])
            delta = Delta.from_rows(X, rows)
            step = operator.step(state, (delta,), (frontier,))
            checker.check_delta(step.delta, step.frontier)
            assert step.frontier == frontier
            assert all(e - s <= length or (e == frontier == INFINITY) for _, s, e, _ in step.delta.rows())
            ours.append(step.delta)
            theirs.append(delta)
            horizon = -9 if frontier == BEGINNING else frontier
            assert History.of(X, ours).until(horizon) == History.of(X, theirs).until(horizon)
        assert History.of(X, ours) == History.of(X, theirs)
        assert (state.rows, state.bytes, state.segments()) == (0, 0, [])


def test_times_may_be_anywhere():
    assert len(split(2**62, [(("a",), BEGINNING + 1, INFINITY - 1, 1)])) == 4
    assert split(2**62, [(("a",), INFINITY - 9, INFINITY, 1)]).rows() == [(("a",), INFINITY - 9, INFINITY, 1)]


def test_a_row_that_lasts_too_long_is_refused_whatever_comes_with_it():
    row = (("a",), 0, 100_001, 1)
    assert len(split(1, [(("a",), 0, 100_000, 1)])) == 100_000
    with pytest.raises(StreamError, match="more than 100000 pieces"):
        split(1, [row])
    operator = SplitOperator(X, 1)
    state = operator.new_state(MemoryStore())
    operator.step(state, (Delta.from_rows(X, [(("a",), 0, INFINITY, 1)]),), (60_000,))
    ended = Delta.from_rows(X, [(("a",), 0, INFINITY, -1), (("a",), 0, 90_000, 1)])
    assert len(operator.step(state, (ended,), (200_000,)).delta) == 30_000  # it has ended in time
    operator.step(state, (Delta.from_rows(X, [(("b",), 200_000, INFINITY, 1)]),), (260_000,))
    with pytest.raises(StreamError, match="begins at 200000"):
        operator.step(state, (Delta.empty(X),), (300_001,))


def test_too_many_pieces_are_refused():
    with pytest.raises(StreamError) as error:
        split(1, [(("a",), 0, 60_000_000, 1)])
    assert error.value.code == "SPLIT_TOO_LONG"
    assert error.value.hint
    with pytest.raises(StreamError):
        split(1, [(("a",), BEGINNING + 1, INFINITY - 1, 1)])
