"""Which parts of a plan another engine computes by itself, row by row, before the rows of a stream enter Python.

Of a stream whose rows it has, only what the query needs crosses into Python: the values of its first projections, of the
rows that pass its first filters. What it can compute, it says itself: the predicate is an argument of the physical phase.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from headwater.algebra import nodes as n
from headwater.algebra.properties import is_chronon
from headwater.optimizer.physical.live_columns import narrow_schema, read_columns
from headwater.optimizer.rule import Context, Native, rule
from headwater.optimizer.scalars import narrowed


class Marked(NamedTuple):
    """A plan, and the parts of it that cover all it reads of some streams."""

    plan: n.Plan
    parts: tuple[n.Plan, ...] = ()


@rule(
    n.Plan,
    law="op(S) ≐ op(π_A(S))",
    condition="A holds what op reads; Spark has the rows of a stream, and computes S of each of them",
    source="ours: Krämer 10.3.1",
    physical=True,
    whole=True,
)
def native_parts(plan: n.Plan, context: Context) -> n.Plan | None:
    changed = mark(plan, context.native).plan
    return None if changed is plan else changed


def mark(plan: n.Plan, native: Native) -> Marked:
    """The largest parts over the streams that are read elsewhere, each handing on only what something above it reads."""
    streams = {name for name in plan.streams if native.has(name)}
    return _mark(plan, native, streams) if streams else Marked(plan)


def _mark(plan: n.Plan, native: Native, streams: Collection[str]) -> Marked:
    parts: dict[n.Plan, None] = {}
    wanted = read_columns(plan)
    done: dict[n.Plan, n.Plan] = {}

    def rebuilt(node: n.Plan) -> n.Plan:
        if node not in done:
            if is_row_wise(node, native, streams):
                narrow = narrowed(node, narrow_schema(node.schema, wanted[node]).names)
                done[node] = narrow if is_row_wise(narrow, native, streams) else node
                parts[done[node]] = None
            else:
                done[node] = node.with_new_inputs(map(rebuilt, node.inputs))
        return done[node]

    made = rebuilt(plan)
    covered = [stream for stream in streams if _covers(made, parts, stream)]
    return Marked(made, tuple(parts)) if len(covered) == len(streams) else _mark(plan, native, covered)


def _covers(plan: n.Plan, parts: Collection[n.Plan], stream: str) -> bool:
    """Does the plan read the stream through these parts only?"""
    if plan in parts:
        return True
    if isinstance(plan, n.Source):
        return plan.name != stream
    return all(_covers(child, parts, stream) for child in plan.inputs)


def is_row_wise(plan: n.Plan, native: Native, streams: Collection[str]) -> bool:
    """Does each row of one of the streams give one row or none, computed there?"""
    if not native.carries(plan.schema):
        return False
    match plan:
        case n.Source(name=name, chronons=chronons, revisable=revisable):
            return name in streams and chronons and not revisable
        case n.Filter(input=below, predicate=predicate):
            return is_row_wise(below, native, streams) and native.computes(predicate)
        case n.Project(input=below, expressions=expressions):
            computes = (native.computes(scalar) for _, scalar in expressions)
            return is_row_wise(below, native, streams) and all(computes)
        case n.TimeWindow(input=below) | n.Stamp(input=below):
            return is_row_wise(below, native, streams) and is_chronon(below)
        case n.Granularity(input=below):
            return is_row_wise(below, native, streams)
    return False
