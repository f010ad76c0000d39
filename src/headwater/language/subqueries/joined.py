"""Sub-queries joined to the rows of the query around them: semi-, anti- and outer joins (Krämer 7.2.5, 9.3, after Dayal)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Aggregate, AggregateCall, JoinKind, Plan
from headwater.errors import SqlError
from headwater.expressions.nodes import TRUE, Call, Case
from headwater.language.expressions import ExpressionBinder
from headwater.language.predicates import all_of, any_of, compared, is_null, is_there, not_false, not_true
from headwater.language.relations.joins import filtered, join, with_columns
from headwater.language.scope import Bound, Column, NameSource, Relation, Scope, project, reference
from headwater.language.subqueries.block import Block
from headwater.language.subqueries.conditions import NEGATED, Condition
from headwater.language.subqueries.quantified import Keys, Totals, quantified_keys
from headwater.language.text import error_on

_STRICT = {"<=": "<", ">=": ">"}


class SubqueryJoins:
    """Turns conditions on sub-queries of one query block into joins with its rows."""

    def __init__(self, scope: Scope, names: NameSource) -> None:
        self.scope, self.names = scope, names
        self._binder = ExpressionBinder(scope, "a sub-query")

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.scope.text, node, code, message, hint=hint)

    def check(self, condition: Condition, block: Block) -> None:
        """The sub-query must have as many columns as it is compared with, and one row if it is a value."""
        if condition.kind != "EXISTS":
            self._check_columns(condition.query, block, len(condition.outer))
        if condition.kind == "VALUE" and not block.single:
            raise self._many_rows(condition.query)

    def apply(self, relation: Relation, condition: Condition, outer: Sequence[Bound], block: Block) -> Relation:
        """The rows for which the condition is true."""
        match condition.kind:
            case "EXISTS":
                kind = JoinKind.ANTI if condition.negated else JoinKind.SEMI
                return self._exists(relation, block, kind)
            case "ANY" | "ALL" if (keys := quantified_keys(block)) is not None:
                return self._by_extremes(relation, condition, outer[0], block, keys)
            case "IN" if condition.negated:
                return self._not_in(relation, outer, block)
            case "IN":
                return self._join(relation, block, JoinKind.SEMI, self.compare("=", outer, block.outputs))
            case "ALL":
                return self._all(relation, condition.operator, outer, block)
        compared = self.compare(condition.operator, outer, block.outputs)
        return self._join(relation, block, JoinKind.SEMI, compared)

    def values(self, query: exp.Expr, block: Block, number: int = 1) -> tuple[list[Bound], Block]:
        """A sub-query of one row as columns, and the block that ``attach`` must add to the rows before they are read."""
        if not block.single:
            raise self._many_rows(query)
        self._check_columns(query, block, number)
        own = block.columns
        plain = [o for o in block.outputs if o.columns <= own and not pa.types.is_null(o.type)]
        plan, names = with_columns(block.relation.plan, plain, self.names)
        columns = dict(zip(map(id, plain), names, strict=True))
        flag = None
        if any(id(o) not in columns or (block.empty and o.nullable) for o in block.outputs):
            plan, flag = self.flagged(plan)
        values = []
        for place, output in enumerate(block.outputs):
            value = output
            if id(output) in columns:
                name = columns[id(output)]
                value = Bound.of_column(Column(name, name, output.type), query)
            if block.empty and id(output) in columns and not output.nullable:  # then NULL is where there is no row
                value = _filled(value, block.empty[place])
            elif flag is not None and (block.empty or value is output) and not pa.types.is_null(output.type):
                value = _where_found(value, flag, block.empty[place] if block.empty else None)
            values.append(value)
        return values, evolve(block, relation=block.relation.over(plan))

    def flagged(self, plan: Plan, name: str | None = None) -> tuple[Plan, Bound]:
        """The plan with a column that is never NULL: behind an outer join it tells whether there was a row."""
        column = Column("found", name or self.names.unique("found"), pa.bool_())
        kept = [(f.name, reference(f)) for f in plan.schema]
        plan = project(plan, [*kept, (column.internal, TRUE)])
        return plan, Bound.of_column(column, exp.true())

    def attach(self, relation: Relation, block: Block) -> Relation:
        """Every row with the values of the sub-query: NULL where that is empty. The columns in sight stay the same."""
        return relation.over(self._join(relation, block, JoinKind.LEFT, ()).plan)

    # -- kinds ------------------------------------------------------------------------------------------------------

    def _exists(self, relation: Relation, block: Block, kind: JoinKind, extra: Sequence[Bound] = ()) -> Relation:
        """With some row of the block or without any. Where no outer column matters, one row stands for all of them."""
        if block.correlated:
            return self._join(relation, block, kind, extra)
        return join(relation, self.witness(block.relation.plan), kind, extra, self.names)

    def witness(self, rows: Plan, name: str | None = None) -> Relation:
        """One row if there are any."""
        call = AggregateCall("COUNT", name or self.names.unique("rows"), pa.int64())
        return Relation(Aggregate(rows, (), (call,)), ())

    def _all(self, relation: Relation, operator: str, outer: Sequence[Bound], block: Block) -> Relation:
        """``x op ALL (…)``: no row for which the comparison is not true; NULL is not true either."""
        true = self.compare(operator, outer, block.outputs)
        counter = not_true(all_of(true))
        if not any(t.nullable for t in true):
            counter = any_of(self.compare(NEGATED[operator], outer, block.outputs))
        return self._join(relation, block, JoinKind.ANTI, [counter])

    def _by_extremes(self, relation: Relation, condition: Condition, x: Bound, block: Block, keys: Keys) -> Relation:
        """``x op ANY (…)`` and ``x op ALL (…)``: one row for each key decides, that of the smallest or largest value."""
        counted = condition.kind == "ALL" and block.outputs[0].nullable
        totals = Totals(block, keys, condition, self.names, counted=counted)
        plan, names = totals.plan(block, self.names)
        joined = keys.predicates(names)
        if condition.kind == "ANY":
            kind, test = JoinKind.SEMI, any_of(self._compare_each(condition.operator, x, totals.extremes))
        else:
            kind = JoinKind.ANTI
            true = [*self._compare_each(condition.operator, x, totals.extremes), *totals.complete]
            test = not_true(all_of(true))
            if not any(t.nullable for t in true):
                test = any_of(self._compare_each(NEGATED[condition.operator], x, totals.extremes))
        return join(relation, Relation(plan, ()), kind, [*joined, test], self.names)

    def _compare_each(self, operator: str, x: Bound, values: Sequence[Bound]) -> list[Bound]:
        return [c for value in values for c in self.compare(operator, [x], [value])]

    def _not_in(self, relation: Relation, outer: Sequence[Bound], block: Block) -> Relation:
        """``x NOT IN (…)``: for every row of the block, some of its columns is unequal, and known to be."""
        equal = self.compare("=", outer, block.outputs)
        if len(outer) > 1 or not block.outputs[0].columns <= block.columns:
            possible = [not_false(e) if e.nullable else e for e in equal]
            return self._join(relation, block, JoinKind.ANTI, possible)
        # One column: it equals no row, no row is NULL, and it is not NULL itself unless the block is empty.
        (x,), (y,) = outer, block.outputs
        result = self._join(relation, block, JoinKind.ANTI, equal)
        if y.nullable:
            with_null = evolve(block, relation=block.relation.over(filtered(block.relation.plan, [is_null(y)])))
            result = self._exists(result, with_null, JoinKind.ANTI)
        if x.nullable:
            result = self._exists(result, block, JoinKind.ANTI, [is_null(x)])
        return result

    # -- pieces -----------------------------------------------------------------------------------------------------

    def _join(self, relation: Relation, block: Block, kind: JoinKind, predicates: Sequence[Bound]) -> Relation:
        return join(relation, block.relation, kind, [*block.correlated, *predicates], self.names)

    def compare(self, operator: str, outer: Sequence[Bound], inner: Sequence[Bound]) -> list[Bound]:
        """Conditions that together say ``outer operator inner``; rows are compared from left to right."""
        pairs = [self._binder.comparands(o, i) for o, i in zip(outer, inner, strict=True)]
        if operator == "=":
            return [compared("=", left, right) for left, right in pairs]
        if operator == "<>":
            return [any_of([compared("<>", left, right) for left, right in pairs])]
        *earlier, last = pairs
        result = compared(operator, *last)
        for left, right in reversed(earlier):
            tie = all_of([compared("=", left, right), result])
            result = any_of([compared(_STRICT.get(operator, operator), left, right), tie])
        return [result]

    def _check_columns(self, query: exp.Expr, block: Block, number: int) -> None:
        if number != len(block.outputs):
            message = f"the sub-query must give {_columns(number)}, not {_columns(len(block.outputs))}"
            raise self.error(query, "COLUMN_COUNT", message)

    def _many_rows(self, query: exp.Expr) -> SqlError:
        return self.error(
            query,
            "SCALAR_SUBQUERY",
            "the sub-query may give more than one row at an instant",
            hint="Aggregate it without GROUP BY, or compare with ANY (…) or ALL (…).",
        )


def _where_found(value: Bound, flag: Bound, empty: Bound | None) -> Bound:
    """What names outer columns is computed above the join; where that finds no row it is NULL, or that of no rows."""
    found, default = is_there(flag).expression, None if empty is None else empty.expression
    case = Case(((found, value.expression),), value.type, default)
    return evolve(value, expression=case, nullable=value.nullable or empty is None)


def _filled(value: Bound, empty: Bound) -> Bound:
    filled = Call("coalesce", (value.expression, empty.expression), value.type)
    return evolve(value, expression=filled, nullable=False)


def _columns(number: int) -> str:
    return "1 column" if number == 1 else f"{number} columns"
