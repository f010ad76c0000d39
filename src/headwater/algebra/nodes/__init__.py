"""Logical operators: immutable nodes, each with the snapshot meaning of Krämer chapter 8 (and 17, 20 for the extensions).

A plan is a tree (shared nodes make it a DAG). Its expressions are trees too (``headwater.expressions``), over the names of
the input's columns, so that nothing here knows a parser of SQL.
"""

from headwater.algebra.nodes.aggregates import Aggregate, AggregateCall, PreAggregate
from headwater.algebra.nodes.base import Plan
from headwater.algebra.nodes.frames import FRAME_AGGREGATES, FRAME_VALUES, FrameCall, Frames
from headwater.algebra.nodes.instants import Coalesce, Granularity, Sample, Split, Stamp
from headwater.algebra.nodes.joins import Join, JoinKind
from headwater.algebra.nodes.ranking import SortKey, TopK
from headwater.algebra.nodes.rows import Filter, Project, Unnest
from headwater.algebra.nodes.sets import Distinct, SetKind, SetOperation, Union
from headwater.algebra.nodes.sources import Constant, Source
from headwater.algebra.nodes.streams import Dstream, FromPositiveNegative, Istream, ToPositiveNegative
from headwater.algebra.nodes.waiting import Await
from headwater.algebra.nodes.windows import HopWindow, RowWindow, SessionWindow, TimeWindow

NODES: tuple[type[Plan], ...] = (
    *(Source, Constant, Filter, Project, Union, Join, Distinct, SetOperation, Aggregate, PreAggregate, Await),
    *(TimeWindow, RowWindow, HopWindow, SessionWindow, Frames, TopK, Granularity, Sample, Stamp, Split, Coalesce),
    *(Istream, Dstream, ToPositiveNegative, FromPositiveNegative, Unnest),
)
"""All kinds of nodes."""

__all__ = [
    "FRAME_AGGREGATES",
    "FRAME_VALUES",
    "NODES",
    "Aggregate",
    "AggregateCall",
    "Await",
    "Coalesce",
    "Constant",
    "Distinct",
    "Dstream",
    "Filter",
    "FrameCall",
    "Frames",
    "FromPositiveNegative",
    "Granularity",
    "HopWindow",
    "Istream",
    "Join",
    "JoinKind",
    "Plan",
    "PreAggregate",
    "Project",
    "RowWindow",
    "Sample",
    "SessionWindow",
    "SetKind",
    "SetOperation",
    "SortKey",
    "Source",
    "Split",
    "Stamp",
    "TimeWindow",
    "ToPositiveNegative",
    "TopK",
    "Union",
    "Unnest",
]
