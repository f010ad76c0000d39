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
    match node:
        case n.Filter(input=below, predicate=predicate):
            return _reads(predicate, set(below.schema.names))
        case n.Project(input=below, expressions=expressions):
            have = set(below.schema.names)
            return next((p for _, s in expressions if (p := _reads(s, have))), None)
        case n.Join():
            return _join_problem(node)
        case n.Union() | n.SetOperation():
            left, right = ([f.type for f in side.schema] for side in node.inputs)
            return None if left == right else f"the sides have types {left} and {right}"
        case n.Aggregate(input=below, keys=keys, calls=calls):
            named = {name for c in calls for name in (c.argument, c.filter) if name is not None}
            return _missing({*keys, *named}, below)
        case n.RowWindow(input=below, partition=partition) | n.SessionWindow(input=below, partition=partition):
            return _missing(set(partition), below)
        case n.TopK(input=below, order=order, partition=partition):
            return _missing({*partition, *(k.column for k in order)}, below)
    return None


def _join_problem(node: n.Join) -> str | None:
    ours, theirs = set(node.left.schema.names), set(node.right.schema.names)
    missing = [pair for pair in node.keys if pair[0] not in ours or pair[1] not in theirs]
    if missing:
        return f"there are no such keys: {missing}"
    types = [(node.left.schema.field(a).type, node.right.schema.field(b).type) for a, b in node.keys]
    if any(a != b for a, b in types):
        return f"keys of different types: {types}"
    if node.residual is None:
        return None
    return _reads(node.residual, {*(f"l.{name}" for name in ours), *(f"r.{name}" for name in theirs)})


def _reads(scalar: Expression, have: set[str]) -> str | None:
    missing = set(scalar.columns) - have
    if missing:
        return f"{to_text(scalar)} reads {sorted(missing)}, which are not there"
    return None


def _missing(used: set[str], below: n.Plan) -> str | None:
    missing = used - set(below.schema.names)
    return f"there are no columns {sorted(missing)}" if missing else None
