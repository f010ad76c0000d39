"""Repair: changes in any order become a stream in which no row changes before it is there (CEDR Finalize)."""

from __future__ import annotations

from collections import Counter

import pytest

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.tables.repair import RepairOperator
from headwater.operators.waiting.pools import PoolState
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice

X = Schema.of(x="STRING")
Row = tuple[str, int, int, int]


def insert(x: str, start: int, end: int) -> list[Row]:
    return [(x, start, end, 1)]


def change(x: str, start: int, end: int, new_end: int) -> list[Row]:
    return [(x, start, end, -1), *([(x, start, new_end, 1)] if new_end > start else [])]


def ticks(state: PoolState, *steps: tuple[list[Row], int]) -> list[tuple[list[str], int]]:
    """What passes in each tick, as ``a1-8:+1``, and how far it is final."""
    shown, operator = [], RepairOperator(X)
    for rows, frontier in steps:
        delta = Delta.from_rows(X, [((x,), s, e, w) for x, s, e, w in rows])
        out, promised = operator.step(state, (delta,), (frontier,))
        shown.append((sorted(f"{r[0]}{s}-{e}:{w:+d}" for r, s, e, w in out.rows()), promised))
    return shown


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # Golden A-3, corrected: one event per tick; the count of [0, 8) is full with the last.
        (
            [
                (change("P0", 0, 10, 8), BEGINNING),
                (change("P0", 0, 6, 4), BEGINNING),
                (change("P0", 0, 8, 6), BEGINNING),
                (insert("P0", 0, 10), BEGINNING),
                (insert("P1", 1, 5), 8),
            ],
            [([], BEGINNING)] * 3 + [(["P00-4:+1"], BEGINNING), (["P11-5:+1"], 8)],
        ),
        # More vectors. A change of an end that is still open, after its start has become final.
        (
            [(insert("P", 0, 10), 5), (change("P", 0, 10, 7), 5)],
            [(["P0-10:+1"], 5), (["P0-10:-1", "P0-7:+1"], 5)],
        ),
        ([(insert("P", 6, 9), BEGINNING), (insert("Q", 1, 4), 8)], [(["P6-9:+1"], BEGINNING), (["Q1-4:+1"], 8)]),
        # Errata 16: time waits for what is broken, although everything before 4 has come.
        (
            [(insert("P", 3, 5), 0), (change("P", 3, 4, 3), 4), (change("P", 3, 5, 4), 4)],
            [(["P3-5:+1"], 0), ([], 3), (["P3-5:-1"], 4)],
        ),
        # Taken back before it came: nothing shows.
        ([(change("P", 3, 5, 3), 0), (insert("P", 3, 5), 4)], [([], 0), ([], 4)]),
        # An end that is lengthened before it is there.
        ([(change("P", 0, 5, 9), 0), (insert("P", 0, 5), 0)], [([], 0), (["P0-9:+1"], 0)]),
        # Another start is another row.
        ([(change("P", 3, 5, 4), 0), (insert("P", 2, 5), 0)], [([], 0), (["P2-5:+1"], 0)]),
        # Once the missing end has passed, its link cannot come: time goes on, without the change.
        ([(change("P", 3, 5, 4), 3), ([], 5), ([], 6)], [([], 3), ([], 4), ([], 6)]),
        ([(change("P", 3, INFINITY, 4) + insert("Q", 3, 9), 3), ([], INFINITY)], [(["Q3-9:+1"], 3), ([], INFINITY)]),
    ],
)
def test_what_passes(steps, expected):
    assert ticks(PoolState(MemoryStore(), X), *steps) == expected


def test_what_is_given_up_is_counted():
    state = PoolState(MemoryStore(), X)
    ticks(state, (change("P", 3, 5, 4), 3), (insert("Q", 4, 8), 6), ([], INFINITY))
    assert RepairOperator(X).counts(state) == {"broken": 1}
    assert state.rows == 0


@pytest.mark.parametrize("seed", range(40))
def test_any_order_gives_the_same_rows(seed: int, tmp_path):
    """Chains of changes, shuffled, in random ticks, saved, read back and spread over other shards in between."""
    dice, operator = Dice(seed, 23), RepairOperator(X)
    events, final = _chains(dice)
    for i in range(len(events) - 1, 0, -1):
        j = dice.integer(0, i)
        events[i], events[j] = events[j], events[i]
    states, shards, validator = [operator.new_state(FileStore(tmp_path))], 1, StreamValidator(X)
    net: Counter[tuple[str, int, int]] = Counter()
    while events or validator.frontier < INFINITY:
        taken = dice.integer(0, 4)
        now, events = events[:taken], events[taken:]
        # What has not come yet says how far the stream is.
        frontier = min((_sync(e) for e in events), default=INFINITY)
        frontier = frontier if dice.chance(60) or frontier == INFINITY else validator.frontier
        rows = [((x,), s, e, w) for event in now for x, s, e, w in event[1]]
        steps = [
            operator.step(state, (part,), (max(frontier, BEGINNING),))
            for state, part in zip(states, Delta.from_rows(X, rows).split(["x"], shards), strict=True)
        ]
        delta = Delta.concat(X, [step.delta for step in steps])
        validator.check_delta(delta, min(step.frontier for step in steps))
        for row, s, e, w in delta.rows():
            net[str(row[0]), s, e] += w
        saved, store = [operator.save(state) for state in states], FileStore(tmp_path)
        shards = dice.integer(1, 3)
        states = operator.reshard([operator.restore(m, store) for m in saved], shards, store)
    assert +net == final
    assert sum(operator.counts(state)["broken"] for state in states) == 0
    assert sum(operator.buffered(state).rows for state in states) == 0


Event = tuple[int, list[Row]]
"""Numbered, so that equal ones are told apart."""


def _sync(event: Event) -> int:
    rows = event[1]
    return rows[0][1] if sum(w for *_, w in rows) else min(e for _, _, e, _ in rows)


def _chains(dice: Dice) -> tuple[list[Event], Counter[tuple[str, int, int]]]:
    events: list[list[Row]] = []
    final: Counter[tuple[str, int, int]] = Counter()
    for _ in range(dice.integer(1, 6)):
        x, start = dice.pick(["a", "b"]), dice.integer(0, 4)
        end = start + dice.integer(1, 6)
        events.append(insert(x, start, end))
        for _ in range(dice.integer(0, 3)):
            new_end = start + dice.integer(0, 6)
            if new_end != end:
                events.append(change(x, start, end, new_end))
                end = new_end
            if end == start:
                break
        if end > start:
            final[x, start, end] += 1
    return list(enumerate(events)), final
