"""(S1 ⋈ S2) ⋈ S3 ≐ S1 ⋈ (S2 ⋈ S3), S1 ⋈ S2 ≐ S2 ⋈ S1: inner joins in the order that costs least.

Neighbouring joins, also with projections onto columns between them, become a graph of relations and conditions; the order
comes from ``optimizer.join_order``, and every condition is tested as soon as its columns are there.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from attrs import frozen

from headwater.algebra.nodes import Join, JoinKind, Plan, Project
from headwater.expressions.nodes import Call, Expression
from headwater.expressions.rewrite import can_fail, column, conjunction, conjuncts, equal_columns, plain_column, renamed
from headwater.model.schema import Field
from headwater.optimizer.estimation.joins import key_selectivity
from headwater.optimizer.estimation.selectivity import selectivity
from headwater.optimizer.join_order import Predicate, Relation, Tree, order_joins
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.rules.narrow_join import narrow_join


@frozen
class _Graph:
    relations: list[Plan]
    conditions: list[Expression]
    """Over the columns of all relations by their own names."""


@rule(
    Join,
    law="(S1 ⋈ S2) ⋈ S3 ≐ S1 ⋈ (S2 ⋈ S3), S1 ⋈ S2 ≐ S2 ⋈ S1",
    condition="inner joins of at least three relations; no column name appears twice",
    source="Krämer 10.4, Golab 5.3.2",
    choice=True,
)
def join_order(plan: Join, context: Context) -> Plan | None:
    graph = _Graph([], [])
    if plan.kind is not JoinKind.INNER:
        return None
    _collect(plan, graph)
    names = [name.casefold() for r in graph.relations for name in r.schema.names]
    if len(graph.relations) < 3 or len(set(names)) != len(names):
        return None
    owner = {name: i for i, r in enumerate(graph.relations) for name in r.schema.names}
    tree = order_joins(
        [Relation(i, context.estimate(r)) for i, r in enumerate(graph.relations)],
        [p for c in graph.conditions if (p := _predicate(c, owner, graph.relations, context)) is not None],
    )
    built = _build(tree, graph, list(graph.conditions))
    result = _narrowed(Project(built, tuple((f.name, column(f)) for f in plan.schema)), context)
    changed = result.input if result.schema == result.input.schema else result
    return None if changed == plan else changed


def _collect(plan: Plan, graph: _Graph) -> None:
    join = plan.input if isinstance(plan, Project) and _only_drops(plan) else plan
    if not isinstance(join, Join) or join.kind is not JoinKind.INNER:
        graph.relations.append(plan)
        return
    _collect(join.left, graph)
    _collect(join.right, graph)
    fields = join.left.schema, join.right.schema
    graph.conditions.extend(_equation(fields[0].field(a), fields[1].field(b)) for a, b in join.keys)
    if join.residual is not None:
        own = {c: c[2:] for c in join.residual.columns}
        graph.conditions.extend(renamed(part, own) for part in conjuncts(join.residual))


def _only_drops(plan: Project) -> bool:
    return all(plain_column(s) == name for name, s in plan.expressions)


def _equation(left: Field, right: Field) -> Expression:
    return Call("=", (column(left), column(right)), pa.bool_())


def _predicate(
    condition: Expression, owner: dict[str, int], relations: list[Plan], context: Context
) -> Predicate | None:
    touched = frozenset(owner[c] for c in condition.columns)
    if len(touched) < 2:
        return None
    columns = {c: context.estimate(relations[owner[c]]).columns[c] for c in condition.columns}
    pair = equal_columns(condition)
    chance = key_selectivity(*(columns[c] for c in pair)) if pair else selectivity(condition, columns.get)
    return Predicate(touched, chance)


def _build(tree: Tree, graph: _Graph, waiting: list[Expression], *, top: bool = True) -> Plan:
    """The joins of a tree; a condition goes to the first join that has all of its columns, to the last if it can fail."""
    if isinstance(tree, int):
        return graph.relations[tree]
    left, right = (_build(half, graph, waiting, top=False) for half in tree)
    ours, theirs = set(left.schema.names), set(right.schema.names)
    ready = [c for c in waiting if ours | theirs >= set(c.columns) and (top or not can_fail(c))]
    waiting[:] = [c for c in waiting if c not in ready]
    keys, rest = [], []
    for condition in ready:
        pair = equal_columns(condition)
        if pair and (pair[0] in ours) != (pair[1] in ours):
            keys.append(pair if pair[0] in ours else pair[::-1])
        else:
            rest.append(renamed(condition, {c: f"{'l' if c in ours else 'r'}.{c}" for c in condition.columns}))
    return Join(left, right, JoinKind.INNER, _each_once(keys), conjunction(rest) if rest else None)


def _each_once(keys: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(keys))


def _narrowed(plan: Project, context: Context) -> Project:
    """Without the columns that the joins above do not read, all the way down."""
    narrow = narrow_join(plan, context) or plan
    assert isinstance(narrow, Project)
    join = narrow.input
    if not isinstance(join, Join):
        return narrow
    inputs = (
        _narrowed(side, context) if isinstance(side, Project) and isinstance(side.input, Join) else side
        for side in join.inputs
    )
    return Project(join.with_new_inputs(inputs), narrow.expressions)
