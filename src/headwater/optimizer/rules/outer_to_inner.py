"""σ_p(S1 ⟕ S2) ≐ σ_p(S1 ⋈ S2) where p is not true of a row filled with NULLs."""

from __future__ import annotations

import pyarrow as pa
from attrs import evolve

from headwater.algebra.nodes import Filter, Join, JoinKind, Plan
from headwater.expressions.constants import value
from headwater.expressions.nodes import Cast, Expression, Literal
from headwater.expressions.rewrite import conjuncts, over
from headwater.optimizer.rule import Context, rule

_WITHOUT_LEFT_NULLS = {JoinKind.RIGHT: JoinKind.INNER, JoinKind.FULL: JoinKind.LEFT}
_WITHOUT_RIGHT_NULLS = {JoinKind.LEFT: JoinKind.INNER, JoinKind.FULL: JoinKind.RIGHT}


@rule(
    Filter,
    law="σ_p(S1 ⟕ S2) ≐ σ_p(S1 ⋈ S2)",
    condition="p is false or NULL where all columns of S2 are NULL",
    source="ours: snapshot-reducible, so the relational law holds (Krämer lemma 10.2)",
)
def outer_to_inner(plan: Filter, context: Context) -> Plan | None:
    join = plan.input
    if not isinstance(join, Join):
        return None
    kind = join.kind
    parts = [p for p in conjuncts(plan.predicate) if not p.functions]
    if kind in _WITHOUT_RIGHT_NULLS and any(_rejects_nulls(p, join.right) for p in parts):
        kind = _WITHOUT_RIGHT_NULLS[kind]
    if kind in _WITHOUT_LEFT_NULLS and any(_rejects_nulls(p, join.left) for p in parts):
        kind = _WITHOUT_LEFT_NULLS[kind]
    return None if kind is join.kind else evolve(plan, input=evolve(join, kind=kind))


def _rejects_nulls(predicate: Expression, side: Plan) -> bool:
    """Asked of DuckDB, for conditions that read this side only."""
    if not predicate.columns or not set(side.schema.names).issuperset(predicate.columns):
        return False
    nulls = {c: Cast(Literal(None, pa.null()), side.schema.field(c).type) for c in predicate.columns}
    known = value(over(predicate, nulls))
    return known is not None and not known.value
