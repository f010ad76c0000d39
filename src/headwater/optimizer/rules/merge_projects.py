"""μ_f(μ_g(S)) ≐ μ_{f∘g}(S), and a projection onto the columns that there are is none."""

from __future__ import annotations

from collections import Counter

from headwater.algebra.nodes import Plan, Project
from headwater.expressions.nodes import Column
from headwater.expressions.rewrite import plain_column
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import through


@rule(
    Project,
    law="μ_f(μ_g(S)) ≐ μ_{f∘g}(S), μ_id(S) ≐ S",
    condition="nothing is computed more often than before",
    source="Krämer 8.2",
)
def merge_projects(plan: Project, context: Context) -> Plan | None:
    if [(name, plain_column(s)) for name, s in plan.expressions] == [(n, n) for n in plan.input.schema.names]:
        return plan.input
    below = plan.input
    if not isinstance(below, Project) or _computes_twice(plan, below):
        return None
    return Project(below.input, tuple((name, through(s, below)) for name, s in plan.expressions))


def _computes_twice(plan: Project, below: Project) -> bool:
    """Is something that the lower projection computes read more than once?"""
    used = Counter(e.name for _, s in plan.expressions for e in s.walk() if isinstance(e, Column))
    computed = [name for name, s in below.expressions if plain_column(s) is None and s.columns]
    return any(used[name] > 1 for name in computed)
