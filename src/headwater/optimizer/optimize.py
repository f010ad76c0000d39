"""The optimizer: first the laws that always help, to the end; then choices, as long as the plan becomes cheaper; at last,
how the plan runs.

Plans are immutable and equal plans are one, so a shared part is rewritten once and stays shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter

from attrs import Factory, evolve, field, frozen

from headwater.algebra.nodes import Plan
from headwater.expressions.nodes import Expression
from headwater.model.schema import Schema
from headwater.optimizer.cost import Estimator, Statistics
from headwater.optimizer.estimation.estimates import Estimate
from headwater.optimizer.phases import CHOICES, LAWS, PHYSICAL
from headwater.optimizer.rule import Native, Rule
from headwater.optimizer.verify import Verifier

_MOST_FIRINGS = 2000
"""A plan is finished long before; whatever is left after them is not worth the wait."""
_LEAST_GAIN = 1e-9
"""Plans of the same cost must stay so however their terms are rounded: which one is taken names the states of a query."""
_ROUNDS = 3


@frozen
class Firing:
    """One use of a rule."""

    rule: str
    before: Plan = field(eq=False)
    after: Plan = field(eq=False)


@frozen
class Optimized:
    """The plan to run, and how it came to be."""

    plan: Plan
    firings: tuple[Firing, ...]
    seconds: dict[str, float]
    """Time spent in each rule that was tried."""
    logical: Plan = Factory(lambda self: self.plan, takes_self=True)
    """The plan that was chosen, before it was decided how it runs."""
    parts: tuple[Plan, ...] = ()
    """Parts of the plan that another engine may compute by itself."""


class _Nothing:
    """There is no other engine than Python."""

    def has(self, stream: str) -> bool:
        return False

    def carries(self, schema: Schema) -> bool:
        return False

    def computes(self, scalar: Expression) -> bool:
        return False


PYTHON_ALONE: Native = _Nothing()


def rules() -> list[Rule]:
    """All rules, in the order in which they are tried."""
    return [*LAWS, *CHOICES, *PHYSICAL]


def optimize(plan: Plan, *, statistics: Statistics | None = None, without: Iterable[str] = ()) -> Optimized:
    """The same answers at less cost.

    Parameters
    ----------
    statistics
        What is known of the sources; without it assumptions.
    without
        Names of rules that are switched off.
    """
    work = _Work(statistics or Statistics(), frozenset(without))
    best = work.run(plan)
    return Optimized(best, tuple(work.firings), work.seconds)


def make_physical(
    made: Optimized,
    *,
    statistics: Statistics | None = None,
    native: Native = PYTHON_ALONE,
    without: Iterable[str] = (),
) -> Optimized:
    """How the plan that was chosen runs; see ``optimize``. ``native``: what is not left to Python."""
    work = _Work(statistics or Statistics(), frozenset(without), native)
    plan = work.physical(made.plan)
    return evolve(made, plan=plan, firings=(*made.firings, *work.firings), seconds=made.seconds | work.seconds)


def apply_rule(rule: Rule, plan: Plan, *, statistics: Statistics | None = None, native: Native = PYTHON_ALONE) -> Plan:
    """The plan after one rule alone: a law wherever it applies until it does no more, a choice once at every node."""
    work = _Work(statistics or Statistics(), frozenset(), native)
    if rule.whole:
        return work.tried_whole(plan, rule)
    return work.tried_once(plan, rule, {}) if rule.choice else work.rewritten(plan, [rule])


class _Work:
    def __init__(self, statistics: Statistics, without: frozenset[str], native: Native = PYTHON_ALONE) -> None:
        self.without, self.native = without, native
        self._estimator = Estimator(statistics)
        self._verifier = Verifier()
        self.firings: list[Firing] = []
        self.seconds: dict[str, float] = {}
        self._done: dict[Plan, Plan] = {}
        self._refused: set[tuple[str, Plan]] = set()

    def cost(self, plan: Plan) -> float:
        return self._estimator.cost(plan)

    def estimate(self, plan: Plan) -> Estimate:
        return self._estimator.estimate(plan).root

    def run(self, plan: Plan) -> Plan:
        for _ in range(_ROUNDS):
            before = plan
            plan = self._chosen(self.rewritten(plan, LAWS))
            if plan == before:
                break
        return plan

    # -- laws that always help --------------------------------------------------------------------------------------

    def rewritten(self, plan: Plan, laws: Sequence[Rule]) -> Plan:
        by_node: dict[type[Plan], list[Rule]] = {}
        for rule in laws:
            if rule.name not in self.without:
                for kind in rule.on:
                    by_node.setdefault(kind, []).append(rule)
        return self._finished(plan, by_node)

    def _finished(self, plan: Plan, by_node: dict[type[Plan], list[Rule]]) -> Plan:
        """The node with all that is below it, until no rule applies."""
        done = self._done
        if plan in done:
            return done[plan]
        current = plan.with_new_inputs(self._finished(child, by_node) for child in plan.inputs)
        for rule in by_node.get(type(current), ()):
            changed = self._try(rule, current)
            if changed is not None:
                current = self._finished(changed, by_node)
                break
        done[plan] = done[current] = current
        return current

    def _try(self, rule: Rule, plan: Plan) -> Plan | None:
        if len(self.firings) >= _MOST_FIRINGS:
            return None
        began = perf_counter()
        changed = rule(plan, self)
        if changed is not None:
            self._verifier.verify(rule.name, plan, changed)
            self.firings.append(Firing(rule.name, plan, changed))
        self.seconds[rule.name] = self.seconds.get(rule.name, 0.0) + perf_counter() - began
        return changed

    # -- how it runs -------------------------------------------------------------------------------------------------

    def physical(self, plan: Plan) -> Plan:
        for rule in PHYSICAL:
            if rule.name not in self.without:
                self._done = {}
                plan = self.tried_whole(plan, rule) if rule.whole else self.rewritten(plan, [rule])
        return plan

    def tried_whole(self, plan: Plan, rule: Rule) -> Plan:
        changed = self._try(rule, plan)
        return plan if changed is None else changed

    # -- choices ----------------------------------------------------------------------------------------------------

    def _chosen(self, plan: Plan) -> Plan:
        """Every choice at every node; one that makes the whole plan cheaper is taken at once."""
        choices = [r for r in CHOICES if r.name not in self.without]
        try:
            cost = self.cost(plan)
            while (found := self._improvement(plan, cost, choices)) is not None:
                plan, cost = found
        except ArithmeticError:
            pass  # an estimate beyond what floats can hold must not stop a query: it runs as it is
        return plan

    def _improvement(self, plan: Plan, cost: float, choices: Sequence[Rule]) -> tuple[Plan, float] | None:
        parents: dict[Plan, list[Plan]] = {}
        for node in plan.walk():
            for child in node.inputs:
                parents.setdefault(child, []).append(node)
        for node in plan.walk():
            for rule in choices:
                if not isinstance(node, rule.on) or (rule.name, node) in self._refused:
                    continue
                self._refused.add((rule.name, node))
                began = perf_counter()
                changed = rule(node, self)
                better = (
                    None if changed is None else self._cheaper(plan, cost, Firing(rule.name, node, changed), parents)
                )
                self.seconds[rule.name] = self.seconds.get(rule.name, 0.0) + perf_counter() - began
                if better is not None:
                    return better
        return None

    def _cheaper(
        self, plan: Plan, cost: float, firing: Firing, parents: dict[Plan, list[Plan]]
    ) -> tuple[Plan, float] | None:
        """The whole plan after the change and its cost, if that is less."""
        self._verifier.verify(firing.rule, firing.before, firing.after)
        candidate = _replaced(plan, firing.before, firing.after, parents)
        its = self.cost(candidate)
        if its >= cost * (1 - _LEAST_GAIN) or len(self.firings) >= _MOST_FIRINGS:
            return None
        self.firings.append(firing)
        return candidate, its

    def tried_once(self, plan: Plan, rule: Rule, done: dict[Plan, Plan]) -> Plan:
        """A choice at every node, inputs first, whatever it costs."""
        if plan not in done:
            current = plan.with_new_inputs(self.tried_once(child, rule, done) for child in plan.inputs)
            changed = self._try(rule, current) if isinstance(current, rule.on) else None
            done[plan] = current if changed is None else changed
        return done[plan]


def _replaced(plan: Plan, old: Plan, new: Plan, parents: dict[Plan, list[Plan]]) -> Plan:
    """The plan with every occurrence of one node replaced: only what is above it is built anew."""
    above, waiting = set[Plan](), [old]
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in above:
                above.add(parent)
                waiting.append(parent)
    done = {old: new}

    def rebuilt(node: Plan) -> Plan:
        if node not in done:
            done[node] = node.with_inputs(*map(rebuilt, node.inputs)) if node in above else node
        return done[node]

    return rebuilt(plan)
