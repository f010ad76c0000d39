"""Answers over TUMBLE and HOP windows as soon as a window has closed, not one slide later.

A window that ended at e is shown during [e, e + slide), so an aggregate over it has an open end there: one that emits only
what is final would wait for the next window to close. But between two ends nothing changes. At any instant one window is
shown, the one that ended last, so that

    hop(S) ≐ Γ(hop₁(S))     hop₁: each window for one instant, at its end; Γ: what was valid at the last end, until the next
    op(Γ(S)) ≐ Γ(op(S))     for every snapshot-reducible operator (Krämer 10.2): Γ shows the snapshot of another instant

and op(hop(S)) ≐ Γ(op(hop₁(S))). The operator works on single instants, which are over one instant after the window's end;
Γ has no state. Several operators over windows that end together, such as a join of two counts, become one Γ above them all.

This is for the plan that runs, after the optimizer: the snapshots are the same, only what is final earlier differs.
"""

from __future__ import annotations

from typing import NamedTuple

from attrs import evolve

from headwater.algebra import nodes as n

_WAITING = (n.Aggregate, n.Distinct, n.TopK, n.SetOperation, n.Join)
"""Snapshot-reducible operators that hold back what is open, or stand between those that do."""


class _Ends(NamedTuple):
    """At which instants windows end: k*slide + phase."""

    slide: int
    phase: int


def with_early_windows(plan: n.Plan) -> n.Plan:
    """The plan whose answers over windows are final when the windows end."""
    work = _Work()
    done: dict[n.Plan, n.Plan] = {}
    for node in plan.walk():
        made = node.with_new_inputs(done[child] for child in node.inputs)
        done[node] = work.early(made) if isinstance(node, _WAITING) else made
    return done[plan]


class _Work:
    def __init__(self) -> None:
        self._held: set[n.Plan] = set()
        """The granularities that were put in: what is below each of them is there at ends of windows only."""
        self._known: dict[n.Plan, _Ends | None] = {}
        self._instants: dict[n.Plan, n.Plan] = {}

    def early(self, plan: n.Plan) -> n.Plan:
        """The node below a granularity, if all that it reads is shown from one end of windows to the next."""
        ends = self._common(plan.inputs)
        if ends is None:
            return plan
        held = n.Granularity(plan.with_inputs(*map(self._at_ends, plan.inputs)), *ends)
        self._held.add(held)
        return held

    def _common(self, plans: tuple[n.Plan, ...]) -> _Ends | None:
        found = set(map(self._ends, plans))
        return found.pop() if len(found) == 1 else None

    def _ends(self, plan: n.Plan) -> _Ends | None:
        """When the snapshots of the plan change, if that is when windows end; None if it may be at other instants too."""
        if plan not in self._known:
            self._known[plan] = self._found_ends(plan)
        return self._known[plan]

    def _found_ends(self, plan: n.Plan) -> _Ends | None:
        match plan:
            case n.HopWindow(size=size, slide=slide, offset=offset, lifetime=None) if slide > 1:
                return _Ends(slide, (offset + size) % slide)
            case n.Granularity(granule=granule, offset=offset) if plan in self._held:
                return _Ends(granule, offset)
            case n.Filter() | n.Project() | n.Union():
                return self._common(plan.inputs)
        return None

    def _at_ends(self, plan: n.Plan) -> n.Plan:
        """The same snapshots at the ends of windows, and none between them."""
        if plan not in self._instants:
            match plan:
                case n.HopWindow():
                    made: n.Plan = evolve(plan, lifetime=1)
                case n.Granularity(input=below):
                    made = below
                case _:
                    made = plan.with_inputs(*map(self._at_ends, plan.inputs))
            self._instants[plan] = made
        return self._instants[plan]
