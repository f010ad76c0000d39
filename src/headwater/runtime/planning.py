"""From a bound plan to the one that runs: what is known of its sources, then the optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.algebra.nodes import Plan, Source
from headwater.errors import HeadwaterError
from headwater.language.text import did_you_mean
from headwater.model.element import Adjust, Insert
from headwater.optimizer.cost import Statistics
from headwater.optimizer.optimize import Optimized, optimize, rules
from headwater.runtime.early_windows import with_early_windows
from headwater.runtime.memory_aware import held_back
from headwater.runtime.plan_keys import in_one_order
from headwater.runtime.pre_aggregation import with_partials
from headwater.settings import Settings


def are_chronons(elements: Iterable[Insert | Adjust]) -> bool:
    """Does a recorded stream have only elements of one instant?"""
    return all(isinstance(e, Insert) and e.end == e.start + 1 for e in elements)


def over_recorded(plan: Plan, chronons: Mapping[str, bool]) -> Plan:
    """The plan over streams as they were recorded, whatever their declarations let expect. Anything may be revised."""
    done: dict[Plan, Plan] = {}
    for node in plan.walk():
        if isinstance(node, Source):
            recorded = Source(node.name, node.columns, chronons=chronons[node.name], unordered=node.unordered)
            done[node] = recorded
        else:
            done[node] = node.with_new_inputs(done[child] for child in node.inputs)
    return done[plan]


def planned(plan: Plan, settings: Settings, *, statistics: Statistics | None = None) -> Optimized:
    """The plan that runs, under the settings of its script."""
    if settings.optimizer == "off":
        return Optimized(plan, (), {})
    return optimize(plan, statistics=statistics, without=switched_off(settings))


def runnable(plan: Plan, settings: Settings, statistics: Statistics | None = None) -> Plan:
    """The plan as it is deployed."""
    return deployed(planned(plan, settings, statistics=statistics).plan, settings, statistics)


def deployed(plan: Plan, settings: Settings, statistics: Statistics | None = None) -> Plan:
    """An optimized plan whose windows are final when they end, with rows put together where they come in."""
    early = with_early_windows(plan)
    if settings.memory_aware == "on":
        early = held_back(early, statistics)
    return in_one_order(early if settings.optimizer == "off" else with_partials(early))


def switched_off(settings: Settings) -> tuple[str, ...]:
    """The rules that ``SET without_rules`` names."""
    names = tuple(name.strip() for name in settings.without_rules.split(",") if name.strip())
    known = [rule.name for rule in rules()]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or "EXPLAIN VERBOSE names the rules that were used."
            raise HeadwaterError("UNKNOWN_RULE", f'there is no rule "{name}" to switch off', hint=hint)
    return names
