"""μ_f(ω_N(S)) ≐ ω_N(μ_f(S)) and μ_f(ω_{g,N}(S)) ≐ ω_{g,N}(μ_f(S)).

The laws assume at most one row at an instant (in a group). Here rows of one instant are taken in the order of their
values, so f must not change that order: either there is at most one row, or f begins with all the columns as they are.
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Plan, Project, RowWindow
from headwater.algebra.properties import has_key
from headwater.expressions.rewrite import plain_column
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import kept


@rule(
    Project,
    law="μ_f(ω_{g,N}(S)) ≐ ω_{g,N}(μ_f(S))",
    condition="f keeps the grouping attributes, and the order of the rows of one instant in a group",
    source="Krämer 10.11, 10.12",
    choice=True,
)
def project_through_row_window(plan: Project, context: Context) -> Plan | None:
    window = plan.input
    if not isinstance(window, RowWindow):
        return None
    names = kept(plan)
    if not names.keys() >= set(window.partition):
        return None
    columns = window.schema.names
    first = [plain_column(s) for _, s in plan.expressions[: len(columns)]]
    if first != list(columns) and not has_key(window.input, window.partition):
        return None
    partition = tuple(names[c] for c in window.partition)
    return evolve(window, input=evolve(plan, input=window.input), partition=partition)
