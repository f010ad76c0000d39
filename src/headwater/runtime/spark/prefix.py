"""The native prefix: the part of a plan right above a source that Spark computes by itself, without Python.

Filters, projections, windows of time (arithmetic on the ends of intervals) and unions of these over the same source become
transformations of a DataFrame with the payload columns and ``_start``, ``_end``, ``_weight``. Everything here is linear
in the rows: a row's results do not depend on other rows, so retractions and ticks need no care.

A plan is cut once (``cut``); the part above sees each native part as a source of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headwater.algebra import nodes as n
from headwater.algebra.plan_text import print_plan
from headwater.algebra.properties import is_chronon
from headwater.model.delta import Delta
from headwater.model.schema import END, RESERVED, START, WEIGHT, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Operator
from headwater.operators.granularity import GranularityOperator
from headwater.operators.hop_window import HopWindowOperator
from headwater.operators.time_window import TimeWindowOperator
from headwater.runtime.spark.expressions import suits, to_spark
from headwater.runtime.spark.live_columns import read_columns
from headwater.runtime.spark.spark_values import NotNativeError, literal, quoted, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_COPIES = 10_000
"""More hopping windows than this a row are left to Python, which refuses what would never end."""


class Cut(NamedTuple):
    """A plan in two: what Spark computes, and the plan above that reads it."""

    native: Mapping[str, n.Plan]
    """By the name of the source that stands for it in ``rest``. Equal parts have equal names, in all plans."""
    rest: n.Plan


def cut(plan: n.Plan) -> Cut:
    """The largest native parts, and what is left above them.

    A part hands on only the columns that something above it reads. A plan without a native part is its own rest.
    """
    parts: dict[str, n.Plan] = {}
    wanted = read_columns(plan)
    done: dict[n.Plan, n.Plan] = {}

    def rebuilt(node: n.Plan) -> n.Plan:
        if node not in done:
            part = narrowed(node, wanted[node]) if is_native(node) else node
            if is_native(part) and not isinstance(part, n.Source):
                done[node] = _source_of(part)
                parts[_name_of(part)] = part
            else:
                done[node] = node.with_new_inputs(map(rebuilt, node.inputs))
        return done[node]

    return Cut(parts, rebuilt(plan))


def _source_of(part: n.Plan) -> n.Source:
    (source,) = _sources(part)
    return n.Source(_name_of(part), part.schema, chronons=is_chronon(part), revisable=source.revisable)


def is_native(plan: n.Plan) -> bool:
    """Does Spark compute the whole plan? Then no row enters Python."""
    return len(_sources(plan)) == 1 and _is_native(plan)


def _sources(plan: n.Plan) -> list[n.Source]:
    return [node for node in plan.walk() if isinstance(node, n.Source)]


def narrowed(plan: n.Plan, wanted: frozenset[str]) -> n.Plan:
    """Only the columns that are read; where rows are only counted, one that is cheap to carry."""
    names = [f.name for f in plan.schema if f.name in wanted]
    if not names:
        names = [min(plan.schema, key=lambda f: _width(f.type)).name] if len(plan.schema) else []
    if len(names) == len(plan.schema):
        return plan
    return n.Project(plan, tuple((f.name, _column(f.name, f.type)) for f in plan.schema.select(names)))


def _width(type_: pa.DataType) -> int:
    return type_.bit_width if pa.types.is_primitive(type_) else 1_000


def _column(name: str, type_: pa.DataType) -> n.Scalar:
    escaped = name.replace('"', '""')
    return n.Scalar(f'"{escaped}"', type_, (name,))


def _name_of(plan: n.Plan) -> str:
    (source,) = _sources(plan)
    return f"{source.name} #{hashlib.sha256(print_plan(plan).encode()).hexdigest()[:12]}"


def frontier_above(plan: n.Plan, frontier: int) -> int:
    """How far the output of a native part is final, once its source is final up to the frontier."""
    match plan:
        case n.Source():
            return frontier
        case n.Union(left=left, right=right):
            return min(frontier_above(left, frontier), frontier_above(right, frontier))
        case n.TimeWindow(size=size, slide=slide):
            operator: Operator = TimeWindowOperator(plan.schema, size, slide)
        case n.HopWindow():
            names = {"start": plan.start, "end": plan.end, "time": plan.time}
            steps = (plan.size, plan.slide, plan.offset)
            operator = HopWindowOperator(plan.input.schema, *steps, **names, lifetime=plan.lifetime)
        case n.Granularity(granule=granule, offset=offset):
            operator = GranularityOperator(plan.schema, granule, offset)
        case _:
            return frontier_above(plan.inputs[0], frontier)
    (below,) = plan.inputs
    return operator.step(None, (Delta.empty(below.schema),), (frontier_above(below, frontier),)).frontier


# -- which nodes ------------------------------------------------------------------------------------------------------


def _is_native(plan: n.Plan) -> bool:
    return _says(plan) and all(_is_native(child) for child in plan.inputs)


def _says(plan: n.Plan) -> bool:
    """Can the node itself be said in Spark SQL?"""
    if not _is_plain(plan.schema):
        return False
    match plan:
        case n.Source():
            return True
        case n.Filter(predicate=predicate):
            return to_spark(predicate, plan.input.schema) is not None
        case n.Project(expressions=expressions):
            return all(to_spark(scalar, plan.input.schema) is not None for _, scalar in expressions)
        case n.TimeWindow() | n.Stamp():
            return is_chronon(plan.input)
        case n.HopWindow(size=size, slide=slide):
            return is_chronon(plan.input) and size // slide < _MOST_COPIES
        case n.Granularity():
            return True
        case n.Union(left=left, right=right):
            return left.schema.types == right.schema.types
    return False


def _is_plain(schema: Schema) -> bool:
    """Names that differ by more than case, and types that Spark has."""
    names = {name.casefold() for name in (*schema.names, *RESERVED)}
    try:
        for type_ in schema.types:
            spark_type(type_)
    except NotNativeError:
        return False
    return len(names) == len(schema) + len(RESERVED)


# -- transformations --------------------------------------------------------------------------------------------------

_TIMES = tuple(map(quoted, RESERVED))
_INTO, _BEGINS, _ENDS = "`_start into`", "`_start begins`", "`_start ends`"
"""Columns that are there only for a while."""


def with_elements(frame: DataFrame, time: str, schema: Schema) -> DataFrame:
    """Rows as elements of one instant: the payload columns, ``_start``, ``_end`` = ``_start`` + 1, ``_weight`` = 1.

    ``time`` is a TIMESTAMP, whose microseconds count, or an integer. ``_start`` is NULL where a row has no time, or the last
    one of all, after which nothing can end: such a row is malformed.
    """
    type_ = schema.field(time).type
    moment = f"CAST({quoted(time)} AS {'BIGINT' if pa.types.is_integer(type_) else 'TIMESTAMP'})"
    instant = moment if pa.types.is_integer(type_) else f"unix_micros({moment})"
    payload = frame.selectExpr(*_as_declared(schema), f"nullif({instant}, {INFINITY}L) AS {quoted(START)}")
    names = map(quoted, schema.names)
    return payload.selectExpr(
        *names, quoted(START), f"{quoted(START)} + 1L AS {quoted(END)}", f"1L AS {quoted(WEIGHT)}"
    )


def _as_declared(schema: Schema) -> Iterable[str]:
    for field in schema:
        name = quoted(field.name)
        yield f"CAST({name} AS TIMESTAMP) AS {name}" if pa.types.is_timestamp(field.type) else name


def without_time_zones(frame: DataFrame, schema: Schema) -> DataFrame:
    """Every TIMESTAMP as TIMESTAMP_NTZ, which is what Arrow and files take for one without a time zone."""
    columns = [
        f"CAST({quoted(f.name)} AS TIMESTAMP_NTZ) AS {quoted(f.name)}"
        if pa.types.is_timestamp(f.type)
        else quoted(f.name)
        for f in schema
    ]
    return frame.selectExpr(*columns, *_TIMES)


def native(plan: n.Plan, frame: DataFrame) -> DataFrame | None:
    """The plan over elements of its source (``with_elements``); None if Spark cannot compute it, or not in this session."""
    if not is_native(plan) or not suits(frame.sparkSession):
        return None
    done: dict[n.Plan, DataFrame] = {}
    for node in plan.walk():
        done[node] = frame if isinstance(node, n.Source) else _applied(node, [done[child] for child in node.inputs])
    return done[plan]


def _applied(plan: n.Plan, inputs: list[DataFrame]) -> DataFrame:
    frame = inputs[0]
    columns = list(map(quoted, plan.schema.names))
    match plan:
        case n.Filter(input=below, predicate=predicate):
            return frame.filter(_text(predicate, below.schema))
        case n.Project(input=below, expressions=expressions):
            chosen = [f"{_text(scalar, below.schema)} AS {quoted(name)}" for name, scalar in expressions]
            return frame.selectExpr(*chosen, *_TIMES)
        case n.TimeWindow(size=size, slide=slide):
            start = quoted(START)
            return _moved(frame, columns, _begins(start, slide), _begins(_later(start, size), slide))
        case n.Granularity(granule=granule, offset=offset):
            start, end = (_rounded_up(quoted(name), granule, offset) for name in (START, END))
            return frame if granule == 1 else _moved(frame, columns, start, end)
        case n.Stamp(input=below, column=column):
            return frame.selectExpr(*map(quoted, below.schema.names), f"{quoted(START)} AS {quoted(column)}", *_TIMES)
        case n.HopWindow():
            return _hopped(plan, frame)
        case n.Union():
            renamed = [f"{quoted(own)} AS {out}" for own, out in zip(plan.right.schema.names, columns, strict=True)]
            return frame.select(*columns, *_TIMES).unionAll(inputs[1].selectExpr(*renamed, *_TIMES))
    raise TypeError(f"{type(plan).__name__} is not native")


def _text(scalar: n.Scalar, schema: Schema) -> str:
    text = to_spark(scalar, schema)
    assert text is not None, "only native plans are compiled"
    return text


def _moved(frame: DataFrame, columns: Iterable[str], start: str, end: str) -> DataFrame:
    """The same rows over other intervals; rows whose interval became empty are dropped."""
    moved = frame.selectExpr(*columns, f"{start} AS {quoted(START)}", f"{end} AS {quoted(END)}", quoted(WEIGHT))
    return moved.filter(f"{quoted(START)} < {quoted(END)}")


# -- the arithmetic of instants, as in model/time.py and the operators ------------------------------------------------


def _whole(number: int) -> str:
    return literal(number, pa.int64())


def _later(instant: str, amount: int) -> str:
    """So much later, or the end of time."""
    if amount == 0:
        return instant
    if amount >= INFINITY:
        return _whole(INFINITY)
    return f"CASE WHEN {instant} > {_whole(INFINITY - amount)} THEN {_whole(INFINITY)} ELSE {instant} + {_whole(amount)} END"


def _later_by(instant: str, amount: str) -> str:
    last = _whole(INFINITY)
    return f"CASE WHEN {instant} > {last} - ({amount}) THEN {last} ELSE {instant} + ({amount}) END"


def _begins(instant: str, slide: int) -> str:
    """The first instant k*slide - 1 that is not before it."""
    return (
        instant if slide == 1 else _later_by(f"({instant})", f"{_whole(slide - 1)} - pmod({instant}, {_whole(slide)})")
    )


def _rounded_up(instant: str, step: int, offset: int) -> str:
    """The first k*step + offset that is not before it."""
    into = f"pmod({instant}, {_whole(step)})"
    return _later_by(instant, f"pmod({_whole(offset % step)} - {into}, {_whole(step)})")


def _hopped(plan: n.HopWindow, frame: DataFrame) -> DataFrame:
    """One copy a window: the j-th latest that contains t began (t - offset) mod slide + j*slide before it."""
    size, slide, offset = plan.size, plan.slide, plan.offset % plan.slide
    names, start = list(map(quoted, plan.input.schema.names)), quoted(START)
    into = f"pmod(pmod({start}, {_whole(slide)}) - {_whole(offset)}, {_whole(slide)})"
    if size <= slide:
        copies = frame.selectExpr(*names, *_TIMES, f"{into} AS {_INTO}").filter(f"{_INTO} < {_whole(size)}")
    else:
        steps = f"sequence({into}, {_whole(size - 1)}, {_whole(slide)})"
        copies = frame.selectExpr(*names, *_TIMES, f"explode({steps}) AS {_INTO}")
    begins = f"CASE WHEN {start} < {_whole(BEGINNING)} + {_INTO} THEN {_whole(BEGINNING)} ELSE {start} - {_INTO} END"
    ends = _later_by(start, f"{_whole(size)} - {_INTO}")
    copies = copies.selectExpr(*names, start, quoted(WEIGHT), f"{begins} AS {_BEGINS}", f"{ends} AS {_ENDS}")
    columns = [
        f"{_instant(name, plan.time)} AS {quoted(own)}" for name, own in ((_BEGINS, plan.start), (_ENDS, plan.end))
    ]
    hopped = copies.selectExpr(
        *names, *columns, f"{_ENDS} AS {start}", f"{_later(_ENDS, plan.shown)} AS {quoted(END)}", quoted(WEIGHT)
    )
    return hopped.filter(f"{start} < {quoted(END)}")


def _instant(name: str, type_: pa.DataType) -> str:
    return f"timestamp_micros({name})" if pa.types.is_timestamp(type_) else name
