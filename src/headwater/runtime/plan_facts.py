"""What the lowering must know of a plan."""

from __future__ import annotations

from headwater.algebra import nodes as n
from headwater.algebra.properties import properties


def remembers_nothing(plan: n.Plan, *, late: bool = False, repaired: bool = False) -> bool:
    """Is every operator of it stateless? Then it serves all queries, whenever they began.

    Late: what stands in a relation is handed to one that begins later. Repaired: what stands right above the sources does
    not count.
    """
    if isinstance(plan, n.Source):
        return repaired or not (plan.unordered or plan.checked or plan.events or (late and plan.revisable))
    if not properties(plan).stateless:
        return False
    return all(remembers_nothing(child, late=late, repaired=repaired) for child in plan.inputs)


def is_revisable(plan: n.Plan) -> bool:
    """May a stream that it reads change what it said?"""
    return any(isinstance(node, n.Source) and node.revisable for node in plan.walk())


def delay_of(plan: n.Plan) -> int:
    """How long after the last row of its streams something of a plan may still begin."""
    delays: dict[n.Plan, int] = {}
    for node in plan.walk():
        delays[node] = node.delay + max((delays[child] for child in node.inputs), default=0)
    return delays[plan]


def shows_windows(plan: n.Plan) -> bool:
    """Does it show, from one end of windows to the next, what is below it for an instant at each end (``early_windows``)?

    Then what is below is over one instant after it began, before the next window can become final: it may well be held back
    until then, and comes with both ends.
    """
    return isinstance(plan, n.Granularity) and _at_window_ends(plan.input)


def _at_window_ends(plan: n.Plan) -> bool:
    if isinstance(plan, n.HopWindow):
        return plan.lifetime == 1
    return bool(plan.inputs) and all(map(_at_window_ends, plan.inputs))
