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
    law="σ_p(op(S1, …, Sn)) ≐ op(σ_p(S1), …, σ_p(Sn)), σ_p(μ_f(S)) ≐ μ_f(σ_{p∘f}(S))",
    condition="op is ∪, −, ∩, ∪max, δ, ω, hop, Γ, ς, ζ, a sample, a stamp, Istream or Dstream, and p reads columns that the "
    "inputs have; over υ those of the row, not the item; over γ, top, ROWS and session windows only what they group by; "
    "over μ_f no result of a user's function, which would run twice; over −, ∩, ∪max, υ p cannot fail for rows that are "
    "dropped there",
    source="Krämer 10.3.1, 10.3.2 (checked), 10.5, 10.8, 17.1, lemma 12.1; for top, hop, session windows, Γ, samples, "
    "stamps, Istream, Dstream: ours",
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
