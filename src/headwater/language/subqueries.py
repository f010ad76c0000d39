"""Sub-queries in conditions, unnested to semi-, anti- and outer joins (Krämer 7.2.5, 9.3, after Dayal)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve, frozen
from sqlglot import exp

from headwater.algebra.nodes import Aggregate, AggregateCall, Filter, JoinKind, Plan, Project
from headwater.errors import SqlError
from headwater.language.expressions import ExpressionBinder
from headwater.language.joins import filtered, join, with_columns
from headwater.language.scope import Bound, Column, NameSource, Relation, Scope
from headwater.language.text import error_on

_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}


@frozen
class Block:
    """A sub-query before its projection: its rows, what it selects, and conditions that also name outer columns."""

    relation: Relation
    outputs: tuple[Bound, ...]
    correlated: tuple[Bound, ...] = ()
    single: bool = False
    """At most one row at an instant (and for each value of the outer columns)."""


@frozen
class Condition:
    """``outer operator quantifier (query)`` in normal form."""

    kind: str
    """EXISTS, IN, ANY, ALL, or VALUE for a comparison with a scalar sub-query."""
    node: exp.Expr
    query: exp.Expr
    outer: tuple[exp.Expr, ...] = ()
    operator: type[exp.Expr] = exp.EQ
    negated: bool = False

    def negate(self) -> Condition:
        match self.kind:
            case "ANY":
                return evolve(self, kind="ALL", operator=_NEGATED[self.operator])
            case "ALL":
                return evolve(self, kind="ANY", operator=_NEGATED[self.operator])
            case "VALUE":
                return evolve(self, operator=_NEGATED[self.operator])
        return evolve(self, negated=not self.negated)


def recognise(node: exp.Expr) -> Condition | None:
    """The condition on a sub-query that the node is; None if it is something else."""
    match node:
        case exp.Paren():
            return recognise(node.this)
        case exp.Not():
            inner = recognise(node.this)
            return inner.negate() if inner else None
        case exp.Exists():
            return Condition("EXISTS", node, node.this)
        case exp.In() if node.args.get("query"):
            outer = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
            return Condition("IN", node, node.args["query"], tuple(outer))
    if type(node) not in _NEGATED:
        return None
    left, right, operator = node.this, node.expression, type(node)
    if isinstance(left, (exp.Any, exp.All, exp.Subquery)) and not isinstance(right, (exp.Any, exp.All, exp.Subquery)):
        left, right, operator = right, left, _FLIPPED[operator]
    if left.find(exp.Query, exp.Subquery):
        return None
    if isinstance(right, (exp.Any, exp.All)) and isinstance(right.this, (exp.Query, exp.Subquery)):
        return Condition(type(right).__name__.upper(), node, right.this, (left,), operator)
    if isinstance(right, exp.Subquery):
        return Condition("VALUE", node, right, (left,), operator)
    return None


class SubqueryJoins:
    """Turns conditions on sub-queries of one query block into joins with its rows."""

    def __init__(self, scope: Scope, names: NameSource) -> None:
        self.scope, self.names = scope, names
        self._binder = ExpressionBinder(scope, "a sub-query")

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.scope.text, node, code, message, hint=hint)

    def apply(self, relation: Relation, condition: Condition, outer: Sequence[Bound], block: Block) -> Relation:
        """The rows for which the condition is true."""
        if condition.kind != "EXISTS" and len(outer) != len(block.outputs):
            raise self.error(
                condition.query,
                "COLUMN_COUNT",
                f"the sub-query must give {_columns(len(outer))}, not {_columns(len(block.outputs))}",
            )
        match condition.kind:
            case "EXISTS":
                kind = JoinKind.ANTI if condition.negated else JoinKind.SEMI
                return self._exists(relation, block, kind)
            case "IN" if condition.negated:
                return self._not_in(relation, condition, outer, block)
            case "IN":
                equal = [self._compare(exp.EQ, o, i) for o, i in zip(outer, block.outputs, strict=True)]
                return self._join(relation, block, JoinKind.SEMI, equal)
            case "ALL":
                return self._all(relation, condition, outer[0], block)
            case "VALUE" if not block.single:
                raise self._many_rows(condition.query)
        return self._join(
            relation, block, JoinKind.SEMI, [self._compare(condition.operator, outer[0], block.outputs[0])]
        )

    def value(self, query: exp.Expr, block: Block) -> tuple[Bound, Block]:
        """A scalar sub-query as a column, and the block that ``attach`` must add to the rows before it is read."""
        if not block.single:
            raise self._many_rows(query)
        if len(block.outputs) != 1:
            message = f"the sub-query must give 1 column, not {_columns(len(block.outputs))}"
            raise self.error(query, "COLUMN_COUNT", message)
        (output,) = block.outputs
        plan, (name,) = with_columns(block.relation.plan, [output], self.names)
        column = Column(name, name, output.type)
        return Bound.of_column(column, query), evolve(block, relation=block.relation.over(plan))

    def attach(self, relation: Relation, block: Block) -> Relation:
        """Every row with the value of the sub-query: NULL where that is empty. The columns in sight stay the same."""
        return relation.over(join(relation, block.relation, JoinKind.LEFT, block.correlated, self.names).plan)

    # -- kinds ------------------------------------------------------------------------------------------------------

    def _exists(self, relation: Relation, block: Block, kind: JoinKind, extra: Sequence[Bound] = ()) -> Relation:
        """With some row of the block or without any. Where no outer column matters, one row stands for all of them."""
        if block.correlated:
            return self._join(relation, block, kind, extra)
        call = AggregateCall("COUNT", self.names.unique("rows"), pa.int64())
        witness = Relation(Aggregate(block.relation.plan, (), (call,)), ())
        return join(relation, witness, kind, extra, self.names)

    def _all(self, relation: Relation, condition: Condition, outer: Bound, block: Block) -> Relation:
        """``x op ALL (…)``: no row for which the comparison is not true; NULL is not true either."""
        inner = block.outputs[0]
        if not outer.nullable and not inner.nullable:
            counter = self._compare(_NEGATED[condition.operator], outer, inner)
        else:
            true = self._compare(condition.operator, outer, inner)
            counter = evolve(true, node=exp.Not(this=exp.Is(this=exp.Paren(this=true.node), expression=exp.true())))
        return self._join(relation, block, JoinKind.ANTI, [counter])

    def _not_in(self, relation: Relation, condition: Condition, outer: Sequence[Bound], block: Block) -> Relation:
        """``x NOT IN (…)``: the block is empty, or x is not NULL, equals no row, and no row is NULL."""
        pairs = list(zip(outer, block.outputs, strict=True))
        equal = [self._compare(exp.EQ, o, i) for o, i in pairs]
        result = self._join(relation, block, JoinKind.ANTI, equal)
        if len(pairs) > 1 and any(o.nullable or i.nullable for o, i in pairs):
            raise self.error(
                condition.node,
                "UNSUPPORTED",
                "NOT IN with several columns is supported only where none of them can be NULL",
                hint="Declare the columns NOT NULL, or write NOT EXISTS with equal columns.",
            )
        (x, y) = pairs[0]
        if y.nullable:
            with_null = evolve(block, relation=block.relation.over(filtered(block.relation.plan, [_is_null(y)])))
            result = self._exists(result, with_null, JoinKind.ANTI)
        if x.nullable:
            result = self._exists(result, block, JoinKind.ANTI, [_is_null(x)])
        return result

    # -- pieces -----------------------------------------------------------------------------------------------------

    def _join(self, relation: Relation, block: Block, kind: JoinKind, predicates: Sequence[Bound]) -> Relation:
        return join(relation, block.relation, kind, [*block.correlated, *predicates], self.names)

    def _compare(self, operator: type[exp.Expr], outer: Bound, inner: Bound) -> Bound:
        left, right = self._binder.comparands(outer, inner)
        node = operator(this=_operand(left.node), expression=_operand(right.node))
        return Bound(node, pa.bool_(), left.nullable or right.nullable, outer.origin)

    def _many_rows(self, query: exp.Expr) -> SqlError:
        return self.error(
            query,
            "SCALAR_SUBQUERY",
            "the sub-query may give more than one row at an instant",
            hint="Aggregate it without GROUP BY, or compare with ANY (…) or ALL (…).",
        )


def at_most_one_row(plan: Plan) -> bool:
    """True when no snapshot of the plan can have more than one row."""
    match plan:
        case Aggregate(keys=()):
            return True
        case Project() | Filter():
            return at_most_one_row(plan.inputs[0])
    return False


def _is_null(bound: Bound) -> Bound:
    node = exp.Is(this=_operand(bound.node), expression=exp.Null())
    return Bound(node, pa.bool_(), False, bound.origin)


def _operand(node: exp.Expr) -> exp.Expr:
    return node.copy() if isinstance(node, (exp.Column, exp.Literal, exp.Paren)) else exp.Paren(this=node.copy())


def _columns(number: int) -> str:
    return "1 column" if number == 1 else f"{number} columns"
