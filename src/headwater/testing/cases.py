"""Every logical operator in all its variants, as small random plans for the battery of ``checks``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice

from attrs import evolve

from headwater.algebra.nodes import (
    FRAME_AGGREGATES,
    Await,
    Coalesce,
    Distinct,
    Dstream,
    Filter,
    FromPositiveNegative,
    Granularity,
    Istream,
    JoinKind,
    Plan,
    RowWindow,
    Sample,
    SetKind,
    SetOperation,
    Source,
    Split,
    Stamp,
    TimeWindow,
    ToPositiveNegative,
    Union,
)
from headwater.expressions.aggregates import AGGREGATES
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.optimizer.physical.memory_aware import only_time
from headwater.testing import plans
from headwater.testing.checks import CheckError, check_case, check_cases
from headwater.testing.choices import Choices, Dice
from headwater.testing.generate import NUMBERS, Case, StreamShape, streams
from headwater.testing.shrink import describe, shrink

Make = Callable[[Choices], Plan]

STREAMS_A_PLAN = 10
"""How many streams go through each random plan: the oracle answers them in one query."""

_SEEDS = 6
"""A smaller case may fail under other cuts and trials only, so shrinking tries a few."""


def _left(c: Choices) -> Source:
    return plans.source(c, "s")


def _right(c: Choices) -> Source:
    return plans.source(c, "t", "r_")


def _chronons(c: Choices) -> Source:
    return Source("s", plans.schema(c), chronons=True, revisable=c.chance(75))


def _intervals(c: Choices) -> Source:
    return Source("s", plans.schema(c), revisable=c.chance(75))


def _with_ties(source: Source) -> Source:
    """With a column more, so that one of them does not tell all rows apart."""
    return evolve(source, columns=Schema((*source.columns.fields, Field("other", source.columns.types[0]))))


def _with_array(source: Source) -> Source:
    return evolve(source, columns=Schema((*source.columns.fields, Field("array", NUMBERS))))


def _join(kind: JoinKind, how: str) -> Make:
    return lambda c: plans.join(c, _left(c), _right(c), kind=kind, how=how)


def _set(kind: SetKind) -> Make:
    def make(c: Choices) -> Plan:
        types = plans.schema(c, columns=2)
        renamed = Schema.of(**{f"r_{f.name}": f.type for f in types})
        left = Source("s", types, chronons=c.chance(40), revisable=c.chance(75))
        return SetOperation(left, Source("t", renamed, chronons=c.chance(40), revisable=c.chance(75)), kind)

    return make


def _aggregate(functions: tuple[str, ...] | None, keys: int | None = None, *, windowed: bool = False) -> Make:
    def make(c: Choices) -> Plan:
        below: Plan = TimeWindow(_chronons(c), c.pick([3, 5, 2]), c.pick([1, 2])) if windowed else _left(c)
        return plans.aggregate(c, below, functions, keys=keys)

    return make


def _either_way(c: Choices, left: Plan, right: Plan) -> tuple[Plan, Plan]:
    return (left, right) if c.chance(50) else (right, left)


def _constant_set(c: Choices) -> Plan:
    constant = plans.constant(c)
    stream = Source("s", constant.schema, chronons=c.chance(40), revisable=c.chance(75))
    return SetOperation(*_either_way(c, stream, constant), c.pick(list(SetKind)))


def _await(c: Choices, rows: Plan, other: Source) -> Plan:
    return Await(rows, only_time(other), rows.schema.names[: c.integer(0, 1)])


_SUMS = tuple(a.name for a in AGGREGATES.values() if a.additive and a.exact)
_SPREADS = tuple(name for name in FRAME_AGGREGATES if not AGGREGATES[name].exact)
_PAIRS = tuple(a.name for a in AGGREGATES.values() if a.form == "pair")
OPERATORS: dict[str, Make] = {
    "filter": lambda c: _filter(c, _left(c)),
    "project": lambda c: plans.project(c, _left(c)),
    "union": lambda c: Union((left := _left(c), plans.conform(c, _right(c), left.schema))),
    "union of four": lambda c: Union(
        (left := _left(c), right := plans.conform(c, _right(c), left.schema), left, right)
    ),
    **{f"join {kind.value} {how}": _join(kind, how) for kind in JoinKind for how in ("equi", "theta", "both", "cross")},
    **{f"set {kind.value}": _set(kind) for kind in SetKind},
    "distinct": lambda c: Distinct(_left(c)),
    "aggregate sums": _aggregate(_SUMS),
    "aggregate sums of all": _aggregate(_SUMS, 0),
    "aggregate sums by two": _aggregate(_SUMS, 2),
    "aggregate extremes": _aggregate(tuple(a.name for a in AGGREGATES.values() if a.is_extreme)),
    "aggregate variance": _aggregate(tuple(a.name for a in AGGREGATES.values() if not a.exact)),
    "aggregate holistic": _aggregate(tuple(a.name for a in AGGREGATES.values() if not (a.additive or a.is_extreme))),
    "aggregate pairs": _aggregate(_PAIRS),
    "aggregate mixed": _aggregate(None),
    "aggregate windowed": _aggregate(plans.EXACT, windowed=True),
    "time window": lambda c: TimeWindow(_chronons(c), c.pick([2, 3, 5, 8, 1])),
    "time window slide": lambda c: TimeWindow(_chronons(c), c.pick([2, 3, 5, 8, 1]), c.pick([2, 3, 5])),
    "time window unbounded": lambda c: TimeWindow(_chronons(c), INFINITY, c.pick([1, 3])),
    "time window over intervals": lambda c: TimeWindow(_intervals(c), c.pick([2, 3, 5]), c.pick([1, 1, 2, 3])),
    "row window": lambda c: RowWindow(_chronons(c), c.pick([1, 2, 3, 5])),
    "row window slide": lambda c: RowWindow(_chronons(c), c.pick([1, 2, 3, 5]), c.pick([2, 3, 4])),
    "row window partition": lambda c: plans.row_window(c, _chronons(c)),
    "row window over intervals": lambda c: plans.row_window(c, _intervals(c)),
    "top-k": lambda c: plans.top_k(c, _with_ties(_left(c)), limit=c.pick([1, 2, 3, 5]), ranked=False),
    "top-k windowed": lambda c: plans.top_k(
        c, TimeWindow(_with_ties(_chronons(c)), c.pick([3, 5, 8])), limit=c.pick([1, 2, 3])
    ),
    "top-k numbers": lambda c: plans.top_k(c, _with_ties(_left(c)), limit=c.pick([1, 2, 3]), ranked=True),
    "top-k all numbers": lambda c: plans.top_k(c, _with_ties(_left(c)), limit=INFINITY, ranked=True),
    "top-k offset only": lambda c: plans.top_k(c, _with_ties(_left(c)), limit=INFINITY, ranked=False),
    "granularity": lambda c: Granularity(_left(c), c.pick([2, 3, 5]), c.pick([0, 0, 1, -1])),
    "await": lambda c: _await(c, _left(c), _right(c)),
    "await under distinct": lambda c: Distinct(_await(c, _left(c), _right(c))),
    "split": lambda c: Split(_left(c), c.pick([1, 2, 3])),
    "coalesce": lambda c: Coalesce(_left(c), c.pick([INFINITY, 1, 2, 5])),
    "istream": lambda c: Istream(_left(c)),
    "dstream": lambda c: Dstream(_left(c)),
    "to positive-negative": lambda c: ToPositiveNegative(_left(c)),
    "from positive-negative": lambda c: FromPositiveNegative(ToPositiveNegative(_left(c))),
    "hop window": lambda c: plans.hop_window(c, _chronons(c)),
    "hop window over intervals": lambda c: plans.hop_window(c, _intervals(c)),
    "hop window aggregate": lambda c: plans.aggregate_windows(c, plans.hop_window(c, _chronons(c))),
    "session window": lambda c: plans.session_window(c, _chronons(c)),
    "session window over intervals": lambda c: plans.session_window(c, _intervals(c)),
    "session window aggregate": lambda c: plans.aggregate_windows(c, plans.session_window(c, _chronons(c))),
    "frames": lambda c: plans.frames(c, _with_ties(_chronons(c))),
    "frames of sums": lambda c: plans.frames(c, _chronons(c), ("COUNT", "SUM", "AVG")),
    "frames of variance": lambda c: plans.frames(c, _chronons(c), _SPREADS),
    "frames over intervals": lambda c: plans.frames(c, _intervals(c)),
    "frames in a window": lambda c: plans.aggregate(c, TimeWindow(plans.frames(c, _chronons(c)), c.pick([2, 4]))),
    "sample": lambda c: Sample(_left(c), c.pick([2, 3, 5, 1]), c.pick([0, 1, -1])),
    "sample aggregate": lambda c: plans.refreshed(c, _chronons(c)),
    "stamp": lambda c: Stamp(_left(c), "instant"),
    "stamp istream": lambda c: Istream(TimeWindow(Stamp(_left(c), "instant"), c.pick([2, 3, 5]), c.pick([1, 2]))),
    "constant union": lambda c: Union((left := _left(c), plans.conform(c, plans.constant(c), left.schema))),
    "constant join": lambda c: plans.join(c, *_either_way(c, _left(c), plans.constant(c, "r_"))),
    "constant set": _constant_set,
    "constant window": lambda c: Union(
        (left := TimeWindow(_left(c), 3), plans.conform(c, TimeWindow(plans.constant(c), c.pick([2, 3])), left.schema))
    ),
    "windowed join": lambda c: plans.join(
        c,
        TimeWindow(_chronons(c), c.pick([2, 4, 6]), c.pick([1, 2])),
        TimeWindow(Source("t", plans.schema(c, "r_"), chronons=True), c.pick([2, 4, 6])),
    ),
    "unnest": lambda c: plans.unnest(c, _with_array(_left(c))),
    "unnest made": lambda c: plans.unnest(c, _left(c)),
}
"""By name, what makes a random plan of the operator."""


def _filter(c: Choices, below: Plan) -> Plan:
    return Filter(below, plans.predicate(c, below.schema))


# NaN and the infinities take part wherever SQL systems agree on what becomes of them.
_SPECIAL = (
    "join",
    "set",
    "distinct",
    "aggregate sums",
    "aggregate extremes",
    "row window",
    "session window",
    "hop window",
    "frames of sums",
    "frames over intervals",
    "top-k",
    "istream",
    "coalesce",
)


def operator_cases(name: str, first: int) -> Iterator[list[Case]]:
    """Batches of cases of one operator, each over one plan; batch k is the same in every campaign."""
    shape = StreamShape(special=name.startswith(_SPECIAL))
    kind = list(OPERATORS).index(name)
    while True:
        plan = OPERATORS[name](Dice(kind, first))
        yield [
            Case(plan, streams(Dice(kind, first, i), plan, shape), first * STREAMS_A_PLAN + i)
            for i in range(STREAMS_A_PLAN)
        ]
        first += 1


def plan_cases(first: int, *, streams_a_plan: int = 1) -> Iterator[list[Case]]:
    """Batches of cases of random plans, three to five operators deep."""
    while True:
        dice = Dice(first)
        plan = plans.plan(dice, depth=dice.integer(3, 5))
        yield [Case(plan, streams(Dice(first, i), plan), first * streams_a_plan + i) for i in range(streams_a_plan)]
        first += 1


def campaign(batches: Iterator[list[Case]], count: int, *, thorough: bool = False) -> None:
    """Check so many batches; the first that fails is shrunk and shown."""
    for batch in islice(batches, count):
        try:
            check_cases(batch, thorough=thorough)
        except Exception as failure:
            raise CheckError(_report(batch, failure, thorough=thorough)) from failure


def _report(batch: list[Case], failure: Exception, *, thorough: bool) -> str:
    culprit = next((case for case in batch if _failing(case, 1, thorough=thorough)), None)
    if culprit is None:
        return f"only the whole batch fails: {failure}"
    smallest = shrink(culprit, lambda case: _failing(case, _SEEDS, thorough=thorough) is not None)
    found = _failing(smallest, _SEEDS, thorough=thorough)
    assert found is not None
    return f"{found[1]}\n\nsmallest case found:\n{describe(found[0])}\n\nfirst found:\n{describe(culprit)}"


def _failing(case: Case, seeds: int, *, thorough: bool) -> tuple[Case, str] | None:
    """The case with the first of some seeds (cuts, orders, trials) that makes it fail, and how it fails."""
    for i in range(seeds):
        tried = evolve(case, seed=case.seed + i)
        try:
            check_case(tried.plan, tried.streams, tried.seed, thorough=thorough)
        except Exception as problem:
            return tried, f"{type(problem).__name__}: {problem}"
    return None


def fresh(seed: int) -> int:
    """The seed, moved by the environment variable HEADWATER_SEED, so that large campaigns try other cases each time."""
    return seed + int(os.environ.get("HEADWATER_SEED", "0"))


def scaled(count: int) -> int:
    """So many cases, times the number in the environment variable HEADWATER_CASES."""
    return max(1, round(count * float(os.environ.get("HEADWATER_CASES", "1"))))
