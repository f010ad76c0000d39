"""ζ(S) ≐ S where S has no equal neighbours: sweeps join them already. ζ(ζ(S)) and ζ(ς(S)) are one ζ."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra import nodes as n
from headwater.model.time import INFINITY
from headwater.optimizer.rule import Context, rule

_COALESCED = (n.Distinct, n.Aggregate, n.SetOperation)


@rule(
    n.Coalesce,
    law="ζ(S) ≐ S, ζ_l(ζ_m(S)) ≐ ζ_l(S)",
    condition="ζ without a limit; S is the result of δ, γ or a set operation, or a coalesce itself",
    source="Krämer 12.2",
)
def drop_coalesce(plan: n.Coalesce, context: Context) -> n.Plan | None:
    if isinstance(plan.input, n.Coalesce | n.Split):
        return evolve(plan, input=plan.input.input)
    return plan.input if plan.longest == INFINITY and isinstance(plan.input, _COALESCED) else None
