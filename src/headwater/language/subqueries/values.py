"""Expressions that may contain sub-queries, and what must be joined to a query's rows before they can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Plan
from headwater.language.expressions import ExpressionBinder
from headwater.language.predicates import all_of
from headwater.language.relations.joins import filtered
from headwater.language.scope import Bound, NameSource, Relation, Scope
from headwater.language.select.select_list import Chosen
from headwater.language.subqueries.block import Block
from headwater.language.subqueries.conditions import (
    Condition,
    as_value,
    conditions_of_cases,
    only_truth_matters,
    recognise,
)
from headwater.language.subqueries.correlation import Lift
from headwater.language.subqueries.joined import SubqueryJoins
from headwater.language.subqueries.marks import Marks

Step = Callable[[Relation, Plan], Relation]


class BindSubquery(Protocol):
    """Binds a sub-query of an expression in a scope; its columns get names that the outer query does not have."""

    def __call__(self, node: exp.Expr, outer: Scope, names: NameSource, kind: str = "VALUE", /) -> Block: ...


class Values:
    """Binds expressions that may contain sub-queries, and keeps what must be joined before they are read.

    ``lift`` is asked for only when that is joined, so that a grouping can still be built in between.
    """

    def __init__(
        self,
        subquery: BindSubquery,
        scope: Scope,
        names: NameSource,
        lift: Lift,
        *,
        aggregate: Callable[[exp.Expr], Bound] | None = None,
        window: Callable[[exp.Window], Bound] | None = None,
    ) -> None:
        self._bind_subquery, self._scope, self._names, self._lift = subquery, scope, names, lift
        self._aggregate, self._window = aggregate, window
        self._joins = SubqueryJoins(scope, names)
        self._marks = Marks(self._joins)
        self._plain: list[Bound] = []
        self._steps: list[Step] = []
        self._only_truth: set[int] = set()

    def bind(self, chosen: Chosen, clause: str, *, lift: bool = True) -> Bound:
        if chosen.column is not None:
            bound = Bound.of_column(chosen.column, chosen.node)
        else:
            self._only_truth |= conditions_of_cases(chosen.node)
            bound = self._expressions(clause).bind(chosen.node)
        return self._lift(bound) if lift else bound

    def predicate(self, node: exp.Expr, clause: str, *, lift: bool = True) -> Bound:
        self._only_truth |= only_truth_matters(node) | conditions_of_cases(node)
        bound = self._expressions(clause).predicate(node)
        return self._lift(bound) if lift else bound

    def require(self, node: exp.Expr, clause: str) -> None:
        """A condition that the rows must meet: a semi- or anti-join if it is one on a sub-query, else a filter."""
        condition = recognise(node)
        if not node.find(exp.Query, exp.Subquery):
            self._plain.append(self.predicate(node, clause, lift=False))
        elif condition is not None and not any(o.find(exp.Query, exp.Subquery) for o in condition.outer):
            outer, block = self._condition(condition, clause)
            if condition.kind == "VALUE" and block.empty:  # the condition may hold where there is no row
                values = self._values(condition.query, block, len(outer))
                met = all_of(self._joins.compare(condition.operator, outer, values))
                self._steps.append(partial(self._filtered, met))
            else:
                self._steps.append(partial(self._applied, condition, outer, block))
        else:
            self._steps.append(partial(self._filtered, self.predicate(node, clause, lift=False)))

    def attached(self, relation: Relation) -> Relation:
        """The rows that meet the conditions, with all that the expressions read. The columns in sight stay the same."""
        base = filtered(relation.plan, [self._lift(p) for p in self._plain])
        relation = relation.over(base)
        for step in self._steps:
            relation = step(relation, base)
        return relation

    def hook(self, clause: str) -> Callable[[exp.Expr], Bound]:
        """For sub-queries in expressions that others bind over the same rows."""
        return partial(self._subquery, clause=clause)

    # -- steps ------------------------------------------------------------------------------------------------------

    def _applied(
        self, condition: Condition, outer: Sequence[Bound], block: Block, relation: Relation, base: Plan
    ) -> Relation:
        lifted = [self._lift(o) for o in outer]
        return self._joins.apply(relation, condition, lifted, block.grounded(base, self._lift))

    def _filtered(self, predicate: Bound, relation: Relation, base: Plan) -> Relation:
        return relation.over(filtered(relation.plan, [self._lift(predicate)]))

    def _with_values(self, block: Block, relation: Relation, base: Plan) -> Relation:
        return self._joins.attach(relation, block.grounded(base, self._lift))

    # -- the hook of expressions ------------------------------------------------------------------------------------

    def _expressions(self, clause: str) -> ExpressionBinder:
        return ExpressionBinder(
            self._scope, clause, aggregate=self._aggregate, subquery=self.hook(clause), window=self._window
        )

    def _subquery(self, node: exp.Expr, *, clause: str) -> Bound:
        condition = as_value(node)
        if condition is None:
            return self._values(node, self._bind_subquery(node, self._scope, self._names), 1)[0]
        outer, block = self._condition(condition, clause)
        if condition.kind == "VALUE":
            values = self._values(condition.query, block, len(outer))
            return all_of(self._joins.compare(condition.operator, outer, values))
        bound, attachments = self._marks.mark(condition, outer, block, only_truth=id(node) in self._only_truth)
        for attach in attachments:
            self._steps.append(lambda relation, base, attach=attach: attach(relation, base, self._lift))
        return bound

    def _values(self, query: exp.Expr, block: Block, number: int) -> list[Bound]:
        values, widened = self._joins.values(query, block, number)
        self._steps.append(partial(self._with_values, widened))
        return values

    def _condition(self, condition: Condition, clause: str) -> tuple[list[Bound], Block]:
        """The two sides of the comparison."""
        binder = self._expressions(clause)
        outer = [binder.bind(o) for o in condition.outer]
        block = self._bind_subquery(condition.query, self._scope, self._names, condition.kind)
        self._joins.check(condition, block)
        if condition.kind != "EXISTS":
            outer, inner = zip(*map(_one_type, outer, block.outputs), strict=True)
            block = evolve(block, outputs=inner)
        return list(outer), block


def _one_type(outer: Bound, inner: Bound) -> tuple[Bound, Bound]:
    """NULL takes the type of what it is compared with, and is a STRING if that is NULL, too."""
    known = [b.type for b in (outer, inner) if not pa.types.is_null(b.type)] or [pa.string()]
    outer, inner = (b.cast(known[0]) if pa.types.is_null(b.type) else b for b in (outer, inner))
    return outer, inner
