"""σ_true(S) ≐ S, σ_false(S) ≐ ∅, and what reads no column is computed once, by the planner."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Constant, Filter, Join, JoinKind, Plan, Project
from headwater.expressions.constants import is_literal, literal, value, with_folded_sides
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import conjunction, conjuncts
from headwater.optimizer.rule import Context, rule


@rule(
    Filter,
    Project,
    Join,
    law="σ_true(S) ≐ S, σ_false(S) ≐ ∅, S1 ⋈_{θ∧true} S2 ≐ S1 ⋈_θ S2",
    condition="an expression that reads no column, and that can be computed",
    source="ours",
)
def fold_constants(plan: Filter | Project | Join, context: Context) -> Plan | None:
    match plan:
        case Filter():
            return _filter(plan)
        case Project():
            folded = tuple((name, _folded(s)) for name, s in plan.expressions)
            return None if folded == plan.expressions else evolve(plan, expressions=folded)
    return _join(plan)


def _folded(scalar: Expression) -> Expression:
    if scalar.columns or is_literal(scalar):
        return scalar
    return literal(scalar) or scalar


def _filter(plan: Filter) -> Plan | None:
    known = _simplified(plan.predicate)
    if known == [plan.predicate]:
        return None
    if known is None:
        return Constant(plan.schema)
    if not known:
        return plan.input
    changed = conjunction(known)
    return None if changed == plan.predicate else evolve(plan, predicate=changed)


def _join(plan: Join) -> Plan | None:
    if plan.residual is None:
        return None
    known = _simplified(plan.residual)
    if known is None:
        return Constant(plan.schema) if plan.kind in (JoinKind.INNER, JoinKind.SEMI) else None
    changed = conjunction(known) if known else None
    return None if changed == plan.residual else evolve(plan, residual=changed)


def _simplified(predicate: Expression) -> list[Expression] | None:
    """The conditions that are left, those that are always true being dropped; None if one of them is never true."""
    left = []
    for part in conjuncts(predicate):
        if part.columns or part.functions:
            left.append(with_folded_sides(part))
            continue
        found = value(part)
        if found is None:
            left.append(part)
        elif not found.value:
            return None
    return left
