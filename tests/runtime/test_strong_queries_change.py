"""A query that was STRONG from its beginning goes on with another level: nothing is lost, nothing comes twice, what was
final stays, and from the next tick on it shows what a query shows that had the new level all along.

HEADWATER_CASES multiplies the number of cases.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.algebra import nodes as n
from headwater.language.consistency import MIDDLE, STRONG, WEAK, Consistency, Level
from headwater.model.delta import Delta
from headwater.model.element import Stable
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.waiting.align import AlignOperator
from headwater.runtime.graph import Graph
from headwater.runtime.lower import Lowering
from headwater.runtime.stepping import Stepped, StepRunner
from headwater.testing import plans
from headwater.testing.cases import OPERATORS, fresh, scaled
from headwater.testing.checks import rounded
from headwater.testing.choices import Dice
from headwater.testing.generate import cut, streams, whole
from headwater.testing.oracle import expected_histories
from headwater.testing.shape import sources

_TICKS = 5
_LONG = 10_000
"""So much is remembered that nothing is forgotten: then the history is that of any other level."""
_LEVELS = [
    MIDDLE,
    Consistency(Level.BLOCK, 1, INFINITY),
    Consistency(Level.BLOCK, 3, INFINITY),
    Consistency(Level.BLOCK, 2, _LONG),
    Consistency(Level.BLOCK, 0, _LONG),
]


def shown_streams(plan: n.Plan) -> set[str]:
    """Those that a query reads which waits for nobody."""
    if isinstance(plan, n.Source):
        return {plan.name}
    inputs = plan.inputs[:1] if isinstance(plan, n.Await) else plan.inputs
    return {name for child in inputs for name in shown_streams(child)}


class _Trial:
    """Three queries of one plan: one that changes, one that stays strong and shares its state with it, and one that was
    MIDDLE all along."""

    def __init__(self, plan: n.Plan, dice: Dice, folder: Path | None = None) -> None:
        self.plan, self.dice, self.on_files = plan, dice, folder is not None
        levels = {"query": STRONG, "other": STRONG, "middle": MIDDLE}
        self.opens = Dice(dice.integer(0, 1000)).chance(50)
        stepped = [
            Stepped(name, plan, consistency=level, opens=self.opens and level == STRONG)
            for name, level in levels.items()
        ]
        portion = 4 if dice.chance(50) else None
        self.runner = StepRunner(stepped, shards=dice.pick([1, 2, 5]), folder=folder, portion=portion)
        self.given = {name: cut(dice, part, _TICKS) for name, part in streams(dice, plan).items()}
        self.first_change = dice.integer(0, _TICKS - 1)
        self.level = STRONG
        self.frontiers = {s.name: BEGINNING for s in sources(plan)}
        self.validators = {name: StreamValidator(plan.schema) for name in levels}
        self.deltas: dict[str, list[Delta]] = {name: [] for name in levels}
        self.final: Counter[tuple[str, int, int]] = Counter()
        self.newest = BEGINNING

    def check(self) -> None:
        for i in range(_TICKS + 1):
            parts = {s.name: self.given[s.name][i] if i < _TICKS else [Stable(INFINITY)] for s in sources(self.plan)}
            self._maybe_change(i)
            self._tick(parts)
            self._check_final(i)
            if self.level == MIDDLE:
                self._check_at_once()
        assert self.runner.buffered().rows == 0
        everything = {s.name: whole(s.schema, [e for p in self.given[s.name] for e in p]) for s in sources(self.plan)}
        (expected,) = expected_histories(self.plan, [everything])
        for name in self.deltas:
            assert self._history(name) == History.of(expected.schema, [rounded(expected.delta())]), name

    def _maybe_change(self, tick: int) -> None:
        if self.on_files and self.dice.chance(30):
            self.runner.restart(self.dice.pick([1, 2, 5]))
        if tick == self.first_change:
            self.level = MIDDLE if self.dice.chance(50) else self.dice.pick(_LEVELS)
        elif tick > self.first_change and self.dice.chance(30):
            self.level = self.dice.pick([STRONG, *_LEVELS])
        self.runner.change_level("query", self.level)
        if self.on_files and self.dice.chance(50):
            self.runner.restart(self.dice.pick([1, 2, 5]))

    def _tick(self, parts: dict[str, list]) -> None:
        arrived = {s.name: whole(s.schema, parts[s.name]) for s in sources(self.plan)}
        for name, part in parts.items():
            self.frontiers[name] = max([self.frontiers[name], *(e.at for e in part if isinstance(e, Stable))])
            if name in shown_streams(self.plan):
                self.newest = max(self.newest, int(arrived[name].start.max(initial=BEGINNING)))
        for name, (delta, frontier) in self.runner.tick(arrived, dict(self.frontiers)).items():
            self.validators[name].check_delta(delta, frontier)
            self.deltas[name].append(delta)

    def _check_final(self, tick: int) -> None:
        """What came while it was strong for the first time is never taken back."""
        for row, start, end, weight in self.deltas["query"][-1].consolidate().rows():
            if self.opens and end == INFINITY:
                continue  # it gets its end
            if tick < self.first_change:
                assert weight > 0
                self.final[str(row), start, end] += weight
            else:
                assert weight > 0 or not self.final[str(row), start, end], (row, start, end)

    def _check_at_once(self) -> None:
        """All that has come shows, up to the newest instant: of what begins later some queries know more, some less."""
        known = self.newest + 1
        assert self._history("query").until(known) == self._history("middle").until(known)

    def _history(self, name: str) -> History:
        return History.of(self.plan.schema, [rounded(delta) for delta in self.deltas[name]])


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_takes_over_the_state_of_its_strong_form(name: str):
    for seed in range(scaled(3)):
        dice = Dice(seed, 177)
        _Trial(OPERATORS[name](dice), dice).check()


@pytest.mark.parametrize("name", OPERATORS)
def test_also_after_a_restart_before_the_next_tick_with_other_shards(name: str):
    for seed in range(scaled(1)):
        dice = Dice(seed, 178)
        with tempfile.TemporaryDirectory() as folder:
            _Trial(OPERATORS[name](dice), dice, Path(folder)).check()


@pytest.mark.parametrize("seed", range(10))
def test_also_in_random_plans(seed: int):
    dice = Dice(seed, 179)
    _Trial(plans.plan(dice, depth=dice.integer(3, 5)), dice).check()


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_at_length(name: str):
    for seed in range(scaled(40)):
        dice = Dice(fresh(seed), 180)
        with tempfile.TemporaryDirectory() as folder:
            _Trial(OPERATORS[name](dice), dice, Path(folder) if dice.chance(25) else None).check()


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(10))
def test_random_plans_at_length(piece: int):
    for seed in range(scaled(40)):
        dice = Dice(piece, fresh(seed), 181)
        with tempfile.TemporaryDirectory() as folder:
            plan = plans.plan(dice, depth=dice.integer(3, 5))
            _Trial(plan, dice, Path(folder) if dice.chance(25) else None).check()


# -- one by one ------------------------------------------------------------------------------------------------------

S = Schema.of(k="INT", v="INT")
SOURCE = n.Source("s", S)


def _delta(*rows: tuple[int, int, int, int]) -> Delta:
    return Delta.from_rows(S, [((k, v), start, end, 1) for k, v, start, end in rows])


def _shown(runner: StepRunner, delta: Delta, frontier: int) -> list[tuple]:
    return sorted(runner.tick({"s": delta}, {"s": frontier})["query"].delta.rows(), key=str)


def test_what_was_held_back_comes_once_with_the_next_tick():
    runner = StepRunner([Stepped("query", n.Distinct(SOURCE))])
    assert _shown(runner, _delta((1, 1, 0, 20), (2, 2, 12, 30)), 10) == []
    runner.change_level("query", MIDDLE)
    assert _shown(runner, _delta(), 10) == [((1, 1), 0, INFINITY, 1), ((2, 2), 12, INFINITY, 1)]
    assert _shown(runner, _delta(), 10) == []
    ends = [((1, 1), 0, 20, 1), ((1, 1), 0, INFINITY, -1), ((2, 2), 12, 30, 1), ((2, 2), 12, INFINITY, -1)]
    assert _shown(runner, _delta(), INFINITY) == ends


ORDER = (n.SortKey("v"),)
AT_MOST = n.AggregateCall("MAX", "most", pa.int32(), "v")
AT_LEAST = n.AggregateCall("MIN", "least", pa.int32(), "v")
FINAL = n.Source("s", S, revisable=False)
CHRONONS = n.Source("s", S, chronons=True)


@pytest.mark.parametrize(
    ("plan", "rows", "shown"),
    [
        (n.RowWindow(CHRONONS, 1), [(1, 1, 1, 2), (2, 2, 5, 6)], [((2, 2), 5, INFINITY, 1)]),
        (
            n.RowWindow(CHRONONS, 1),
            [(1, 1, 1, 2), (2, 2, 12, 13)],
            [((1, 1), 1, 12, 1), ((2, 2), 12, INFINITY, 1)],
        ),
        (n.TopK(SOURCE, ORDER, 1), [(1, 1, 0, 20), (2, 2, 0, 30)], [((1, 1), 0, INFINITY, 1)]),
        (n.Aggregate(FINAL, (), (AT_MOST,)), [(1, 9, 0, 20), (2, 4, 0, 30)], [((9,), 0, INFINITY, 1)]),
        (n.Join(SOURCE, SOURCE, n.JoinKind.ANTI, (("k", "v"),)), [(1, 2, 0, 20)], [((1, 2), 0, INFINITY, 1)]),
        (SOURCE, [(1, 2, 0, 20), (2, 2, 12, 30)], [((1, 2), 0, 20, 1), ((2, 2), 12, 30, 1)]),
    ],
    ids=["row window", "row window waiting", "top-k", "max", "anti join", "rows"],
)
def test_what_each_operator_has_held_back(plan: n.Plan, rows: list, shown: list):
    runner = StepRunner([Stepped("query", plan)])
    _shown(runner, _delta(*rows), 10)
    runner.change_level("query", MIDDLE)
    assert _shown(runner, _delta(), 10) == shown
    assert _shown(runner, _delta(), 10) == []


def test_the_steps_of_a_staircase_stand_for_all_rows():
    """What a larger value has pushed out never shows again; what will be the extreme later does, at its time."""
    plan = n.Aggregate(FINAL, (), (AT_MOST, AT_LEAST))
    runner = StepRunner([Stepped("query", plan)])
    deltas = []

    def tick(delta: Delta, frontier: int) -> None:
        deltas.append(runner.tick({"s": delta}, {"s": frontier})["query"].delta)

    tick(_delta((1, 9, 0, 20), (2, 4, 1, 15), (3, 5, 2, 30), (4, 7, 12, 40), (5, 3, 13, INFINITY)), 10)
    runner.change_level("query", MIDDLE)
    tick(_delta((6, 8, 14, 18)), 10)
    assert History.of(plan.schema, deltas).until(20).rows() == [
        ((9, 9), 0, 1, 1),
        ((9, 4), 1, 13, 1),
        ((9, 3), 13, 20, 1),
    ]
    tick(_delta(), INFINITY)
    later = [row for row in History.of(plan.schema, deltas).rows() if row[1] >= 20]
    assert later == [((7, 3), 20, 40, 1), ((3, 3), 40, INFINITY, 1)]


def test_a_group_whose_rows_have_all_ended_is_forgotten():
    runner = StepRunner([Stepped("query", n.Aggregate(FINAL, ("k",), (AT_MOST,)))])
    _shown(runner, _delta((1, 9, 0, 20), (1, 4, 1, 15), (1, 5, 12, 30)), 10)
    runner.change_level("query", MIDDLE)
    _shown(runner, _delta(), 29)
    assert runner.buffered().rows
    _shown(runner, _delta(), 31)
    assert runner.buffered().rows == 0


@pytest.mark.parametrize("seed", range(12))
def test_extremes_of_rows_that_are_never_revised(seed: int):
    dice = Dice(seed, 183)
    source = n.Source("s", plans.schema(dice), chronons=True, revisable=False)
    below = n.TimeWindow(source, dice.pick([3, 8, 20, INFINITY]))
    _Trial(plans.aggregate(dice, below, dice.pick([("MIN", "MAX"), ("MIN", "MAX", "MEDIAN", "SUM")])), dice).check()


def test_two_changes_between_two_ticks_are_one():
    runner = StepRunner([Stepped("query", n.Distinct(SOURCE))])
    _shown(runner, _delta((1, 1, 0, 20)), 10)
    runner.change_level("query", MIDDLE)
    runner.change_level("query", WEAK)
    runner.change_level("query", STRONG)
    assert _shown(runner, _delta(), 11) == []
    assert _shown(runner, _delta(), 21) == [((1, 1), 0, 20, 1)]


def test_a_part_that_held_back_and_one_that_did_not_go_on_apart():
    """One plan twice: above a union it holds back what is open, below a DISTINCT it does not."""
    inner = n.Distinct(SOURCE)
    dice = Dice(3, 182)
    for _ in range(4):
        _Trial(n.Union((inner, n.Distinct(n.Union((inner, inner))))), dice).check()


def test_weak_forgets_only_what_comes_too_late_after_the_change():
    runner = StepRunner([Stepped("query", n.Distinct(SOURCE))])
    _shown(runner, _delta((1, 1, 5, 20), (2, 2, 50, 60)), 2)
    runner.change_level("query", WEAK)
    _shown(runner, _delta((3, 3, 30, 40)), 2)
    assert runner.counts("forgotten") == 0
    _shown(runner, _delta((4, 4, 10, 40)), 2)
    assert runner.counts("forgotten") == 1
    history = _shown(runner, _delta(), INFINITY)
    assert not any(row == (4, 4) for row, *_ in history)


def test_an_open_align_stands_only_where_rows_may_wait():
    def aligns(plan: n.Plan) -> int:
        graph = Graph()
        Lowering(graph).add_query("query", plan, consistency=MIDDLE, lineage="STRONG until 3; ")
        return sum(isinstance(node.operator, AlignOperator) for node in graph.nodes)

    revisable = n.Filter(SOURCE, plans.predicate(Dice(0), S))
    final = n.Filter(n.Source("s", S, revisable=False), plans.predicate(Dice(0), S))
    assert [aligns(plan) for plan in (revisable, final, n.Distinct(SOURCE))] == [1, 0, 0]
