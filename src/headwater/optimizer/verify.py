"""Nothing that a rule makes is trusted: the new plan must be well formed and mean the same columns as the old one."""

from __future__ import annotations

from headwater.algebra import nodes as n
from headwater.algebra.plan_text import print_plan
from headwater.algebra.properties import keeps_for_ever
from headwater.expressions.nodes import Expression
from headwater.expressions.text import to_text


class BrokenRuleError(AssertionError):
    """A rule made a plan that cannot stand for the old one: a bug of ours."""


class Verifier:
    """Looks at every node once, however many plans it is part of."""

    def __init__(self) -> None:
        self._sound: set[n.Plan] = set()
        self._growing: dict[n.Plan, bool] = {}

    def verify(self, rule: str, before: n.Plan, after: n.Plan) -> None:
        """Raise unless ``after`` is well formed, has the same columns, and its state is bounded if that of ``before`` is."""
        problem = _difference(before, after) or self._malformed(after)
        if not problem and self._grows(after) and not self._grows(before):
            problem = "state that was bounded grows for ever"
        if problem:
            raise BrokenRuleError(f"rule {rule}: {problem}\nbefore:\n{print_plan(before)}\nafter:\n{print_plan(after)}")

    def _malformed(self, plan: n.Plan) -> str | None:
        """What is wrong with the plan; None if nothing is."""
        waiting = [plan]
        while waiting:
            node = waiting.pop()
            if node in self._sound:
                continue
            problem = _problem(node)
            if problem:
                return f"{type(node).__name__}: {problem}"
            self._sound.add(node)
            waiting.extend(node.inputs)
        return None

    def _grows(self, plan: n.Plan) -> bool:
        if plan not in self._growing:
            self._growing[plan] = keeps_for_ever(plan) or any(map(self._grows, plan.inputs))
        return self._growing[plan]


def _difference(before: n.Plan, after: n.Plan) -> str | None:
    ours, theirs = ([(f.name, f.type) for f in p.schema] for p in (before, after))
    return None if ours == theirs else f"the columns were {ours} and are {theirs}"


def _problem(node: n.Plan) -> str | None:
    names = node.schema.names
    if len({name.casefold() for name in names}) != len(names):
        return f"two columns of the same name among {names}"
    for port, (used, child) in enumerate(zip(node.names(), node.inputs, strict=True)):
        missing = used.difference(child.schema.names)
        if missing:
            return f"there are no columns {sorted(missing)} in input {port}"
    return node.problem() or next((p for scalar in node.scalars if (p := _unsaid(scalar, node))), None)


def _unsaid(scalar: Expression, node: n.Plan) -> str | None:
    """The columns that an expression reads must be there."""
    sides = ("l.", "r.") if isinstance(node, n.Join) else ("",)
    have = {f"{side}{name}" for side, child in zip(sides, node.inputs, strict=True) for name in child.schema.names}
    missing = set(scalar.columns) - have
    if missing:
        return f"{to_text(scalar)} reads {sorted(missing)}, which are not there"
    return None
