"""Expressions as rules need them: moved to other columns without a change of type, sorted by what they read."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.algebra.nodes import Filter, Plan, Project
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import can_fail, column, conjunction, conjuncts, over, plain_column, renamed
from headwater.model.schema import Schema


def through(scalar: Expression, project: Project) -> Expression:
    """The expression over the columns below a projection, instead of those above it."""
    return over(scalar, dict(project.expressions))


def split_by(predicate: Expression, names: Iterable[str]) -> tuple[list[Expression], list[Expression]]:
    """The conjuncts that read nothing but these columns, and the others; what can fail does not go ahead of others."""
    allowed = set(names)
    inside, outside = [], []
    for part in conjuncts(predicate):
        (inside if part.columns and allowed.issuperset(part.columns) else outside).append(part)
    if outside:
        outside = [*outside, *(p for p in inside if can_fail(p))]
        inside = [p for p in inside if not can_fail(p)]
    return inside, outside


def filtered(plan: Plan, predicates: Iterable[Expression]) -> Plan:
    """The rows for which all of the predicates are true."""
    listed = list(predicates)
    return Filter(plan, conjunction(listed)) if listed else plan


def positional(scalar: Expression, ours: Schema, theirs: Schema) -> Expression:
    """The expression over columns in the same places under the names of another schema."""
    changed = {a: b for a, b in zip(ours.names, theirs.names, strict=True) if a != b}
    return renamed(scalar, changed) if changed else scalar


def narrowed(plan: Plan, names: Iterable[str]) -> Plan:
    """The plan with only these columns, in the order that they have."""
    wanted = set(names)
    kept = [f for f in plan.schema if f.name in wanted]
    if len(kept) == len(plan.schema.names):
        return plan
    return Project(plan, tuple((f.name, column(f)) for f in kept))


def named_as(like: Plan, plan: Plan) -> Plan:
    """The plan with its columns, in order, under the names of another one."""
    if plan.schema.names == like.schema.names:
        return plan
    return Project(plan, tuple((name, column(f)) for name, f in zip(like.schema.names, plan.schema, strict=True)))


def kept(project: Project) -> dict[str, str]:
    """The columns below that a projection keeps as they are, under the name that they get (the first if several)."""
    names: dict[str, str] = {}
    for name, scalar in project.expressions:
        plain = plain_column(scalar)
        if plain is not None:
            names.setdefault(plain, name)
    return names


def reads(project: Project) -> set[str]:
    """The columns below that a projection reads."""
    return {c for _, s in project.expressions for c in s.columns}
