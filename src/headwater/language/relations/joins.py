"""Joins of partial plans: equal keys, conditions of one side pushed below, and what is left over as a residual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Filter, Join, JoinKind, Plan
from headwater.expressions.nodes import TRUE, Call, Expression
from headwater.expressions.rewrite import can_fail, conjunction
from headwater.expressions.rewrite import renamed as with_names
from headwater.expressions.types import common_type
from headwater.language.row_values import equations
from headwater.language.scope import Bound, NameSource, Relation, project, reference

_NULLS_LEFT = (JoinKind.RIGHT, JoinKind.FULL)
_NULLS_RIGHT = (JoinKind.LEFT, JoinKind.FULL)
_PUSH_LEFT = (JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT)
_PUSH_RIGHT = (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI, JoinKind.LEFT)


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that AND connects."""
    if node is None:
        return []
    while isinstance(node, exp.Paren):
        node = node.this
    node = equations(node) or node
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def filtered(plan: Plan, predicates: Iterable[Bound]) -> Plan:
    """The rows where all predicates are true."""
    listed = [p.expression for p in predicates if p.expression != TRUE]
    return Filter(plan, conjunction(listed)) if listed else plan


def join(left: Relation, right: Relation, kind: JoinKind, predicates: Sequence[Bound], names: NameSource) -> Relation:
    """Left and right joined where all predicates are true."""
    ours, theirs = _names(left), _names(right)
    keys: list[tuple[Bound, Bound]] = []
    below_left, below_right, rest = [], [], []
    for predicate in predicates:
        columns = predicate.columns
        if predicate.expression == TRUE:
            continue
        if can_fail(predicate.expression) and not equal_pair(predicate, ours, theirs):
            rest.append(predicate)  # not for rows without a partner
        elif columns <= ours and kind in _PUSH_LEFT:
            below_left.append(predicate)
        elif columns <= theirs and kind in _PUSH_RIGHT:
            below_right.append(predicate)
        elif pair := equal_pair(predicate, ours, theirs):
            keys.append(pair)
        else:
            rest.append(predicate)
    left, right = left.over(filtered(left.plan, below_left)), right.over(filtered(right.plan, below_right))
    left_plan, left_keys = with_columns(left.plan, [k[0] for k in keys], names)
    right_plan, right_keys = with_columns(right.plan, [k[1] for k in keys], names)
    pairs = tuple(dict.fromkeys(zip(left_keys, right_keys, strict=True)))
    plan = Join(left_plan, right_plan, kind, pairs, residual(rest, ours))
    return _result(left, right, kind, plan)


def with_columns(plan: Plan, expressions: Sequence[Bound], names: NameSource) -> tuple[Plan, list[str]]:
    """The plan with a column for every expression (plain columns are there already), and the columns' names."""
    computed: dict[Expression, str] = {}
    for expression in expressions:
        if expression.column is None and expression.expression not in computed:
            computed[expression.expression] = names.unique("expression")
    if computed:
        kept = ((f.name, reference(f)) for f in plan.schema)
        plan = project(plan, [*kept, *((name, expression) for expression, name in computed.items())])
    return plan, [e.column or computed[e.expression] for e in expressions]


def residual(predicates: Sequence[Bound], left: set[str]) -> Expression | None:
    """The predicates over pairs: left columns are called ``l.…``, right ones ``r.…``."""
    if not predicates:
        return None
    whole = conjunction(p.expression for p in predicates)
    return with_names(whole, {name: f"{'l' if name in left else 'r'}.{name}" for name in whole.columns})


def equal_pair(predicate: Bound, ours: set[str], theirs: set[str]) -> tuple[Bound, Bound] | None:
    """The two sides of ``left = right``, brought to one type; None if it is no such condition."""
    sides = equal_sides(predicate, ours, theirs)
    return _one_type(*sides) if sides else None


def equal_sides(predicate: Bound, ours: set[str], theirs: set[str]) -> tuple[Bound, Bound] | None:
    """The two sides of ``left = right`` as they are."""
    match predicate.expression:
        case Call("=", (left, right)):
            first, second = (Bound(side, True, predicate.origin) for side in (left, right))
        case _:
            return None
    if not first.columns or not second.columns:
        return None
    if first.columns <= theirs and second.columns <= ours:
        return second, first
    return (first, second) if first.columns <= ours and second.columns <= theirs else None


def _one_type(left: Bound, right: Bound) -> tuple[Bound, Bound] | None:
    type_ = common_type(left.type, right.type)
    return None if type_ is None else (left.cast(type_), right.cast(type_))


def _result(left: Relation, right: Relation, kind: JoinKind, plan: Plan) -> Relation:
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left.over(plan)
    left_items = tuple(i.nullable() if kind in _NULLS_LEFT else i for i in left.items)
    right_items = tuple(i.nullable() if kind in _NULLS_RIGHT else i for i in right.items)
    return evolve(left, plan=plan, items=left_items + right_items)


def _names(relation: Relation) -> set[str]:
    return set(relation.plan.schema.names)
