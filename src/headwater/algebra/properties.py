"""What is known of a plan's output without running it (Krämer table 12.1)."""

from __future__ import annotations

from headwater.algebra import nodes as n


def is_chronon(plan: n.Plan) -> bool:
    """Is every output element valid for exactly one instant?

    Stricter than table 12.1: our sweeps (aggregates, DISTINCT, differences) join equal neighbours into longer intervals.
    """
    match plan:
        case n.Source(chronons=chronons):
            return chronons
        case n.Istream() | n.Dstream() | n.ToPositiveNegative():
            return True
        case n.Split(length=length):
            # an element that never ends leaves an uncut tail at the end of time
            return length == 1 and is_chronon(plan.input)
        case n.Filter() | n.Project():
            return is_chronon(plan.inputs[0])
        case n.Union():
            return is_chronon(plan.left) and is_chronon(plan.right)
        case n.Join(kind=n.JoinKind.INNER):
            return is_chronon(plan.left) or is_chronon(plan.right)
        case n.TimeWindow(size=size, slide=slide):
            return size == 1 and slide == 1 and is_chronon(plan.input)
        case _:
            return False
