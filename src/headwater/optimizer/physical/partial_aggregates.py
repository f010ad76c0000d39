"""Aggregates over sliding windows, with their rows put together where they come in.

A window that moves in slides gives all rows of a slice the same interval: [start, end) of the slides that see it. Rows of
one key and one slice can be put together before they are sent to the key's shard (Krämer 12.3; Li et al., "No Pane, No
Gain"), and again wherever they meet. The aggregate above stays what it is: it reads rows of the same counts and sums.

The rows of a partial aggregate depend on who reads what when, the answer above it does not.
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra import nodes as n
from headwater.algebra.properties import is_chronon
from headwater.operators.aggregates.pre_aggregate import partial_type
from headwater.optimizer.rule import Context, rule

_MOST_CALLS = 60


@rule(
    n.Aggregate,
    law="γ_{g,f}(S) ≐ γ_{g,f'}(partial_{g,f}(S))",
    condition="rows of S share their intervals, as in sliding windows, and are still where they came in;"
    " f is made of COUNT, SUM and AVG whose sums are exact, of MIN and MAX if S is never revised",
    source="Krämer 12.3; Li et al., No Pane, No Gain",
    physical=True,
)
def partial_aggregates(plan: n.Aggregate, context: Context) -> n.Plan | None:
    below = plan.input
    if not _is_linear(below) or not _has_slices(below):
        return None
    revisable = any(isinstance(node, n.Source) and node.revisable for node in below.walk())
    calls: list[n.AggregateCall] = []
    parts: dict[str, n.AggregateCall] = {}
    for call in plan.calls:
        if call.function == "COUNT" and call.argument is None and call.filter is None and not call.distinct:
            calls.append(call)
            continue
        part = _part(call, below, revisable=revisable)
        if part is None or part.output in below.schema.names:
            return None
        parts[part.output] = part
        # A sum that is 0 all over is still a sum, so nothing of the call changes but where its values come from.
        calls.append(evolve(call, argument=part.output, filter=None, distinct=False))
    if len(parts) > _MOST_CALLS:
        return None
    return n.Aggregate(n.PreAggregate(below, plan.keys, tuple(parts.values())), plan.keys, tuple(calls))


def _part(call: n.AggregateCall, below: n.Plan, *, revisable: bool) -> n.AggregateCall | None:
    """What the call needs of the rows; None if they cannot be put together for it.

    Counts and sums are taken back by others of the opposite sign. An extreme is not: what has been put together with a
    larger value is gone, so nothing may be taken back.
    """
    function = None if call.built_in is None else call.built_in.part
    if function is None or (call.distinct and not call.is_deaf):
        return None
    if call.is_extreme and revisable:
        return None
    type_ = partial_type(function, below.schema.field(call.argument).type if call.argument is not None else None)
    if type_ is None:
        return None
    where = f" where {call.filter}" if call.filter is not None else ""
    return n.AggregateCall(
        function, f"{function} {call.argument or '*'}{where}", type_, call.argument, False, call.filter
    )


def _is_linear(plan: n.Plan) -> bool:
    """Are there nothing but operators without state below, so that rows are still where they came in?"""
    match plan:
        case n.Source():
            return True
        case n.Filter() | n.Project() | n.Union() | n.Granularity():
            return all(map(_is_linear, plan.inputs))
        case n.TimeWindow(input=below) | n.HopWindow(input=below):
            return is_chronon(below) and _is_linear(below)
    return False


def _has_slices(plan: n.Plan) -> bool:
    """Do many rows get the same interval?"""
    match plan:
        case n.TimeWindow(slide=slide) if slide > 1:
            return True
        case n.HopWindow(slide=slide) if slide > 1:
            return True
        case n.Granularity(granule=granule) if granule > 1:
            return True
    return any(map(_has_slices, plan.inputs))
