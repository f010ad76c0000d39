"""What the lowering must know of a plan."""

from __future__ import annotations

from headwater.algebra import nodes as n
from headwater.algebra.properties import is_chronon
from headwater.model.time import INFINITY


def remembers_nothing(plan: n.Plan, *, late: bool = False, repaired: bool = False) -> bool:
    """Is every operator of it stateless? Then it serves all queries, whenever they began.

    Late: what stands in a relation is handed to one that begins later. Repaired: what stands right above the sources does
    not count.
    """
    match plan:
        case n.Source(revisable=revisable, unordered=unordered, checked=checked, events=events):
            return repaired or not (unordered or checked or events or (late and revisable))
        case n.Filter() | n.Project() | n.Union() | n.Granularity() | n.PreAggregate():
            return all(remembers_nothing(child, late=late, repaired=repaired) for child in plan.inputs)
        case n.TimeWindow(input=below) | n.HopWindow(input=below) | n.Stamp(input=below):
            return is_chronon(below) and remembers_nothing(below, late=late, repaired=repaired)
    return False


def is_revisable(plan: n.Plan) -> bool:
    """May a stream that it reads change what it said?"""
    return any(isinstance(node, n.Source) and node.revisable for node in plan.walk())


def delay_of(plan: n.Plan) -> int:
    """How long after the last row of its streams something of a plan may still begin."""
    found: dict[n.Plan, int] = {}
    for node in plan.walk():
        own = 0
        match node:
            case n.TimeWindow(size=size, slide=slide):
                own = slide - 1 + (0 if size == INFINITY else size)
            case n.HopWindow(size=size, slide=slide):
                own = size + slide
            case n.SessionWindow(gap=gap):
                own = gap
            case n.Granularity(granule=step) | n.Sample(period=step):
                own = step - 1
        found[node] = own + max((found[child] for child in node.inputs), default=0)
    return found[plan]


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
