"""Columns that are found by their names, in the order of these: it says nothing of how streams are declared."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra import nodes as n
from headwater.optimizer.rule import Context, rule


@rule(
    n.Project,
    n.Aggregate,
    law="op(π_{B,A}(S)) ≐ op(π_{A,B}(S))",
    condition="op finds columns by their names; only σ and ⋈ lie between",
    source="ours: so that the state of a query does not depend on the order of declared columns",
    physical=True,
)
def order_columns(plan: n.Project | n.Aggregate, context: Context) -> n.Plan | None:
    changed = plan.with_new_inputs(map(_sorted, plan.inputs))
    return None if changed is plan else changed


def _sorted(plan: n.Plan) -> n.Plan:
    """For a reader that goes by names."""
    match plan:
        case n.Project(expressions=expressions):
            by_name = tuple(sorted(expressions, key=lambda named: named[0]))
            return plan if by_name == expressions else evolve(plan, expressions=by_name)
        case n.Filter() | n.Join():
            return plan.with_new_inputs(map(_sorted, plan.inputs))
    return plan
