"""Expressions that may contain sub-queries, and what must be joined to a query's rows before they can be read."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve
from sqlglot import exp

from headwater.language.expressions import ExpressionBinder
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope, project
from headwater.language.select_list import Chosen
from headwater.language.subqueries import Block, SubqueryJoins


class Both(Scope):
    """The scope of a correlated condition: names of the sub-query first, then those of the outer query."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope.text, scope.items, scope.outer)

    def resolve(self, node: exp.Column) -> Bound:
        return self.outer.resolve(node) if self.outer and self.is_correlated(node) else super().resolve(node)


class Values:
    """Binds expressions that may contain scalar sub-queries, and keeps what must be joined before they are read."""

    def __init__(
        self,
        subquery: Callable[[exp.Expr, Scope, NameSource], Block],
        scope: Scope,
        names: NameSource,
        lift: Callable[[Bound], Bound],
        *,
        aggregate: Callable[[exp.Expr], Bound] | None = None,
    ) -> None:
        self._bind_subquery, self._scope, self._names, self._lift = subquery, scope, names, lift
        self._aggregate = aggregate
        self._joins = SubqueryJoins(scope, names)
        self._blocks: list[Block] = []

    def bind(self, chosen: Chosen, clause: str, *, lift: bool = True) -> Bound:
        if chosen.column is not None:
            bound = Bound.of_column(chosen.column, chosen.node)
        else:
            bound = self._expressions(clause).bind(chosen.node)
        return self._lift(bound) if lift else bound

    def predicate(self, node: exp.Expr, clause: str, *, lift: bool = True) -> Bound:
        bound = self._expressions(clause).predicate(node)
        return self._lift(bound) if lift else bound

    def attached(self, relation: Relation) -> Relation:
        for block in self._blocks:
            lifted = evolve(block, correlated=tuple(self._lift(p) for p in block.correlated))
            relation = self._joins.attach(relation, lifted)
        return relation

    def _expressions(self, clause: str) -> ExpressionBinder:
        return ExpressionBinder(self._scope, clause, aggregate=self._aggregate, subquery=self._subquery)

    def _subquery(self, node: exp.Expr) -> Bound:
        bound, block = self._joins.value(node, self._bind_subquery(node, self._scope, self._names))
        self._blocks.append(block)
        return bound


def with_own_names(block: Block, names: NameSource) -> Block:
    """The sub-query's result under names that the outer query does not have."""
    wishes = [o.column or "value" for o in block.outputs]
    columns = [
        Column(name, name, o.type, o.nullable)
        for name, o in zip([names.unique(w, f"sub.{w}") for w in wishes], block.outputs, strict=True)
    ]
    pairs = zip(columns, block.outputs, strict=True)
    plan = project(block.relation.plan, [(c.internal, o.scalar()) for c, o in pairs])
    outputs = tuple(Bound.of_column(c, o.origin) for c, o in zip(columns, block.outputs, strict=True))
    return evolve(block, relation=Relation(plan, (Item(tuple(columns)),)), outputs=outputs)


def is_correlated(condition: exp.Expr, scope: Scope) -> bool:
    inside = condition.walk(prune=lambda n: isinstance(n, (exp.Query, exp.Subquery)))
    return any(isinstance(n, exp.Column) and not n.is_star and scope.is_correlated(n) for n in inside)
