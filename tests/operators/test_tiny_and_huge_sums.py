"""Sums of doubles at the ends of what a double holds, while rows come and go."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path

import pytest

from headwater.language.binder import bind_script
from headwater.runtime.replay import replay

SCRIPT = "CREATE STREAM s (x DOUBLE); SELECT SUM(x) AS total, AVG(x) AS mean FROM s"
Row = tuple[float, int, int]


def answers(rows: list[Row], folder: Path) -> dict[int, tuple[float, float]]:
    """Sum and mean at each instant."""
    recording = folder / "rows.jsonl"
    lines = [{"stream": "s", "kind": "insert", "start": a, "end": b, "row": {"x": x}} for x, a, b in rows]
    recording.write_text("\n".join(json.dumps(line) for line in lines))
    found = {}
    for line in map(json.loads, replay(bind_script(SCRIPT), recording, history=True)):
        for at in range(line["start"], line["end"]):
            found[at] = tuple(float(v) for v in line["row"].values())
    return found


def test_values_below_all_normal_numbers_are_summed(tmp_path: Path):
    found = answers([(1e-300, 0, 4), (3e-310, 1, 3), (5e-324, 2, 5)], tmp_path)
    assert found == {
        0: (1e-300, 1e-300),
        1: (1e-300 + 3e-310, (1e-300 + 3e-310) / 2),
        2: (1e-300 + 3e-310, (1e-300 + 3e-310) / 3),
        3: (1e-300, 1e-300 / 2),
        4: (5e-324, 5e-324),
    }


def test_an_overflow_goes_when_its_cause_goes(tmp_path: Path):
    rows = [(1.5e308, 0, 2), (1.5e308, 1, 3), (-1.5e308, 1, 2), (1.5, 0, 5), (1e308, 4, 6), (1e308, 4, 5)]
    found = answers(rows, tmp_path)
    assert {at: total for at, (total, _) in found.items()} == {
        0: 1.5e308,
        1: 1.5e308,
        2: 1.5e308,
        3: 1.5,
        4: math.inf,
        5: 1e308,
    }
    assert found[4][1] == pytest.approx(2e308 / 3 if math.isfinite(2e308) else 1e308 / 3 * 2)


def test_what_came_before_an_empty_group_is_forgotten(tmp_path: Path):
    found = answers([(1e308, 0, 2), (-1e-300, 3, 4), (1.5, 5, 6), (1e-300, 7, 8)], tmp_path)
    assert [found[at][0] for at in (0, 3, 5, 7)] == [1e308, -1e-300, 1.5, 1e-300]


@pytest.mark.parametrize("seed", range(8))
def test_the_error_is_small_against_the_largest_that_was_there(seed: int, tmp_path: Path):
    rng = random.Random(seed)
    low, high = rng.choice([(-1074, -950), (-40, 40), (900, 1022), (-1074, 1022), (940, 970)])
    rows = []
    for _ in range(150):
        start = rng.randrange(60)
        value = math.ldexp(rng.uniform(-1, 1), rng.randrange(low, high))
        rows.append((value, start, start + rng.randrange(1, 12)))
    found = answers(rows, tmp_path)
    largest = Fraction(0)
    for at in range(72):
        there = [Fraction(x) for x, a, b in rows if a <= at < b]
        if not there:
            largest = Fraction(0)
            continue
        largest = max([largest, *map(abs, there)])
        exact = sum(there)
        if abs(exact) < 2**1023:
            allowed = largest / 2**90 + abs(exact) / 2**52 + Fraction(2) ** -1074
            assert abs(Fraction(found[at][0]) - exact) <= allowed
