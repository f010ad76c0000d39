"""S1 ⋈_{θ∧p∧q} S2 ≐ σ_p(S1) ⋈_θ σ_q(S2): conditions of a join that read one side only go to that side."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Join, JoinKind, Plan
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import can_fail, conjunction, conjuncts, equal_columns, renamed
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered

_LEFT = (JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT)
"""Where a left row without a partner leaves no trace."""
_RIGHT = (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI, JoinKind.LEFT)


@rule(
    Join,
    law="S1 ⋈_{θ∧p∧q} S2 ≐ σ_p(S1) ⋈_θ σ_q(S2)",
    condition="p reads S1 only, q reads S2 only, a row without a partner leaves no trace, and they cannot fail",
    source="Krämer 10.3.1 (checked)",
)
def residual_to_sides(plan: Join, context: Context) -> Plan | None:
    if plan.residual is None:
        return None
    ours = {f"l.{name}": name for name in plan.left.schema.names}
    theirs = {f"r.{name}": name for name in plan.right.schema.names}
    left: list[Expression] = []
    right: list[Expression] = []
    rest: list[Expression] = []
    keys: list[tuple[str, str]] = []
    for part in conjuncts(plan.residual):
        if can_fail(part):
            rest.append(part)
        elif part.columns and ours.keys() >= set(part.columns) and plan.kind in _LEFT:
            left.append(renamed(part, ours))
        elif part.columns and theirs.keys() >= set(part.columns) and plan.kind in _RIGHT:
            right.append(renamed(part, theirs))
        elif pair := _key(plan, part, ours, theirs):
            keys.append(pair)
        else:
            rest.append(part)
    if not (left or right or keys):
        return None
    return evolve(
        plan,
        left=filtered(plan.left, left),
        right=filtered(plan.right, right),
        keys=tuple(dict.fromkeys((*plan.keys, *keys))),
        residual=conjunction(rest) if rest else None,
    )


def _key(plan: Join, part: Expression, ours: dict[str, str], theirs: dict[str, str]) -> tuple[str, str] | None:
    """The key that an equation of two columns of the same type is."""
    equal = equal_columns(part)
    if equal is None:
        return None
    a, b = equal if equal[0] in ours else equal[::-1]
    if a not in ours or b not in theirs:
        return None
    same = plan.left.schema.field(ours[a]).type == plan.right.schema.field(theirs[b]).type
    return (ours[a], theirs[b]) if same else None
