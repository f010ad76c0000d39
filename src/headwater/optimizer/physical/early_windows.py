"""Answers over TUMBLE and HOP windows as soon as a window has closed, not one slide later.

A window that ended at e is shown during [e, e + slide), so an aggregate over it has an open end there: one that emits only
what is final would wait for the next window to close. But between two ends nothing changes. At any instant one window is
shown, the one that ended last, so that

    hop(S) ≐ Γ(hop₁(S))     hop₁: each window for one instant, at its end; Γ: what was valid at the last end, until the next
    op(Γ(S)) ≐ Γ(op(S))     for every snapshot-reducible operator (Krämer 10.2): Γ shows the snapshot of another instant

and op(hop(S)) ≐ Γ(op(hop₁(S))). The operator works on single instants, which are over one instant after the window's end;
Γ has no state. Several operators over windows that end together, such as a join of two counts, become one Γ above them all.

The snapshots are the same, only what is final earlier differs.
"""

from __future__ import annotations

from typing import NamedTuple

from attrs import Factory, evolve, frozen

from headwater.algebra import nodes as n
from headwater.optimizer.rule import Context, rule

_WAITING = (n.Aggregate, n.Distinct, n.TopK, n.SetOperation, n.Join)
"""Snapshot-reducible operators that hold back what is open, or stand between those that do."""
_ROW_BY_ROW = (n.Filter, n.Project, n.Union)


class _Ends(NamedTuple):
    """At which instants windows end: k*slide + phase."""

    slide: int
    phase: int


@rule(
    *_WAITING,
    law="op(hop(S)) ≐ Γ(op(hop₁(S))), op(Γ(S)) ≐ Γ(op(S))",
    condition="op is snapshot-reducible, and all that it reads is shown from one end of windows to the next",
    source="ours: from Krämer lemma 10.2",
    physical=True,
)
def early_windows(plan: n.Plan, context: Context) -> n.Plan | None:
    ends = _common(plan.inputs, _Look())
    if ends is None:
        return None
    done: dict[n.Plan, n.Plan] = {}
    return n.Granularity(plan.with_inputs(*(_at_ends(below, done) for below in plan.inputs)), *ends)


@frozen
class _Look:
    """What is known of parts that several others read."""

    shown: dict[n.Plan, _Ends | None] = Factory(dict)
    instants: dict[n.Plan, _Ends | None] = Factory(dict)


def _common(plans: tuple[n.Plan, ...], look: _Look) -> _Ends | None:
    found = {_ends(plan, look) for plan in plans}
    return found.pop() if len(found) == 1 else None


def _ends(plan: n.Plan, look: _Look) -> _Ends | None:
    """When the snapshots of the plan change, if that is when windows end; None if it may be at other instants too."""
    if plan in look.shown:
        return look.shown[plan]
    ends = None
    match plan:
        case n.HopWindow(lifetime=None) if plan.slide > 1:
            ends = _window_ends(plan)
        case n.Granularity(input=below, granule=granule, offset=offset):
            ends = _Ends(granule, offset) if _instants(below, look) == (granule, offset) else None
        case n.Filter() | n.Project() | n.Union():
            ends = _common(plan.inputs, look)
    look.shown[plan] = ends
    return ends


def _instants(plan: n.Plan, look: _Look) -> _Ends | None:
    """At which instants alone the plan has rows, if these are ends of windows."""
    if plan in look.instants:
        return look.instants[plan]
    ends = None
    if isinstance(plan, n.HopWindow):
        ends = _window_ends(plan) if plan.lifetime == 1 else None
    elif isinstance(plan, _WAITING + _ROW_BY_ROW):
        found = {_instants(below, look) for below in plan.inputs}
        ends = found.pop() if len(found) == 1 else None
    look.instants[plan] = ends
    return ends


def _window_ends(plan: n.HopWindow) -> _Ends:
    return _Ends(plan.slide, (plan.offset + plan.size) % plan.slide)


def _at_ends(plan: n.Plan, done: dict[n.Plan, n.Plan]) -> n.Plan:
    """The same snapshots at the ends of windows, and none between them."""
    if plan not in done:
        match plan:
            case n.HopWindow():
                done[plan] = evolve(plan, lifetime=1)
            case n.Granularity(input=below):
                done[plan] = below
            case _:
                done[plan] = plan.with_inputs(*(_at_ends(below, done) for below in plan.inputs))
    return done[plan]
