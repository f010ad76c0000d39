"""What Spark computes by itself of a plan, row by row, before the rows of a stream enter Python (``optimizer/physical``).

The graph of operators stays what it is: a part is a node of it whose rows are brought instead of computed. So ticks that run
in the driver, restarts and frontiers need no care.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from attrs import frozen

from headwater.algebra import nodes as n
from headwater.expressions.nodes import Expression
from headwater.expressions.spark import to_spark
from headwater.expressions.spark_values import NotNativeError, spark_type
from headwater.model.schema import RESERVED, START, Schema
from headwater.operators.base import Operator
from headwater.operators.rows.granularity import GranularityOperator
from headwater.operators.windows.hop_window import HopWindowOperator
from headwater.operators.windows.time_window import TimeWindowOperator
from headwater.optimizer.physical.native_parts import is_row_wise

CARRIED = f"{START} "
"""How the names of columns begin that are there on the way only."""


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


@frozen
class SparkRows:
    """What Spark computes of rows that it has: an expression where its own means exactly the same."""

    streams: Collection[str] | None = None
    """Those whose rows it has; None: it may have all."""

    def has(self, stream: str) -> bool:
        return self.streams is None or stream in self.streams

    def carries(self, schema: Schema) -> bool:
        """Names that differ by more than case, none of them that of a column that is carried along, and types that Spark
        has."""
        names = {name.casefold() for name in (*schema.names, *RESERVED)}
        try:
            for type_ in schema.types:
                spark_type(type_)
        except NotNativeError:
            return False
        return len(names) == len(schema) + len(RESERVED) and not any(name.startswith(CARRIED) for name in names)

    def computes(self, scalar: Expression) -> bool:
        return to_spark(scalar) is not None


SPARK = SparkRows()


def is_stateless(plan: n.Plan) -> bool:
    """Does Spark compute the whole answer, a row or none of each row? Then none need enter Python."""
    sources = [node for node in plan.walk() if isinstance(node, n.Source)]
    windows = any(isinstance(node, (n.TimeWindow, n.Granularity)) for node in plan.walk())
    return len(sources) == 1 and not windows and is_row_wise(plan, SPARK, plan.streams)


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
