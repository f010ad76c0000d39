"""The battery that every plan must pass, whatever operators it is made of.

Each trial runs the plan over the same streams in other clothes: cut into other ticks, arriving in another order, on
more shards, on files, taken down and up again on other shards, with elements that are all removed again, far in the
future, with rows that wait before they are seen. Every trial must keep its promises tick by tick and end with the history
that the oracle gives.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen

from headwater.algebra.nodes import Plan
from headwater.errors import StreamError
from headwater.language.consistency import MIDDLE, STRONG, Consistency, Level
from headwater.model.delta import Delta
from headwater.model.element import Adjust, Element, Insert, Stable
from headwater.model.history import History, show
from headwater.model.time import BEGINNING, INFINITY, render
from headwater.model.validity import StreamValidator
from headwater.runtime.executor import LocalExecutor
from headwater.runtime.stepping import StepRunner, by_hand
from headwater.state.manifest import state_segments
from headwater.testing.choices import Choices, Dice
from headwater.testing.generate import Case, Streams, StreamShape, cut, reorder, shift, whole, with_ghosts
from headwater.testing.oracle import Inputs, expected_histories
from headwater.testing.shape import is_exact, is_prompt, period, sources
from headwater.testing.timeline import render_timeline

Tick = Mapping[str, Sequence[Element]]
"""What each source brings in one tick."""

_DIGITS = 9
_LONG = 10_000  # longer than any stream here
_FAR = 1_700_000_000_000_000  # microseconds: where timestamps of our days lie


class CheckError(AssertionError):
    """A trial went wrong."""


@frozen
class Trial:
    """One way to run a plan over its streams."""

    name: str
    ticks: Sequence[Tick]
    speculative: bool
    shards: int = 1
    on_files: bool = False
    later: int = 0
    """By how much everything is moved in time."""
    look_at: int | None = field(default=None)
    """A tick after which a speculative answer is compared with the answer over the input so far."""
    restarts: Mapping[int, int] = field(factory=dict)
    """Ticks after which all state is saved and read back elsewhere, and on how many shards it goes on."""
    block: Consistency | None = field(default=None)
    """A level between strong and middle."""
    in_portions: bool = False
    """Is every tick cut into portions of a few rows?"""
    opens: bool = False
    """Do final rows go out with an open end (EMIT ON START)?"""

    @property
    def consistency(self) -> Consistency:
        return self.block or (MIDDLE if self.speculative else STRONG)

    def __str__(self) -> str:
        form = str(self.consistency).lower() + (", on start" if self.opens else "")
        lines = [f"{form}, {self.name}, {self.shards} shard(s){', on files' if self.on_files else ''}; ticks:"]
        for i, tick in enumerate(self.ticks):
            restart = f"  then restarted on {self.restarts[i]} shard(s)" if i in self.restarts else ""
            shown = "; ".join(f"{n}: {render_timeline(part)}" for n, part in tick.items() if part)
            lines.append(f"  {i}  {shown}{restart}")
        return "\n".join(lines)


def check_case(plan: Plan, streams: Streams, seed: int, *, thorough: bool = True) -> None:
    """Raise ``CheckError`` unless the plan answers the streams rightly in every trial.

    Thorough: every kind of trial in both forms; otherwise one kind by chance in each form.
    """
    check_cases([Case(plan, streams, seed)], thorough=thorough)


def check_cases(cases: Sequence[Case], *, thorough: bool = False, kinds: Sequence[str] = ()) -> None:
    """The same for several streams through one plan: the oracle answers all of them at once.

    ``kinds``: those of ``KINDS`` to be tried, instead of others.
    """
    plan = cases[0].plan
    trials = [list(_trials(case, kinds or (KINDS if thorough else ()))) for case in cases]
    questions: list[Inputs] = []
    for case, its in zip(cases, trials, strict=True):
        questions.append(_whole(plan, case.streams))
        questions += [_whole(plan, _before(trial)) for trial in its if trial.look_at is not None]
    answers = iter(expected_histories(plan, questions))
    for its in trials:
        expected = next(answers)
        for trial in its:
            so_far = next(answers) if trial.look_at is not None else None
            try:
                _Run(plan, trial, so_far).check(expected)
            except CheckError as failure:
                raise CheckError(f"{failure}\n{trial}") from None


def _whole(plan: Plan, streams: Streams) -> dict[str, Delta]:
    return {s.name: whole(s.schema, streams[s.name]) for s in sources(plan)}


def _before(trial: Trial) -> Streams:
    """The input of the ticks up to the one that is looked at."""
    assert trial.look_at is not None
    arrived = trial.ticks[: trial.look_at + 1]
    return {name: [e for tick in arrived for e in tick[name]] for name in trial.ticks[0]}


# -- the trials -----------------------------------------------------------------------------------------------------


KINDS = ("as given", "reordered", "ghosts", "2 shards", "5 shards", "portions", "later", "files", "restarted", "block")


def _trials(case: Case, kinds: Sequence[str]) -> Iterator[Trial]:
    dice, forms = Dice(case.seed), Dice(case.seed + 1)
    lasting = {n for n, s in case.streams.items() if any(INFINITY in _ends(e) for e in s)}
    prompt = is_prompt(case.plan, lasting)
    for speculative in (False, True):
        chosen = [kind for kind in kinds or [_chosen(dice, speculative=speculative)] if speculative or kind != "block"]
        for name in chosen:
            trial = _trial(case, dice, name, speculative=speculative, look=speculative and prompt)
            yield evolve(trial, opens=not speculative and forms.chance(50))


def _chosen(dice: Choices, *, speculative: bool) -> str:
    if dice.chance(4):
        return dice.pick(KINDS[-3:-1])  # files are slow
    return dice.pick(("as given", *KINDS[:-3], *(KINDS[-1:] if speculative else ())))  # a strong answer waits anyway


def _ends(element: Element) -> tuple[int, ...]:
    if isinstance(element, Insert):
        return (element.end,)
    return (element.new_end,) if isinstance(element, Adjust) else ()


def _trial(case: Case, dice: Choices, name: str, *, speculative: bool, look: bool) -> Trial:
    streams: Streams = case.streams
    later = 0
    if name == "reordered":
        streams = {n: reorder(dice, s) for n, s in streams.items()}
    elif name == "ghosts":
        revisable = {s.name: s for s in sources(case.plan) if s.revisable}
        streams = {
            n: with_ghosts(dice, revisable[n], s, StreamShape()) if n in revisable else s for n, s in streams.items()
        }
    elif name == "later":
        later = _FAR - _FAR % period(case.plan)
        streams = {n: shift(s, later) for n, s in streams.items()}
    shards = dice.pick([1, 3]) if name == "block" else {"2 shards": 2, "5 shards": 5, "portions": 3}.get(name, 1)
    ticks = _ticks(dice, streams)
    restarts: dict[int, int] = {}
    if name == "restarted":
        shards = dice.integer(1, 5)
        restarts = {i: dice.integer(1, 5) for i in range(len(ticks)) if dice.chance(60)}
    # What an operator has seen of time is known a shard, so one shard only; and the oracle's instants begin at 0.
    look_at = dice.integer(0, len(ticks) - 1) if look and shards == 1 and not later else None
    on_files = name in ("files", "restarted")
    block = None
    if speculative and (name == "block" or (name == "restarted" and dice.chance(50))):
        # So much is remembered that nothing is forgotten: then the history is that of any other level.
        block, look_at = Consistency(Level.BLOCK, dice.integer(1, 8), dice.pick([INFINITY, _LONG])), None
    in_portions = name == "portions" or (name == "block" and dice.chance(50))
    return Trial(name, ticks, speculative, shards, on_files, later, look_at, restarts, block, in_portions)


def _ticks(dice: Choices, streams: Streams) -> list[Tick]:
    count = dice.pick([3, 2, 1, 5])
    parts = {name: cut(dice, stream, count) for name, stream in streams.items()}
    return [{name: part[i] for name, part in parts.items()} for i in range(count)]


# -- one run --------------------------------------------------------------------------------------------------------


class _Run:
    """One trial: tick by tick, every promise is checked."""

    def __init__(self, plan: Plan, trial: Trial, so_far: History | None) -> None:
        self.plan, self.trial, self.so_far = plan, trial, so_far
        self.validator = StreamValidator(plan.schema)
        self.frontiers = {s.name: BEGINNING for s in sources(plan)}
        self.schemas = {s.name: s.schema for s in sources(plan)}
        self.output: list[Delta] = []

    def check(self, expected: History) -> None:
        if self.trial.on_files:
            with tempfile.TemporaryDirectory() as folder:
                self._check(expected, self._runner(Path(folder)))
        else:
            self._check(expected, self._runner(None))

    def _runner(self, folder: Path | None) -> StepRunner:
        trial = self.trial
        how = {"shards": trial.shards, "folder": folder, "portion": 4 if trial.in_portions else None}
        return by_hand({"q": self.plan}, consistency=trial.consistency, opens=trial.opens, **how)

    def _check(self, expected: History, runner: StepRunner) -> None:
        for i, tick in enumerate(self.trial.ticks):
            self._tick(runner, tick, f"tick {i}")
            if i == self.trial.look_at and self.so_far is not None:
                self._compare_so_far(self.so_far)
            if i in self.trial.restarts:
                runner.restart(self.trial.restarts[i])
        end = dict.fromkeys(self.frontiers, (Stable(INFINITY),))
        self._tick(runner, end, "the end")
        if self.validator.frontier != INFINITY:
            raise CheckError(f"the inputs are final, but the output's frontier is {render(self.validator.frontier)}")
        kept = runner.buffered().rows
        if kept:
            raise CheckError(f"{kept} rows are still kept after the end")
        if left := _saved_segments(runner):
            raise CheckError(f"segments are still kept after the end: {', '.join(left)}")
        answer = self._history("the end")
        self._compare(answer.shift(-self.trial.later) if self.trial.later else answer, expected, "at the end")

    def _tick(self, runner: StepRunner, tick: Tick, name: str) -> None:
        deltas = {n: whole(self.schemas[n], part) for n, part in tick.items()}
        for n, part in tick.items():
            self.frontiers[n] = max([self.frontiers[n], *(e.at for e in part if isinstance(e, Stable))])
        step = runner.tick(deltas, dict(self.frontiers))["q"]
        if step.delta.schema.types != self.plan.schema.types or [c.type for c in step.delta.columns] != list(
            self.plan.schema.types
        ):
            raise CheckError(f"{name}: the output has columns {step.delta.schema}, not {self.plan.schema}")
        if self.trial.opens:
            # What one side of a union says is final once that side is, however far the other one has come.
            self._check_ends(step.delta.consolidate(), max((step.frontier, *self.frontiers.values())), name)
        elif not self.trial.speculative and (step.delta.consolidate().weight < 0).any():
            raise CheckError(f"{name}: the strong form takes something back: {step.delta.consolidate()}")
        known = step.frontier if self.trial.speculative or self.trial.opens else runner.known["q"]
        if known < min(self.frontiers.values(), default=INFINITY):
            raise CheckError(f"{name}: the answer is known before {render(known)}, which lags behind the inputs")
        try:
            # Legal at its own frontier: with the right history at the end, what it once promised never changed.
            self.validator.check_delta(step.delta, step.frontier)
        except StreamError as error:
            raise CheckError(f"{name}: the output breaks the rules: {error}\n{step.delta.consolidate()}") from None
        self.output.append(step.delta)

    @staticmethod
    def _check_ends(delta: Delta, frontier: int, name: str) -> None:
        """Nothing that was shown changes but ends that were open, each once, to one that is final."""
        for row in delta.to_elements():
            if isinstance(row, Adjust) and not (row.end == INFINITY and row.start < row.new_end < frontier):
                raise CheckError(f"{name}: a row that was shown gets another end: {row}")

    def _history(self, when: str) -> History:
        try:
            deltas = self.output if is_exact(self.plan) else [rounded(d) for d in self.output]
            return History.of(self.plan.schema, deltas)
        except StreamError as error:
            raise CheckError(f"{when}: {error}") from None

    def _compare_so_far(self, expected: History) -> None:
        """Up to the largest start seen, a speculative answer is right for the input so far."""
        arrived = _whole(self.plan, _before(self.trial))
        starts = [int(d.consolidate().start.max(initial=-1)) for d in arrived.values()]
        upto = max(starts, default=-1) + 1
        self._compare(self._history("so far").until(upto), expected.until(upto), f"before {upto}, for the input so far")

    def _compare(self, answer: History, expected: History, when: str) -> None:
        if not is_exact(self.plan):
            expected = History.of(expected.schema, [rounded(expected.delta())])
        if answer != expected:
            differences = [
                f"  {'too much' if n > 0 else 'missing '}  {show(row, start, end, abs(n))}"
                for row, start, end, n in answer.difference(expected)
            ]
            raise CheckError("\n".join([f"wrong answer {when}:", *differences]))


def rounded(delta: Delta) -> Delta:
    """With doubles cut to so many digits that the order of the arithmetic no longer shows."""
    columns = [_round(c) if pa.types.is_floating(c.type) else c for c in delta.columns]
    return delta.with_columns(delta.schema, columns)


def _round(column: pa.Array) -> pa.Array:
    # Not Arrow's round: it leaves a number alone that it takes for a rounded one.
    values = np.round(pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False), _DIGITS)
    return pa.array(values, column.type, mask=column.is_null().to_numpy(zero_copy_only=False))


def _saved_segments(runner: StepRunner) -> list[str]:
    """The names of the segments that the states of all operators refer to."""
    executor = runner._executor
    assert isinstance(executor, LocalExecutor)
    operators = {node.key: node.operator for node in runner.layout.graph.nodes}
    states = [(operators[key], state) for (_, key, _), (_, state) in executor._cache._states.items()]
    return list(state_segments([operator.save(state) for operator, state in states if operator is not None]))
