"""π_A(υ_a(S)) ≐ π_A(υ_a(π_{A,a}(S))): of a row only the columns are copied that somebody reads."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Filter, Plan, Project, Unnest
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import narrowed, reads


@rule(
    Project,
    law="π_A(σ_p(υ_a(S))) ≐ π_A(σ_p(υ_a(π_{A,a}(S))))",
    condition="A holds what is read above; with or without σ_p; the place of an item is made where it is read",
    source="Krämer 10.3.1, for a node of ours",
)
def narrow_unnest(plan: Project, context: Context) -> Plan | None:
    match plan.input:
        case Unnest() as unnest:
            narrow = _narrowed(unnest, reads(plan))
            return None if narrow is unnest else evolve(plan, input=narrow)
        case Filter(input=Unnest() as unnest, predicate=predicate) as kept:
            narrow = _narrowed(unnest, reads(plan) | set(predicate.columns))
            return None if narrow is unnest else evolve(plan, input=evolve(kept, input=narrow))
    return None


def _narrowed(unnest: Unnest, read: set[str]) -> Unnest:
    place = unnest.place if unnest.place in read else None
    below = narrowed(unnest.input, read | {unnest.array})
    return unnest if below is unnest.input and place == unnest.place else evolve(unnest, input=below, place=place)
