"""op(ς(S)) ≐ op(S): pieces matter to no operator, only to who looks at the elements of the answer (Rstream)."""

from __future__ import annotations

from headwater.algebra import nodes as n
from headwater.algebra.properties import is_chronon
from headwater.optimizer.rule import Context, rule


@rule(
    *(kind for kind in n.NODES if kind.hides_pieces),
    law="op(ς(S)) ≐ op(S), ς(S) ≐ S",
    condition="the second where S has only chronons; a window splits what it needs itself (12.3.2)",
    source="Krämer 12.3, lemma 12.1",
)
def drop_split(plan: n.Plan, context: Context) -> n.Plan | None:
    if isinstance(plan, n.Split) and is_chronon(plan.input):
        return plan.input
    if isinstance(plan, n.Split) and isinstance(plan.input, n.Split):
        return n.Split(plan.input.input, min(plan.length, plan.input.length))
    if isinstance(plan, n.Split):
        return None
    changed = plan.with_new_inputs(_whole(child) for child in plan.inputs)
    return None if changed is plan else changed


def _whole(plan: n.Plan) -> n.Plan:
    return plan.input if isinstance(plan, n.Split) else plan
