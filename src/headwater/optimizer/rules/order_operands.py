"""∪, ∩ and ∪max are commutative and associative: in one order, equal sub-plans of several queries are found equal."""

from __future__ import annotations

from functools import lru_cache, reduce

from attrs import evolve

from headwater.algebra.nodes import Plan, SetKind, SetOperation, Union
from headwater.algebra.plan_text import print_plan
from headwater.optimizer.rule import Context, rule

_SYMMETRIC = (SetKind.INTERSECT_ALL, SetKind.INTERSECT, SetKind.MAX_UNION)


@rule(
    Union,
    SetOperation,
    law="S1 ∪ S2 ≐ S2 ∪ S1, (S1 ∪ S2) ∪ S3 ≐ S1 ∪ (S2 ∪ S3), the same for ∩ and ∪max",
    condition="the sides have the same column names",
    source="Krämer 10.3.1 (checked)",
)
def order_operands(plan: Union | SetOperation, context: Context) -> Plan | None:
    if isinstance(plan, SetOperation) and plan.kind not in _SYMMETRIC:
        return None
    operands = list(_operands(plan, plan))
    if any(o.schema.names != plan.schema.names for o in operands):
        return None
    operands.sort(key=_text)
    result: Plan
    if isinstance(plan, Union):
        result = Union(tuple(operands))
    else:
        result = reduce(lambda left, right: evolve(plan, left=left, right=right), operands)
    return None if result == plan else result


@lru_cache(maxsize=1024)
def _text(plan: Plan) -> str:
    return print_plan(plan)


def _operands(plan: Plan, like: Union | SetOperation) -> list[Plan]:
    if type(plan) is not type(like) or getattr(plan, "kind", None) != getattr(like, "kind", None):
        return [plan]
    return [operand for child in plan.inputs for operand in _operands(child, like)]
