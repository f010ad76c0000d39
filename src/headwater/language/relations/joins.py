"""Joins of partial plans: equal keys, conditions of one side pushed below, and what is left over as a residual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.expressions import can_fail
from headwater.algebra.nodes import Filter, Join, JoinKind, Plan, Scalar
from headwater.language.rendering import column_node, render, user_functions
from headwater.language.scope import Bound, NameSource, Relation, project, reference
from headwater.language.types import common_type, duckdb_name, infer

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
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def filtered(plan: Plan, predicates: Iterable[Bound]) -> Plan:
    """The rows where all predicates are true."""
    listed = [p for p in predicates if not _is_true(p)]
    if not listed:
        return plan
    node = listed[0].node
    for further in listed[1:]:
        node = exp.And(this=_operand(node), expression=_operand(further.node))
    types = {name: t for p in listed for name, t in p.types.items()}
    return Filter(plan, Scalar(render(node), pa.bool_(), tuple(types), user_functions(node)))


def join(left: Relation, right: Relation, kind: JoinKind, predicates: Sequence[Bound], names: NameSource) -> Relation:
    """Left and right joined where all predicates are true."""
    ours, theirs = _names(left), _names(right)
    keys: list[tuple[Bound, Bound]] = []
    below_left, below_right, rest = [], [], []
    for predicate in predicates:
        columns = set(predicate.types)
        if _is_true(predicate):
            continue
        if can_fail(predicate.scalar()) and not equal_pair(predicate, ours, theirs):
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
    computed: dict[str, tuple[str, Scalar]] = {}
    result = []
    for expression in expressions:
        if expression.column is not None:
            result.append(expression.column)
            continue
        sql = expression.sql
        if sql not in computed:
            computed[sql] = names.unique("expression"), expression.scalar()
        result.append(computed[sql][0])
    if computed:
        kept = tuple((f.name, reference(f)) for f in plan.schema)
        plan = project(plan, kept + tuple(computed.values()))
    return plan, result


def residual(predicates: Sequence[Bound], left: set[str]) -> Scalar | None:
    """The predicates over pairs: left columns are called ``l.…``, right ones ``r.…``."""
    if not predicates:
        return None
    nodes = [_over_pairs(p.node, left) for p in predicates]
    node = nodes[0]
    for further in nodes[1:]:
        node = exp.And(this=_operand(node), expression=_operand(further))
    columns = tuple(dict.fromkeys(c.name for c in node.find_all(exp.Column)))
    return Scalar(render(node), pa.bool_(), columns, user_functions(node))


def _over_pairs(node: exp.Expr, left: set[str]) -> exp.Expr:
    def renamed(inner: exp.Expr) -> exp.Expr:
        if not isinstance(inner, exp.Column):
            return inner
        return column_node(f"{'l' if inner.name in left else 'r'}.{inner.name}")

    return node.copy().transform(renamed)


def equal_pair(predicate: Bound, ours: set[str], theirs: set[str]) -> tuple[Bound, Bound] | None:
    """The two sides of ``left = right``, brought to one type; None if it is no such condition."""
    sides = equal_sides(predicate, ours, theirs)
    return _one_type(*sides) if sides else None


def equal_sides(predicate: Bound, ours: set[str], theirs: set[str]) -> tuple[Bound, Bound] | None:
    """The two sides of ``left = right`` as they are."""
    node = predicate.node
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.EQ):
        return None
    first, second = (_side(n, predicate) for n in (node.this, node.expression))
    if not first.types or not second.types:
        return None
    if set(first.types) <= theirs and set(second.types) <= ours:
        first, second = second, first
    elif not (set(first.types) <= ours and set(second.types) <= theirs):
        return None
    return first, second


def _side(node: exp.Expr, predicate: Bound) -> Bound:
    while isinstance(node, exp.Paren):
        node = node.this
    type_ = node.meta.get("type")
    if type_ is None:
        # The binder has typed the whole predicate already, so this cannot fail.
        columns = {c.name: c.meta["type"] for c in node.find_all(exp.Column)}
        type_, _ = infer(render(node), tuple(columns.items()))
    return Bound(node, type_, True, predicate.origin)


def _one_type(left: Bound, right: Bound) -> tuple[Bound, Bound] | None:
    type_ = common_type(left.type, right.type)
    if type_ is None:
        return None
    spelled = duckdb_name(type_)
    return left.cast(type_, spelled), right.cast(type_, spelled)


def _result(left: Relation, right: Relation, kind: JoinKind, plan: Plan) -> Relation:
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left.over(plan)
    left_items = tuple(i.nullable() if kind in _NULLS_LEFT else i for i in left.items)
    right_items = tuple(i.nullable() if kind in _NULLS_RIGHT else i for i in right.items)
    return evolve(left, plan=plan, items=left_items + right_items)


def _names(relation: Relation) -> set[str]:
    return set(relation.plan.schema.names)


def _is_true(predicate: Bound) -> bool:
    return isinstance(predicate.node, exp.Boolean) and bool(predicate.node.this)


def _operand(node: exp.Expr) -> exp.Expr:
    """An operand of AND."""
    return exp.Paren(this=node) if isinstance(node, exp.Or) else node
