"""What can be said about a plan without running it: how far its answers reach, whether they last, if they are exact."""

from __future__ import annotations

from collections.abc import Collection
from math import lcm

from headwater.algebra.nodes import (
    Aggregate,
    Constant,
    Dstream,
    Frames,
    FromPositiveNegative,
    Granularity,
    HopWindow,
    Istream,
    Join,
    JoinKind,
    Plan,
    Project,
    RowWindow,
    Sample,
    SessionWindow,
    SetKind,
    SetOperation,
    Source,
    Split,
    Stamp,
    TimeWindow,
    ToPositiveNegative,
    Union,
)
from headwater.model.time import INFINITY


def sources(plan: Plan) -> list[Source]:
    """The sources below the plan, each name once, in the order of the plan."""
    found = {node.name: node for node in plan.walk() if isinstance(node, Source)}
    return list(found.values())


def extent(plan: Plan) -> int:
    """How far after the last finite endpoint of its inputs the answer can still change."""
    below = max((extent(child) for child in plan.inputs), default=0)
    if isinstance(plan, TimeWindow):
        return below + plan.slide + (0 if plan.unbounded else plan.size)
    if isinstance(plan, HopWindow):
        return below + plan.size + plan.shown
    if isinstance(plan, SessionWindow):
        return below + plan.gap
    if isinstance(plan, Granularity):
        return below + plan.granule
    return below + 1 if isinstance(plan, (Istream, Dstream, ToPositiveNegative)) else below


def lasts(plan: Plan, lasting: Collection[str]) -> bool:
    """Can the answer hold rows for ever, when the sources of these names can?"""
    if isinstance(plan, Source):
        return plan.name in lasting
    if isinstance(plan, Constant):
        return bool(plan.rows)
    if isinstance(plan, (Istream, Dstream, ToPositiveNegative)):
        return False
    if isinstance(plan, (RowWindow, SessionWindow, FromPositiveNegative)) or (
        isinstance(plan, TimeWindow) and plan.unbounded
    ):
        return True
    below = [lasts(child, lasting) for child in plan.inputs]
    if isinstance(plan, Join):
        kept = {JoinKind.INNER: all(below), JoinKind.RIGHT: below[1], JoinKind.FULL: any(below)}
        return kept.get(plan.kind, below[0])
    if isinstance(plan, SetOperation):
        if plan.kind in (SetKind.INTERSECT, SetKind.INTERSECT_ALL):
            return all(below)
        return any(below) if plan.kind is SetKind.MAX_UNION else below[0]
    return any(below) if isinstance(plan, Union) else below[0]


def grows_for_ever(plan: Plan, lasting: Collection[str]) -> bool:
    """Does the answer change at instants without end, so that no finite history tells it?

    A window takes up more rows at every instant to come, or rows come and go with every refresh, or are others.
    """
    return any(
        lasts(node.input, lasting)
        for node in plan.walk()
        if isinstance(node, (RowWindow, HopWindow, Sample, Stamp, Frames))
        or (isinstance(node, TimeWindow) and node.unbounded)
    )


def period(plan: Plan) -> int:
    """Moving every input by a multiple of this many instants moves the answer as far: windows slide in step.

    INFINITY where nothing can be moved: constants stay where they are, and so do instants that are values.
    """
    if any(isinstance(node, (Constant, HopWindow, SessionWindow, Stamp)) for node in plan.walk()):
        return INFINITY
    steps = [node.slide for node in plan.walk() if isinstance(node, TimeWindow)]
    steps += [node.period for node in plan.walk() if isinstance(node, Sample)]
    return lcm(*steps, *(node.granule for node in plan.walk() if isinstance(node, Granularity)))


def is_exact(plan: Plan) -> bool:
    """Can answers be compared bit by bit?"""
    calls = (call for node in plan.walk() if isinstance(node, (Aggregate, Frames)) for call in node.calls)
    return all(call.built_in is None or call.built_in.exact for call in calls)


def is_prompt(plan: Plan, lasting: Collection[str]) -> bool:
    """Does what has arrived show in a speculative answer at once?

    Not through filters, nor through several sweeps: each shows the answer up to the largest start that it has seen
    itself. And what has no end, or is shown without one, is cut into instants only as far as the frontier.
    """
    passing = (Source, Constant, Project, Union, Split, Granularity, TimeWindow, HopWindow, Stamp)
    if sum(not isinstance(node, passing) for node in plan.walk()) > 1:
        return False
    cutting = (Split, TimeWindow, RowWindow, HopWindow, SessionWindow, Stamp, Frames)
    cut = [node.inputs[0] for node in plan.walk() if isinstance(node, cutting)]
    return not any(lasts(below, lasting) or not all(isinstance(n, passing) for n in below.walk()) for below in cut)
