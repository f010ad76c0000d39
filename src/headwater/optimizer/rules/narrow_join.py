"""π_A(S1 ⋈_θ S2) ≐ π_A(π_{A1}(S1) ⋈_θ π_{A2}(S2)): a join keeps only the columns that somebody reads."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Join, JoinKind, Plan, Project
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import narrowed, reads


@rule(
    Project,
    Join,
    law="π_A(S1 ⋈_θ S2) ≐ π_A(π_{A1}(S1) ⋈_θ π_{A2}(S2))",
    condition="A1 and A2 hold what A and θ read; the right side of ⋉ and ▷ is read by θ only",
    source="Krämer 10.3.1, after SJS01",
)
def narrow_join(plan: Project | Join, context: Context) -> Plan | None:
    if isinstance(plan, Join):
        if plan.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            return None
        return _narrowed(plan, set(plan.left.schema.names))
    join = plan.input
    if not isinstance(join, Join):
        return None
    narrow = _narrowed(join, reads(plan))
    return evolve(plan, input=narrow) if narrow is not None else None


def _narrowed(join: Join, read: set[str]) -> Join | None:
    residual = set(join.residual.columns) if join.residual else set()
    ours = read | {a for a, _ in join.keys} | {c.removeprefix("l.") for c in residual if c.startswith("l.")}
    theirs = {b for _, b in join.keys} | {c.removeprefix("r.") for c in residual if c.startswith("r.")}
    if join.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        theirs |= read
    left, right = (
        narrowed(join.left, _at_least_one(join.left, ours)),
        narrowed(join.right, _at_least_one(join.right, theirs)),
    )
    return None if left is join.left and right is join.right else evolve(join, left=left, right=right)


def _at_least_one(side: Plan, names: set[str]) -> set[str]:
    """A row needs a column, also if only its presence counts: the first one."""
    return names if names & set(side.schema.names) else {side.schema.names[0]}
