"""A sub-query on its way into the query around it: what it gives, and what ties it to the outer rows."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from attrs import evolve, field, frozen

from headwater.algebra.nodes import Plan, TopK
from headwater.algebra.properties import has_key, nullable
from headwater.expressions.nodes import TRUE, Expression
from headwater.language.relations.joins import equal_sides
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, project
from headwater.language.subqueries.correlation import Correlation, Lift, over_any_values, same


@frozen
class Block:
    """A sub-query before it is joined: its rows, what it selects, and the conditions that tie it to the outer rows."""

    relation: Relation
    outputs: tuple[Bound, ...]
    """Over its columns and, if it is correlated, over outer ones."""
    correlated: tuple[Bound, ...] = ()
    copies: tuple[str, ...] = ()
    """Its columns that are copies of outer ones."""
    correlation: Correlation | None = None
    """Where its plan still needs the values of outer columns."""
    empty: tuple[Bound, ...] = ()
    """What it selects where it has no row, if that is not NULL throughout (``empty_aggregates``)."""
    one_row: bool = False
    """Is it certain that it has at most one row for each outer row?"""
    keys: Mapping[Plan, tuple[str, ...]] = field(factory=dict, eq=False)
    """Plans with a PRIMARY KEY, which the user vouches for."""

    @property
    def columns(self) -> set[str]:
        return set(self.relation.plan.schema.names)

    @property
    def single(self) -> bool:
        """Has it at most one row at an instant for each outer row?"""
        if self.one_row:
            return True
        plan, own = _with_keys(over_any_values(self.relation.plan), self.keys), self.columns
        sides = (equal_sides(p, set(p.columns) - own, own) for p in self.correlated)
        fixed = [inner.column for _, inner in filter(None, sides) if inner.column is not None]
        return has_key(plan, [*self.copies, *fixed])

    def grounded(self, outer: Plan, lift: Lift) -> Block:
        """The block with nothing left open, over the rows of the outer plan."""
        relation = self.relation
        if self.correlation is not None:
            relation = relation.over(self.correlation.grounded(relation.plan, outer, lift))
        outputs, correlated = (tuple(lift(b) for b in bounds) for bounds in (self.outputs, self.correlated))
        return evolve(self, relation=relation, outputs=outputs, correlated=correlated, correlation=None)


def _with_keys(plan: Plan, keys: Mapping[Plan, tuple[str, ...]]) -> Plan:
    """The plan where one row for each PRIMARY KEY stands for what has one, to see what follows from it."""
    if plan in keys:
        return TopK(plan, (), 1, partition=keys[plan])
    return plan.with_new_inputs([_with_keys(child, keys) for child in plan.inputs]) if keys else plan


def with_own_names(block: Block, names: NameSource) -> Block:
    """The sub-query's result under names that the outer query does not have; a plain NULL needs no column."""
    columns: list[Column] = []
    expressions: list[tuple[str, Expression]] = []
    outputs: list[Bound] = []
    for output in block.outputs:
        if pa.types.is_null(output.type):
            outputs.append(output)
            continue
        wish = output.column or "value"
        name = names.unique(wish, f"sub.{wish}")
        columns.append(Column(name, name, output.type, output.nullable))
        expressions.append((name, output.expression))
        outputs.append(Bound.of_column(columns[-1], output.origin))
    if not expressions:
        expressions = [(names.unique("value"), TRUE)]
    plan = project(block.relation.plan, expressions)
    return evolve(block, relation=Relation(plan, (Item(tuple(columns)),)), outputs=tuple(outputs))


def tied(block: Block) -> Block:
    """A block whose last outputs are copies of outer columns, to be joined where these are equal."""
    correlation = block.correlation
    if correlation is None:
        return block
    number = len(correlation.columns)
    plan = over_any_values(block.relation.plan)
    # Where a condition on the column cannot be true for NULL, a plain key is enough.
    found = [evolve(o, nullable=nullable(plan, o.column or "")) for o in block.outputs[-number:]]
    return evolve(
        block,
        outputs=block.outputs[:-number],
        correlated=tuple(same(outer, copy) for outer, copy in zip(correlation.columns, found, strict=True)),
        copies=tuple(copy.column or "" for copy in found),
    )
