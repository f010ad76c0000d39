"""op(S) ≐ op(ζ(S)), in either direction: fewer, longer elements before a join or a sweep, where that pays.

A projection of an aggregate often repeats the value that was there before: Q4 of the thesis, Example 12.1.
"""

from __future__ import annotations

from headwater.algebra import nodes as n
from headwater.optimizer.rule import Context, rule

_FRAGMENTED = (n.Project, n.Filter)
_SWEPT = (n.Aggregate, n.Distinct, n.SetOperation)


@rule(
    n.Join,
    n.Aggregate,
    n.SetOperation,
    law="op(S) ≐ op(ζ(S))",
    condition="op is snapshot-reducible; S is a projection of a grouping, difference or δ",
    source="Krämer lemma 12.1, Example 12.1",
    choice=True,
)
def place_coalesce(plan: n.Plan, context: Context) -> n.Plan | None:
    for place, child in enumerate(plan.inputs):
        if isinstance(child, n.Coalesce):
            return _with(plan, place, child.input)
        if _is_fragmented(child):
            return _with(plan, place, n.Coalesce(child))
    return None


def _with(plan: n.Plan, place: int, child: n.Plan) -> n.Plan:
    inputs = list(plan.inputs)
    inputs[place] = child
    return plan.with_inputs(*inputs)


def _is_fragmented(plan: n.Plan) -> bool:
    """Does it drop columns of a result that changes whenever one of its columns does?"""
    if not isinstance(plan, n.Project):
        return False
    below = plan.input
    while isinstance(below, _FRAGMENTED):
        below = below.inputs[0]
    return isinstance(below, _SWEPT)
