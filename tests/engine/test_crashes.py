"""The process is killed at every named moment of every tick, and by chance: nothing is lost, nothing comes twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_market import STEPS, check, run_market, run_market_part_by_part
from tests.crash import ANY_CALL, ANY_POINT, Crash, in_child

from headwater.runtime import points
from headwater.testing.cases import fresh, scaled

CALLS = 1_500_000
"""About so many calls of functions a whole run has."""


def dies(folder: Path, crash: Crash, run: Callable[..., None] = run_market, **options: Any) -> bool:
    """Is a run killed there? Otherwise it must come to its end."""
    ended = in_child(run, folder, crash=crash, **options)
    if not ended.killed:
        ended.result()
    return ended.killed


def test_the_market_has_something_of_everything(undisturbed: dict[str, Any]):
    assert all(sum(map(len, files.values())) > 1 for files in undisturbed["answers"].values())
    assert {name.partition("/")[0] for name in undisturbed["diverted"]} == {"bid_bad"}
    assert undisturbed["state"]["counts"]["bid"] == {"rows": 40 * STEPS - 9, "late": 4, "bad": 5}


@pytest.mark.parametrize(
    ("point", "first", "next_"),
    [
        # Where the crash is before the commit, the next process comes to the same moment of the same tick once more.
        (points.BEFORE_THE_JOB, 1, 2),
        (points.IN_A_SENDER, 2, 5),
        (points.IN_A_STAGE, 3, 6),
        (points.AFTER_THE_SEGMENTS, 1, 2),
        (points.BEFORE_THE_MANIFEST, 1, 2),
        (points.IN_THE_MANIFEST, 1, 2),
        (points.AFTER_THE_MANIFEST, 1, 1),
        (points.IN_A_SINK + "busy", 1, 1),
        (points.IN_A_SINK + "large", 1, 1),
        (points.BEFORE_THE_DIVERTED, 1, 1),
        (points.AFTER_THE_SINKS, 1, 1),
    ],
)
def test_killed_in_every_tick(point: str, first: int, next_: int, tmp_path: Path, undisturbed: dict[str, Any]):
    assert dies(tmp_path, Crash(point, first))
    crashes = 1
    while dies(tmp_path, Crash(point, next_)):
        crashes += 1
        assert crashes <= 2 * STEPS
    assert crashes >= STEPS
    check(tmp_path, undisturbed)


def test_killed_again_while_the_answer_is_delivered_again(tmp_path: Path, undisturbed: dict[str, Any]):
    assert dies(tmp_path, Crash(points.IN_A_SINK + "offers", 2))
    for query in ("busy", "offers", "early"):
        assert dies(tmp_path, Crash(points.AGAIN_IN_A_SINK + query))
    in_child(run_market, tmp_path).result()
    check(tmp_path, undisturbed)


@pytest.mark.parametrize("count", [1, 2, 9, 30])
def test_killed_between_two_files_of_an_answer(count: int, tmp_path: Path, undisturbed: dict[str, Any]):
    assert dies(tmp_path, Crash("between two files", count), run_market_part_by_part)
    assert dies(tmp_path, Crash("between two files", 3), run_market_part_by_part)
    in_child(run_market, tmp_path).result()
    check(tmp_path, undisturbed)


def test_killed_while_tidying(tmp_path: Path, undisturbed: dict[str, Any]):
    crashes = 0
    while dies(tmp_path, Crash(points.IN_THE_TIDYING), keep=1):
        crashes += 1
    assert crashes == STEPS + 1
    assert len(list((tmp_path / "checkpoint" / "manifests").iterdir())) == 1
    check(tmp_path, undisturbed)


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_points_by_chance(seed: int, tmp_path: Path, undisturbed: dict[str, Any]):
    dice = random.Random(seed)
    while dies(tmp_path, Crash(ANY_POINT, dice.randrange(1, 90))):
        pass
    check(tmp_path, undisturbed)


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment(seed: int, tmp_path: Path, undisturbed: dict[str, Any]):
    dice = random.Random(seed)
    for _ in range(3):
        dies(tmp_path, Crash(ANY_CALL, dice.randrange(CALLS // 2)))
    in_child(run_market, tmp_path).result()
    check(tmp_path, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + scaled(8)))
def test_killed_at_many_moments(seed: int, tmp_path: Path, undisturbed: dict[str, Any]):
    dice = random.Random(fresh(seed))
    for _ in range(6):
        dies(tmp_path, Crash(ANY_CALL, dice.randrange(CALLS // 2)))
    in_child(run_market, tmp_path).result()
    check(tmp_path, undisturbed)
