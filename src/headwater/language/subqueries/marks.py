"""Conditions on sub-queries as values: a column that is true, false or NULL, computed by a left join.

A mark keeps the multiplicities of the rows, for what is joined has no duplicates. SQL's three values are exact: x IN (…) is
true if a row equals x; else NULL if x is NULL and there are rows, or a row is NULL; else false. ANY is the same for
other comparisons; ALL and NOT are the negations of ANY, EXISTS and IN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa
from attrs import evolve

from headwater.algebra.nodes import Distinct, JoinKind, Plan, Union
from headwater.algebra.properties import nullable
from headwater.expressions import nodes
from headwater.expressions.nodes import FALSE, TRUE, Case, Expression, Literal
from headwater.language.predicates import all_of, any_of, is_null, is_there, negated
from headwater.language.relations.joins import join, with_columns
from headwater.language.scope import Bound, Column, Item, Relation, project, reference, renamed
from headwater.language.subqueries.block import Block
from headwater.language.subqueries.conditions import Condition
from headwater.language.subqueries.correlation import Lift, over_any_values, same
from headwater.language.subqueries.joined import SubqueryJoins
from headwater.language.subqueries.quantified import Keys, Totals, column, keys_of, quantified_keys, selects_own_value

Attachment = Callable[[Relation, Plan, Lift], Relation]
"""Adds what an expression reads to the rows: given these, the plan of the rows before anything was added, and the lift."""


class Marks:
    """Marks for the conditions of one query block."""

    def __init__(self, joins: SubqueryJoins) -> None:
        self._joins, self._names = joins, joins.names

    def mark(
        self, condition: Condition, outer: Sequence[Bound], block: Block, *, only_truth: bool
    ) -> tuple[Bound, list[Attachment]]:
        """The condition as an expression over columns that the attachments add.

        With ``only_truth`` it may be false instead of NULL.
        """
        if condition.negated or condition.kind == "ALL":
            # Where only the truth of a negation matters, NULL must still not be taken for false.
            bound, attachments = self.mark(condition.negate(), outer, block, only_truth=False)
            return negated(bound), attachments
        match condition.kind:
            case "EXISTS" if (keys := keys_of(block.correlated, block)) is not None:
                return self._mark(condition, block, keys)
            case "IN":
                equal = self._joins.compare("=", outer, block.outputs)
                every = keys_of([*block.correlated, *equal], block)
                if every is not None and (only_truth or not any(e.nullable for e in equal)):
                    return self._mark(condition, block, every)
                keys = keys_of(block.correlated, block)
                if keys is not None and every is not None and selects_own_value(block):
                    return self._in(condition, outer[0], block, keys, every)
            case "ANY" if (keys := quantified_keys(block)) is not None:
                return self._any(condition, outer[0], block, keys, only_truth=only_truth)
        compared = self._joins.compare(condition.operator, outer, block.outputs) if outer else []
        exact = not only_truth and any(c.nullable for c in compared)
        return self._by_values(condition, outer, block, exact=exact)

    # -- by keys ----------------------------------------------------------------------------------------------------

    def _mark(self, condition: Condition, block: Block, keys: Keys) -> tuple[Bound, list[Attachment]]:
        """Is there a row with these keys? δ(π_keys(block)) with a flag, joined by the keys."""
        flag = self._names.unique("found")

        def attach(relation: Relation, base: Plan, lift: Lift) -> Relation:
            rows = keys.rows(block.grounded(base, lift))
            if not keys.pairs:
                return self._joined(relation, self._joins.witness(rows, flag).plan, map(lift, keys.outer))
            plan, names = with_columns(rows, [inner for _, inner in keys.pairs], self._names)
            listed = [(n, reference(plan.schema.field(n))) for n in dict.fromkeys(names)]
            plan, _ = self._joins.flagged(Distinct(project(plan, listed)), flag)
            return self._joined(relation, plan, map(lift, keys.predicates(names)))

        return _there(flag, pa.bool_(), condition), [attach]

    def _in(
        self, condition: Condition, x: Bound, block: Block, keys: Keys, every: Keys
    ) -> tuple[Bound, list[Attachment]]:
        """A row that equals x, and how many rows there are at all and how many of them are not NULL."""
        found, attachments = self._mark(condition, block, every)
        totals, attach = self._totals(condition, block, keys, counted=True, again=True)
        return _three_valued(found, x, totals, condition), [*attachments, attach]

    def _any(
        self, condition: Condition, x: Bound, block: Block, keys: Keys, *, only_truth: bool
    ) -> tuple[Bound, list[Attachment]]:
        """``x op ANY (…)`` by the largest and the smallest value."""
        totals, attach = self._totals(condition, block, keys, counted=not only_truth)
        true = any_of([t for e in totals.extremes for t in self._joins.compare(condition.operator, [x], [e])])
        if only_truth:
            return evolve(true, nullable=True), [attach]
        return _three_valued(true, x, totals, condition), [attach]

    def _totals(
        self, condition: Condition, block: Block, keys: Keys, *, counted: bool, again: bool = False
    ) -> tuple[Totals, Attachment]:
        """Totals of the block for each key; if the block is joined ``again``, its keys need other names."""
        totals = Totals(block, keys, condition, self._names, counted=counted)

        def attach(relation: Relation, base: Plan, lift: Lift) -> Relation:
            plan, names = totals.plan(block.grounded(base, lift), self._names)
            if again:
                fresh = {name: self._names.unique(name) for name in dict.fromkeys(names)}
                plan = project(plan, [(fresh.get(f.name, f.name), reference(f)) for f in plan.schema])
                names = [fresh[name] for name in names]
            return self._joined(relation, plan, map(lift, keys.predicates(names)))

        return totals, attach

    def _joined(self, relation: Relation, right: Plan, predicates: Iterable[Bound]) -> Relation:
        joined = join(relation, Relation(right, ()), JoinKind.LEFT, list(predicates), self._names)
        return relation.over(joined.plan)

    # -- by the values of the outer rows ----------------------------------------------------------------------------

    def _by_values(
        self, condition: Condition, outer: Sequence[Bound], block: Block, *, exact: bool
    ) -> tuple[Bound, list[Attachment]]:
        """The condition for all different values it depends on: those that make it true and, if ``exact``, false.

        With D = δ(π(outer)): σ_condition(D) x {true} ∪ σ_not condition(D) x {false}, joined on equal values.
        """
        mark = self._names.unique("mark")
        meant = [(condition, TRUE), (condition.negate(), FALSE)][: 2 if exact else 1]

        def attach(relation: Relation, base: Plan, lift: Lift) -> Relation:
            grounded, compared = block.grounded(base, lift), [lift(o) for o in outer]
            named = _outer_columns(grounded)
            needed = [*compared, *named.values()]
            source = base if all(b.columns <= set(base.schema.names) for b in needed) else relation.plan
            columns = [Column("", self._names.unique("value"), b.type, b.nullable) for b in needed]
            values = [(c.internal, b.expression) for c, b in zip(columns, needed, strict=True)]
            domain = Relation(Distinct(project(source, values)), (Item(tuple(columns)),))
            over_values = _over(grounded, dict(zip(named, columns[len(compared) :], strict=True)))
            copied = [Bound.of_column(c, b.origin) for c, b in zip(columns, needed, strict=True)]
            kept = [(c.internal, reference(c)) for c in columns]
            marked = []
            for meaning, value in meant:
                chosen = self._joins.apply(domain, meaning, copied[: len(compared)], over_values)
                marked.append(project(chosen.plan, [*kept, (mark, value)]))
            plan = Union.of(marked)
            seen = over_any_values(plan)
            known = [evolve(c, nullable=nullable(seen, c.column or "")) for c in copied]
            return self._joined(relation, plan, [*map(same, needed, known)])

        if exact:
            return evolve(column(mark, pa.bool_(), nullable=True), origin=condition.node), [attach]
        return _there(mark, pa.bool_(), condition), [attach]


def _there(name: str, type_: pa.DataType, condition: Condition) -> Bound:
    """The outer join has found something."""
    return evolve(is_there(column(name, type_)), origin=condition.node)


def _three_valued(true: Bound, x: Bound, totals: Totals, condition: Condition) -> Bound:
    """True; or NULL, if x is NULL and there are rows, or a row is NULL; or false."""
    unknown = totals.incomplete
    if x.nullable:
        unknown = [all_of([is_null(x), is_there(totals.rows)]), *unknown]
    branches: list[tuple[Expression, Expression]] = [(true.expression, TRUE)]
    if unknown:
        branches.append((any_of(unknown).expression, Literal(None, pa.null())))
    return Bound(Case(tuple(branches), pa.bool_(), FALSE), bool(unknown), condition.node)


def _outer_columns(block: Block) -> dict[str, Bound]:
    """The columns of the outer plan that the block names."""
    own = block.columns
    return {
        c.name: Bound(c, True, bound.origin)
        for bound in (*block.correlated, *block.outputs)
        for c in bound.expression.walk()
        if isinstance(c, nodes.Column) and c.name not in own
    }


def _over(block: Block, copies: Mapping[str, Column]) -> Block:
    """The block with copies of the outer columns that it names."""
    correlated, outputs = (tuple(renamed(b, copies) for b in bounds) for bounds in (block.correlated, block.outputs))
    return evolve(block, correlated=correlated, outputs=outputs)
