"""σ_p(op(S1, …, Sn)) ≐ op(σ_{p1}(S1), …, σ_{pn}(Sn)): rows are dropped before anything is done with them.

Each node says which of its columns a filter may use to pass it (``Plan.filter_may_use``), and what they are over the
columns of each input (``Plan.below``): of a projection the expressions, of groups the keys only.
"""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Plan
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import can_fail, over, plain_column
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered, split_by


@rule(
    Filter,
    law="σ_p(op(S1, …, Sn)) ≐ op(σ_{p∘f1}(S1), …, σ_{p∘fn}(Sn)) for μ_f, ∪, −, ∩, δ, γ, windows, top, Γ, ς, ζ, samples, "
    "Istream, Dstream",
    condition="p reads only: grouping attributes, of γ, top, ROWS and session windows; columns of S, of hop windows and "
    "stamps; no result of a function of the user's, of μ_f; and of −, ∩ p cannot fail",
    source="Krämer 10.3.1, 10.3.2 (checked), 10.5, 10.8, 17.1, lemma 12.1; top, hop and session windows, samples, Γ, "
    "Istream, Dstream: ours",
)
def push_down_filter(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    usable = below.filter_may_use()
    if not usable or (below.filter_must_not_fail and can_fail(plan.predicate)):
        return None
    inside, outside = [plan.predicate], []
    if len(usable) < len(below.schema):
        inside, outside = split_by(plan.predicate, usable)
    if not inside:
        return None
    moved = (filtered(child, [_over(p, below, i) for p in inside]) for i, child in enumerate(below.inputs))
    return filtered(below.with_inputs(*moved), outside)


def _over(predicate: Expression, plan: Plan, port: int) -> Expression:
    """The condition over the columns of one of the node's inputs."""
    columns = {name: plan.below(name, port) for name in predicate.columns}
    if all(plain_column(scalar) == name for name, scalar in columns.items()):
        return predicate
    return over(predicate, columns)
