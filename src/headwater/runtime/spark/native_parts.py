"""Which parts of the queries Spark computes by itself, row by row, before the rows of a stream enter Python.

Of a stream that Spark reads, only what the queries need crosses into Python: the values of their first projections, of the
rows that pass their first filters. The graph of operators stays what it is: a part is a node of it whose rows are brought
instead of computed. So ticks that run in the driver, restarts and frontiers need no care.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from headwater.algebra import nodes as n
from headwater.model.schema import START, Schema
from headwater.operators.base import Operator
from headwater.operators.granularity import GranularityOperator
from headwater.operators.hop_window import HopWindowOperator
from headwater.operators.time_window import TimeWindowOperator
from headwater.runtime.spark.live_columns import read_columns
from headwater.runtime.spark.prefix import is_native, narrowed

CARRIED = f"{START} "
"""How the names of columns begin that are there on the way only."""


class Marked(NamedTuple):
    """A plan, and the parts of it that cover all it reads of some streams."""

    plan: n.Plan
    parts: tuple[n.Plan, ...] = ()


class NativePart(NamedTuple):
    """A part of a plan, and the node of the graph that stands for it."""

    node: int
    plan: n.Plan

    @property
    def steps(self) -> list[n.Plan]:
        """From the source up: what is done to the payload."""
        return [node for node in chain(self.plan) if isinstance(node, (n.Filter, n.Project, n.Stamp))]

    @property
    def is_filtered(self) -> bool:
        return any(isinstance(node, n.Filter) for node in chain(self.plan))

    @property
    def windows(self) -> tuple[Operator, ...]:
        """What is done to the times: arithmetic on a column that crosses anyway, so Python does it."""
        return tuple(window(node, node.schema) for node in timed(self.plan))


def marked(plan: n.Plan, streams: Collection[str]) -> Marked:
    """The largest parts over these streams, each handing on only the columns that something above it reads."""
    parts: dict[n.Plan, None] = {}
    wanted = read_columns(plan)
    done: dict[n.Plan, n.Plan] = {}

    def rebuilt(node: n.Plan) -> n.Plan:
        if node not in done:
            if is_row_wise(node, streams):
                narrow = narrowed(node, wanted[node])
                done[node] = narrow if is_row_wise(narrow, streams) else node
                parts[done[node]] = None
            else:
                done[node] = node.with_new_inputs(map(rebuilt, node.inputs))
        return done[node]

    made = rebuilt(plan)
    covered = [stream for stream in streams if _covers(made, parts, stream)]
    return Marked(made, tuple(parts)) if len(covered) == len(streams) else marked(plan, covered)


def _covers(plan: n.Plan, parts: Collection[n.Plan], stream: str) -> bool:
    """Does the plan read the stream through these parts only?"""
    if plan in parts:
        return True
    if isinstance(plan, n.Source):
        return plan.name != stream
    return all(_covers(child, parts, stream) for child in plan.inputs)


def is_row_wise(plan: n.Plan, streams: Collection[str]) -> bool:
    """Does each row of one of the streams give one row or none, computed in Spark?"""
    match plan:
        case n.Source(name=name, chronons=chronons, revisable=revisable):
            return name in streams and chronons and not revisable and is_native(plan) and _is_free(plan)
        case n.Filter(input=below) | n.Project(input=below) | n.Stamp(input=below):
            return is_row_wise(below, streams) and is_native(plan) and _is_free(plan)
        case n.TimeWindow(input=below) | n.Granularity(input=below):
            return is_row_wise(below, streams) and is_native(plan)
    return False


def is_stateless(plan: n.Plan) -> bool:
    """Does Spark compute the whole answer, a row or none of each row? Then none need enter Python."""
    streams = [node.name for node in plan.walk() if isinstance(node, n.Source)]
    windows = any(isinstance(node, (n.TimeWindow, n.Granularity)) for node in plan.walk())
    return len(streams) == 1 and not windows and is_row_wise(plan, streams)


def _is_free(plan: n.Plan) -> bool:
    """Has no column the name of one that is carried along?"""
    return not any(name.casefold().startswith(CARRIED) for name in plan.schema.names)


def chain(part: n.Plan) -> list[n.Plan]:
    """The nodes of a part, from the source up."""
    found = [part]
    while found[-1].inputs:
        (below,) = found[-1].inputs
        found.append(below)
    return found[::-1]


def timed(part: n.Plan) -> list[n.Plan]:
    """The nodes of a part that change times, from the source up."""
    return [node for node in chain(part) if isinstance(node, (n.TimeWindow, n.Granularity))]


def window(plan: n.Plan, schema: Schema) -> Operator:
    """What does to times what the node says, over rows of this schema."""
    match plan:
        case n.TimeWindow(size=size, slide=slide):
            return TimeWindowOperator(schema, size, slide)
        case n.Granularity(granule=granule, offset=offset):
            return GranularityOperator(schema, granule, offset)
        case n.HopWindow(size=size, slide=slide, offset=offset, lifetime=lifetime):
            names = {"start": plan.start, "end": plan.end, "time": plan.time}
            return HopWindowOperator(schema, size, slide, offset, **names, lifetime=lifetime)
    raise TypeError(f"{type(plan).__name__} is no window")
