"""From a query as it is bound to what runs: the one way, for the engine, for replays, for EXPLAIN and for tests."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Plan
from headwater.errors import HeadwaterError
from headwater.language.text import did_you_mean
from headwater.optimizer.cost import Statistics
from headwater.optimizer.optimize import PYTHON_ALONE, Optimized, make_physical, optimize, rules
from headwater.optimizer.phases import PHYSICAL
from headwater.optimizer.physical.memory_aware import memory_aware
from headwater.optimizer.physical.native_parts import mark, native_parts
from headwater.optimizer.physical.partial_aggregates import partial_aggregates
from headwater.optimizer.physical.prune_columns import prune_columns
from headwater.optimizer.rule import Native
from headwater.settings import Settings

_LEFT_OUT = (partial_aggregates, prune_columns)
"""Not where plans run as they are written; the others decide when an answer is final, or where it is computed."""


def plan_query(
    plan: Plan, settings: Settings, *, statistics: Statistics | None = None, native: Native = PYTHON_ALONE
) -> Optimized:
    """The plan that runs, under the settings of its script. ``native``: what is not left to Python."""
    without = switched_off(settings)
    made = Optimized(plan, (), {})
    if settings.optimizer == "on":
        made = optimize(plan, statistics=statistics, without=without)
    else:
        without += tuple(rule.name for rule in _LEFT_OUT)
    if settings.memory_aware == "off":
        without += (memory_aware.name,)
    made = make_physical(made, statistics=statistics, native=native, without=without)
    return made if native_parts.name in without else evolve(made, parts=mark(made.plan, native).parts)


def logical_only(made: Optimized) -> Optimized:
    """How the plan that was chosen came to be, without how it runs."""
    physical = {rule.name for rule in PHYSICAL}
    firings = tuple(firing for firing in made.firings if firing.rule not in physical)
    return evolve(made, plan=made.logical, firings=firings)


def switched_off(settings: Settings) -> tuple[str, ...]:
    """The rules that ``SET without_rules`` names."""
    names = tuple(name.strip() for name in settings.without_rules.split(",") if name.strip())
    known = [rule.name for rule in rules()]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or "EXPLAIN VERBOSE names the rules that were used."
            raise HeadwaterError("UNKNOWN_RULE", f'there is no rule "{name}" to switch off', hint=hint)
    return names
