"""σ_{n≤k}(top_∞(S)) ≐ top_k(S) where n is the row's number: rows that nobody sees need not be numbered."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Constant, Filter, Plan, TopK
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import compared_with_number, conjuncts
from headwater.optimizer.rule import Context, rule
from headwater.optimizer.scalars import filtered


@rule(
    Filter,
    law="σ_{n≤k}(top_m(S)) ≐ top_{min(k,m)}(S)",
    condition="n is the rank of the top operator, which has no offset; n < k and n = 1 likewise",
    source="ours",
)
def limit_from_rank(plan: Filter, context: Context) -> Plan | None:
    top = plan.input
    if not isinstance(top, TopK) or top.rank is None or top.offset:
        return None
    limit, rest = top.limit, []
    for part in conjuncts(plan.predicate):
        most = _most(part, top.rank)
        if most is None:
            rest.append(part)
        else:
            limit = min(limit, most)
    if len(rest) == len(conjuncts(plan.predicate)):
        return None
    return filtered(evolve(top, limit=limit), rest) if limit > 0 else Constant(plan.schema)


def _most(part: Expression, rank: str) -> int | None:
    """The largest rank that the condition allows, if that is all it says."""
    found = compared_with_number(part)
    if found is None or found[0] != rank:
        return None
    match found[1:]:
        case "<=", number:
            return number
        case "<", number:
            return number - 1
        case "=", 1:
            return 1
    return None
