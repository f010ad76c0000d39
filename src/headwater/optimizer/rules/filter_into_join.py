"""σ_p(S1 ⋈ S2): conditions of one side go to that side, others become keys or join the residual.

A condition on join keys holds for both sides, so it goes to both of them.
"""

from __future__ import annotations

from attrs import evolve, frozen

from headwater.algebra.nodes import Filter, Join, JoinKind, Plan
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import can_fail, conjunction, conjuncts, equal_columns, renamed
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered

_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
"""Every row of the answer has a row of the left side, so what is not wanted there can go before."""
_RIGHT = (JoinKind.INNER, JoinKind.RIGHT)


@frozen
class _Sorted:
    left: list[Expression]
    right: list[Expression]
    pairs: list[tuple[str, str]]
    pair: list[Expression]
    rest: list[Expression]


@rule(
    Filter,
    law="σ_{p∧q∧r}(S1 ⋈_θ S2) ≐ σ_p(S1) ⋈_{θ∧r} σ_q(S2)",
    condition="p reads S1 only and S1 is not filled with NULLs, q reads S2 only likewise; r only in an inner join; none of "
    "them can fail",
    source="Krämer 10.3.1 (checked)",
)
def filter_into_join(plan: Filter, context: Context) -> Plan | None:
    join = plan.input
    if not isinstance(join, Join):
        return None
    found = _sort(join, conjuncts(plan.predicate))
    if len(found.rest) == len(conjuncts(plan.predicate)):
        return None
    to_left, to_right = dict(join.keys), {b: a for a, b in join.keys}
    right = [*found.right, *(renamed(p, to_left) for p in found.left if to_left.keys() >= set(p.columns))]
    left = [*found.left]
    if join.kind is JoinKind.INNER:
        left += [renamed(p, to_right) for p in found.right if to_right.keys() >= set(p.columns)]
    residual = [*(conjuncts(join.residual) if join.residual else ()), *found.pair]
    moved = evolve(
        join,
        left=filtered(join.left, left),
        right=filtered(join.right, right),
        keys=tuple(dict.fromkeys((*join.keys, *found.pairs))),
        residual=conjunction(residual) if residual else None,
    )
    return filtered(moved, found.rest)


def _sort(join: Join, predicates: list[Expression]) -> _Sorted:
    ours, theirs = set(join.left.schema.names), set(join.right.schema.names)
    found = _Sorted([], [], [], [], [])
    for predicate in predicates:
        read = set(predicate.columns)
        if not read or can_fail(predicate):
            found.rest.append(predicate)
        elif read <= ours and join.kind in _LEFT:
            found.left.append(predicate)
        elif read <= theirs and join.kind in _RIGHT:
            found.right.append(predicate)
        elif join.kind is JoinKind.INNER:
            _add_pair(join, predicate, found)
        else:
            found.rest.append(predicate)
    return found


def _add_pair(join: Join, predicate: Expression, found: _Sorted) -> None:
    ours = set(join.left.schema.names)
    equal = equal_columns(predicate)
    if equal is not None:
        a, b = equal if equal[0] in ours else equal[::-1]
        if join.left.schema.field(a).type == join.right.schema.field(b).type:
            found.pairs.append((a, b))
            return
    found.pair.append(renamed(predicate, {c: f"{'l' if c in ours else 'r'}.{c}" for c in predicate.columns}))
