"""Which parts of the queries Spark computes by itself, row by row, before the rows of a stream enter Python.

Of a stream that Spark reads, only what the queries need crosses into Python: the values of their first projections, of the
rows that pass their first filters. The graph of operators stays what it is: a part is a node of it whose rows are brought
instead of computed. So ticks that run in the driver, restarts and frontiers need no care.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pyarrow as pa

from headwater.algebra import nodes as n
from headwater.algebra.properties import is_chronon
from headwater.backends.spark.live_columns import read_columns
from headwater.expressions.rewrite import column
from headwater.expressions.spark import to_spark
from headwater.expressions.spark_values import NotNativeError, spark_type
from headwater.model.schema import RESERVED, START, Schema
from headwater.operators.base import Operator
from headwater.operators.rows.granularity import GranularityOperator
from headwater.operators.windows.hop_window import HopWindowOperator
from headwater.operators.windows.time_window import TimeWindowOperator

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


def narrowed(plan: n.Plan, wanted: frozenset[str]) -> n.Plan:
    """Only the columns that are read; where rows are only counted, one that is cheap to carry."""
    names = [f.name for f in plan.schema if f.name in wanted]
    if not names:
        names = [min(plan.schema, key=lambda f: _width(f.type)).name] if len(plan.schema) else []
    if len(names) == len(plan.schema):
        return plan
    return n.Project(plan, tuple((f.name, column(f)) for f in plan.schema.select(names)))


def _width(type_: pa.DataType) -> int:
    return type_.bit_width if pa.types.is_primitive(type_) else 1_000


def is_row_wise(plan: n.Plan, streams: Collection[str]) -> bool:
    """Does each row of one of the streams give one row or none, computed in Spark?"""
    if not _suits(plan.schema):
        return False
    match plan:
        case n.Source(name=name, chronons=chronons, revisable=revisable):
            return name in streams and chronons and not revisable
        case n.Filter(input=below, predicate=predicate):
            return is_row_wise(below, streams) and to_spark(predicate) is not None
        case n.Project(input=below, expressions=expressions):
            return is_row_wise(below, streams) and all(to_spark(e) is not None for _, e in expressions)
        case n.TimeWindow(input=below) | n.Stamp(input=below):
            return is_row_wise(below, streams) and is_chronon(below)
        case n.Granularity(input=below):
            return is_row_wise(below, streams)
    return False


def _suits(schema: Schema) -> bool:
    """Names that differ by more than case, none of them that of a column that is carried along, and types that Spark has."""
    names = {name.casefold() for name in (*schema.names, *RESERVED)}
    try:
        for type_ in schema.types:
            spark_type(type_)
    except NotNativeError:
        return False
    return len(names) == len(schema) + len(RESERVED) and not any(name.startswith(CARRIED) for name in names)


def is_stateless(plan: n.Plan) -> bool:
    """Does Spark compute the whole answer, a row or none of each row? Then none need enter Python."""
    streams = [node.name for node in plan.walk() if isinstance(node, n.Source)]
    windows = any(isinstance(node, (n.TimeWindow, n.Granularity)) for node in plan.walk())
    return len(streams) == 1 and not windows and is_row_wise(plan, streams)


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
