"""Expressions as rules need them: moved to other columns without a change of type, sorted by what they read."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from headwater.algebra.expressions import can_fail, column, conjunction, conjuncts, over, plain_column, renamed
from headwater.algebra.nodes import Filter, Plan, Project, Scalar
from headwater.language.types import duckdb_name, infer
from headwater.model.schema import Schema


def exact(scalar: Scalar, schema: Schema) -> Scalar:
    """The expression with a cast if DuckDB would give it another type than a column of it has.

    A projection casts its results; where an expression moves into another one, nobody else does.
    """
    if plain_column(scalar) is not None:
        return scalar
    natural, inexact = infer(scalar.sql, tuple((c, schema.field(c).type) for c in scalar.columns))
    if natural == scalar.type and not inexact:
        return scalar
    return evolve(scalar, sql=f"CAST({scalar.sql} AS {duckdb_name(scalar.type)})")


def through(scalar: Scalar, project: Project) -> Scalar:
    """The expression over the columns below a projection, instead of those above it."""
    below = project.input.schema
    read = {name: exact(s, below) for name, s in project.expressions if name in scalar.columns}
    return over(scalar, read)


def split_by(predicate: Scalar, names: Iterable[str]) -> tuple[list[Scalar], list[Scalar]]:
    """The conjuncts that read nothing but these columns, and the others; what can fail does not go ahead of others."""
    allowed = set(names)
    inside, outside = [], []
    for part in conjuncts(predicate):
        (inside if part.columns and allowed.issuperset(part.columns) else outside).append(part)
    if outside:
        outside = [*outside, *(p for p in inside if can_fail(p))]
        inside = [p for p in inside if not can_fail(p)]
    return inside, outside


def filtered(plan: Plan, predicates: Iterable[Scalar]) -> Plan:
    """The rows for which all of the predicates are true."""
    listed = list(predicates)
    return Filter(plan, conjunction(listed)) if listed else plan


def positional(scalar: Scalar, ours: Schema, theirs: Schema) -> Scalar:
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
