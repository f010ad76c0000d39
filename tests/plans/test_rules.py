"""Every rule of the optimizer: the plans that it changes and those that it must leave alone.

One file per rule: cases begin with ``== name``, then the plan, ``-->``, and the plan after the rule or ``no change``.
Pairs are also run over random streams.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from headwater.algebra.nodes import Plan
from headwater.algebra.plan_text import print_plan
from headwater.backends.spark.native_parts import SparkRows
from headwater.optimizer.optimize import apply_rule, rules
from headwater.optimizer.rule import Rule
from headwater.testing.cases import fresh, scaled
from headwater.testing.equivalence import check_equivalent
from headwater.testing.plan_text import parse_plan

HERE = Path(__file__).parent
RULES = {rule.name: rule for rule in rules()}
STREAMS, SLOW_STREAMS = 10, 500
"""How many random streams go through the pairs of a rule, in the oracle."""
RUN_STREAMS = 100
"""How many of them, at most, go through the operators too."""


@frozen
class Pair:
    rule: str
    name: str
    before: str
    after: str

    @property
    def changes(self) -> bool:
        return self.after != "no change"


def read(path: Path) -> list[Pair]:
    _, *sections = path.read_text(encoding="utf-8").split("\n== ")
    pairs = []
    for section in sections:
        name, _, body = section.partition("\n")
        before, arrow, after = body.partition("\n-->\n")
        assert arrow, f"{path.name}: case {name} has no arrow"
        pairs.append(Pair(path.stem, name.strip(), before.strip("\n"), after.strip("\n")))
    return pairs


PAIRS = [pair for path in sorted(HERE.glob("*.test")) for pair in read(path)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p.rule}: {p.name}")
def test_the_rule_makes_the_plan(pair: Pair):
    before = parse_plan(pair.before)
    assert print_plan(before) == pair.before, "write the plan as it is printed"
    after = apply_rule(RULES[pair.rule], before, native=SparkRows())
    expected = pair.after if pair.changes else pair.before
    assert print_plan(after) == expected


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_has_cases_of_both_kinds(rule: Rule):
    kinds = {pair.changes for pair in PAIRS if pair.rule == rule.name}
    assert kinds == {True, False}


def changing(name: str) -> list[tuple[Plan, Plan]]:
    return [(parse_plan(p.before), parse_plan(p.after)) for p in PAIRS if p.rule == name and p.changes]


@pytest.mark.parametrize("name", RULES)
def test_the_plans_mean_the_same(name: str):
    _check(name, scaled(STREAMS), 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_the_plans_mean_the_same_over_many_streams(name: str):
    _check(name, scaled(SLOW_STREAMS), fresh(10_000))


def _check(name: str, streams: int, first: int) -> None:
    pairs = changing(name)
    for before, after in pairs:
        run, asked = (-(-n // len(pairs)) for n in (min(streams, RUN_STREAMS), max(streams - RUN_STREAMS, 0)))
        check_equivalent(before, after, run, first=first)
        check_equivalent(before, after, asked, first=first + run, run=False)
