"""The battery must be able to fail: operators with one known mistake each, and it finds every one of them.

HEADWATER_CASES does not matter here: each mutant has to fall within the few cases of a normal run.
"""

from __future__ import annotations

import inspect
import pickle
import textwrap
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from headwater.model.delta import Delta
from headwater.model.history import canonical_order, freeze
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Buffered, Frontiers, Inputs, Operator, Step
from headwater.operators.joins.join import JoinOperator
from headwater.operators.ranking.top_k import TopKOperator
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.operators.sweeps.sweep import SweepOperator
from headwater.operators.waiting.align import AlignOperator
from headwater.state.store import Store
from headwater.testing.cases import campaign, operator_cases
from headwater.testing.checks import CheckError, check_cases
from headwater.testing.generate import Case

BATCHES = 6


def batches(name: str, count: int = BATCHES) -> Iterator[list[Case]]:
    return islice(operator_cases(name, 0), count)


def check_all(name: str, count: int) -> None:
    for batch in batches(name, count):
        check_cases(batch)


def assert_caught(patch: pytest.MonkeyPatch, name: str, reason: str, count: int = BATCHES) -> None:
    """The mutant falls, and the same cases pass when its mistake is undone."""
    with pytest.raises(CheckError, match=reason):
        check_all(name, count)
    patch.undo()
    check_all(name, count)


def mutate(patch: pytest.MonkeyPatch, owner: type, method: str, right: str, wrong: str) -> None:
    """Change one piece of a method's text."""
    source = textwrap.dedent(inspect.getsource(getattr(owner, method)))
    assert source.count(right) == 1, f"{owner.__name__}.{method} no longer contains {right!r} once"
    module = inspect.getmodule(owner)
    space: dict[str, Any] = dict(vars(module))
    exec("from __future__ import annotations\n" + source.replace(right, wrong), space)
    patch.setattr(owner, method, space[method])


# -- Alg. 7 as printed: the stored interval is replaced by the new fragment (erratum E1 of algebra.md) --------------


class LiteralDistinct(Operator):
    """Duplicate elimination by Alg. 7 of the thesis, in strong form, one element after another."""

    name = "literal distinct"
    holds_back = True

    def __init__(self, schema: Schema, *, as_printed: bool) -> None:
        self.schema, self._as_printed = schema, as_printed

    def new_state(self, store: Store) -> dict[str, Any]:
        return {"waiting": Counter(), "area": {}}

    def step(self, state: dict[str, Any], inputs: Inputs, frontiers: Frontiers, reached: int = BEGINNING) -> Step:
        frontier = frontiers[0]
        waiting: Counter = state["waiting"]
        for row, start, end, weight in inputs[0].rows():
            waiting[freeze(row), start, end] += weight
        out = []
        held = INFINITY
        for row, start, end in sorted(+waiting, key=lambda e: (e[1], canonical_order(e[0]), e[2])):
            if end >= frontier and frontier != INFINITY:
                held = start
                break
            out += [(row, *piece, 1) for piece in self._new(state["area"], row, start, end)]
            del waiting[row, start, end]
        state["waiting"] = +waiting
        state["area"] = {} if frontier == INFINITY else state["area"]
        return Step(Delta.from_rows(self.schema, out), min(frontier, held))

    def _new(self, area: dict, row: tuple, start: int, end: int) -> list[tuple[int, int]]:
        """What the element adds to what is known of its row."""
        known = area[row] = [x for x in area.get(row, []) if start < x[1]]
        since, until = next((x for x in known if x[0] < end), (start, start))
        if since == until:
            known.append((start, end))
            return [(start, end)]
        if until >= end:
            return []
        known.remove((since, until))
        known.append((until if self._as_printed else since, end))
        return [(until, end)]

    def buffered(self, state: dict[str, Any]) -> Buffered:
        return Buffered(len(state["waiting"]) + len(state["area"]), 0)

    def save(self, state: dict[str, Any]) -> dict[str, Any]:
        return {"pickled": pickle.dumps(state).hex()}

    def restore(self, manifest: dict[str, Any], store: Store) -> dict[str, Any]:
        return pickle.loads(bytes.fromhex(manifest["pickled"]))


@pytest.mark.parametrize("as_printed", [False, True])
def test_distinct_that_stores_the_last_fragment_is_caught(monkeypatch: pytest.MonkeyPatch, as_printed: bool):
    def operator(schema: Schema, kind: str, *, speculative: bool, **settings: Any) -> Operator:
        if kind == "distinct" and not speculative and settings.get("hold", True):
            return LiteralDistinct(schema, as_printed=as_printed)
        return CountSweepOperator(schema, kind, speculative=speculative, **settings)

    monkeypatch.setattr("headwater.runtime.builders.CountSweepOperator", operator)
    if as_printed:
        with pytest.raises(CheckError, match="smallest case found"):
            campaign(batches("distinct"), BATCHES)
    else:
        campaign(batches("distinct"), BATCHES)


# -- one token changed in our own operators -------------------------------------------------------------------------


def test_align_that_takes_an_end_at_the_frontier_for_final_is_caught(monkeypatch: pytest.MonkeyPatch):
    # An end at the frontier itself can still be lengthened: < and not <=.
    mutate(monkeypatch, AlignOperator, "step", "arrived.time < frontier", "arrived.time <= frontier")
    assert_caught(monkeypatch, "filter", "the strong form takes something back", 4 * BATCHES)


def test_join_that_forgets_one_instant_too_early_is_caught(monkeypatch: pytest.MonkeyPatch):
    # A row that ends at F + 1 still meets what the other side brings at F.
    early = ".expire(frontiers[1 - side] + (frontiers[1 - side] < 2**62))"
    mutate(monkeypatch, JoinOperator, "portions", ".expire(frontiers[1 - side])", early)
    assert_caught(monkeypatch, "join inner equi", "wrong answer")


def test_sweep_that_promises_what_it_holds_back_is_caught(monkeypatch: pytest.MonkeyPatch):
    # The open segment of a key will be emitted with its old start, so the frontier must wait for it.
    mutate(monkeypatch, SweepOperator, "_finish", "min(frontier, state.holds.least())", "frontier")
    assert_caught(monkeypatch, "distinct", "the output breaks the rules: BEHIND_STABLE")


def test_sweep_that_forgets_to_look_again_at_what_it_showed_is_caught(monkeypatch: pytest.MonkeyPatch):
    # Speculative: an answer that a late element changes has to be taken back.
    mutate(monkeypatch, SweepOperator, "_repair", ".negate()", ".filter(old.key < 0)")
    assert_caught(monkeypatch, "distinct", "wrong answer")


def test_top_k_that_promises_what_it_holds_back_is_caught(monkeypatch: pytest.MonkeyPatch):
    # A row in sight goes out, with its old start, when it leaves.
    mutate(monkeypatch, TopKOperator, "step", "min(frontier, state.holds.least())", "frontier")
    assert_caught(monkeypatch, "top-k", "the output breaks the rules: BEHIND_STABLE")


def test_top_k_that_forgets_an_endpoint_at_the_frontier_is_caught(monkeypatch: pytest.MonkeyPatch):
    # What happens at the frontier itself is shown, but not final: later changes are changes to it.
    mutate(monkeypatch, TopKOperator, "_speculate", "part.time >= frontier", "part.time > frontier")
    assert_caught(monkeypatch, "top-k numbers", "wrong answer|breaks the rules")


def test_top_k_that_leaves_ties_as_they_come_is_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "headwater.operators.ranking.sort_order.canonical_ranks", lambda columns: np.zeros(len(columns[0]), int)
    )
    assert_caught(monkeypatch, "top-k numbers", "wrong answer")
