"""Sub-queries that depend on the outer query in any way: computed once for all the different values they depend on.

After Neumann and Kemper, "Unnesting Arbitrary Queries" (BTW 2015), section 3: with D = δ(π(outer)), the values at this
instant of the outer columns that the sub-query names, the sub-query is evaluated over D x its own streams, D's columns
are carried through it (as keys of every grouping, partition of every top-k, columns of every set operation), and the
result is joined to the outer rows on equal values of D. Every step is snapshot-reducible, so the answer is right at every
instant. The outer plan is not known while the sub-query is bound: until then a ``Domain`` stands for D.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen
from sqlglot import exp

from headwater.algebra.nodes import Distinct, Plan, Source
from headwater.algebra.nodes.base import Leaf
from headwater.algebra.time_properties import NO_ROW_TIMES, RowTimes
from headwater.expressions import nodes
from headwater.language.predicates import struct, test
from headwater.language.scope import Bound, Column, NameSource, Relation, Scope, project, reference
from headwater.model.schema import Field, Schema

Lift = Callable[[Bound], Bound]
"""Brings an expression over the rows of a query to where it is read: over its groups, if it groups."""


@frozen(eq=False)
class Domain(Leaf):
    """Stands for the different values of outer columns; never leaves the binder, so it has no text."""

    columns: Schema

    def _schema(self) -> Schema:
        return self.columns

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return NO_ROW_TIMES

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return False


@frozen(eq=False)
class Correlation:
    """The outer columns that a sub-query names, and what stands for their values in its plan."""

    outer: Scope
    names: tuple[exp.Column, ...]
    columns: tuple[Bound, ...]
    domain: Domain

    @classmethod
    def of(cls, outer: Scope, names: Sequence[exp.Column]) -> Correlation:
        """For all the names, which the outer query must explain."""
        columns: dict[str, Bound] = {}
        for node in names:
            whole = outer.resolve(node)
            nullable = whole.nullable or whole.column is None
            for column in whole.expression.walk():
                if isinstance(column, nodes.Column):
                    columns.setdefault(column.name, Bound(column, nullable, node))
        free = NameSource()
        fields = [Field(free.unique(f"outer.{name}"), bound.type, bound.nullable) for name, bound in columns.items()]
        return cls(outer, tuple(names), tuple(columns.values()), Domain(Schema(tuple(fields))))

    def part(self, names: NameSource) -> tuple[Relation, dict[str, Column]]:
        """One copy of the values for a FROM clause; its columns by their names in the outer plan."""
        carried = {}
        for bound, field in zip(self.columns, self.domain.columns, strict=True):
            internal = names.unique(field.name)
            carried[bound.column or ""] = Column(field.name, internal, field.type, field.nullable)
        pairs = zip(carried.values(), self.domain.columns, strict=True)
        return Relation(project(self.domain, [(c.internal, reference(f)) for c, f in pairs]), ()), carried

    def grounded(self, plan: Plan, outer: Plan, lift: Lift) -> Plan:
        """The sub-query's plan over the values that the outer plan has."""
        pairs = zip(self.domain.schema.names, self.columns, strict=True)
        values = Distinct(project(outer, [(name, lift(bound).expression) for name, bound in pairs]))
        return _replaced(plan, lambda domain: values if domain is self.domain else domain, {})


def copies(correlation: Correlation | None) -> int:
    """How many columns of a query are copies of outer ones."""
    return 0 if correlation is None else len(correlation.columns)


def over_any_values(plan: Plan) -> Plan:
    """The plan of a sub-query over some values of outer columns, to see what holds for all."""
    return _replaced(plan, lambda domain: Distinct(Source("outer", domain.columns)), {})


def _replaced(plan: Plan, replacement: Callable[[Domain], Plan], done: dict[int, Plan]) -> Plan:
    if isinstance(plan, Domain):
        return replacement(plan)
    if id(plan) not in done:
        inputs = [_replaced(child, replacement, done) for child in plan.inputs]
        unchanged = all(a is b for a, b in zip(inputs, plan.inputs, strict=True))
        done[id(plan)] = plan if unchanged else plan.with_inputs(*inputs)
    return done[id(plan)]


def same(outer: Bound, inner: Bound) -> Bound:
    """The two are equal, or both are NULL.

    NULL is no key of a join, and without keys a join looks at all pairs. So what can be NULL is wrapped into a STRUCT: that
    is never NULL, it is hashed and compared field by field, NULL like any other value, and it works for all types.
    """
    if outer.nullable and inner.nullable:
        outer, inner = _wrapped(outer), _wrapped(inner)
    return Bound(test("=", outer.expression, inner.expression), False, outer.origin)


def _wrapped(bound: Bound) -> Bound:
    return evolve(bound, expression=struct({"value": bound.expression}), nullable=False)
