"""The levels of consistency, measured: who waits longer says less, and nothing is lost above WEAK."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks.consistency.command import as_markdown, as_tables, levels, measure_all
from benchmarks.consistency.world import LATEST
from headwater.language.consistency import MIDDLE, STRONG


@pytest.fixture(scope="module")
def found():
    return measure_all(6000)


def test_from_strong_to_middle_answers_come_sooner_and_cost_more(found):
    truth = found[0].history
    upto = next(i for i, one in enumerate(found) if one.level == MIDDLE)
    closed, known = found[:2]
    assert closed.level == known.level == STRONG
    assert closed.mean_wait > known.mean_wait
    assert known.late_wait < LATEST + 2, "what is known shows within the disorder, and the length of a tick"
    assert known.history == truth
    for waits, speaks in pairwise([found[1], *found[2 : upto + 1]]):
        assert waits.mean_wait > speaks.mean_wait
        assert waits.late_wait >= speaks.late_wait
        assert waits.chattiness(truth) < speaks.chattiness(truth)
        assert speaks.history == truth
        assert speaks.forgotten == 0


def test_from_middle_on_less_is_kept_and_more_forgotten(found):
    truth = found[0].history
    first = next(i for i, one in enumerate(found) if one.level == MIDDLE)
    for keeps, forgets in pairwise(found[first:]):
        assert keeps.kept > forgets.kept
        assert keeps.forgotten < forgets.forgotten
        assert keeps.right(truth) > forgets.right(truth)


def test_every_level_has_its_line(found):
    shown = as_markdown(found, 6000, "headwater bench consistency")
    assert all(f"| {one} |" in shown for one in found)
    assert len(found) == len(levels())
    assert as_tables(found, 6000)
