"""σ_p(ω_{g,N}(S)) ≐ ω_{g,N}(σ_p(S)) where p reads only what the window is partitioned by.

Whole partitions are kept or dropped, so no window counts other rows than before. Any other filter changes which rows are
the last ones (a stated non-rule).
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Filter, Plan, RowWindow
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered, split_by


@rule(
    Filter,
    law="σ_p(ω_{g,N}(S)) ≐ ω_{g,N}(σ_p(S))",
    condition="p reads grouping attributes only",
    source="Krämer 10.3.2 (checked)",
)
def filter_through_row_window(plan: Filter, context: Context) -> Plan | None:
    below = plan.input
    if not isinstance(below, RowWindow):
        return None
    inside, outside = split_by(plan.predicate, below.partition)
    return filtered(evolve(below, input=filtered(below.input, inside)), outside) if inside else None
