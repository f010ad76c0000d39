"""Which columns of each part of a plan are read by what stands above it."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from headwater.algebra import nodes as n
from headwater.model.schema import Schema


def read_columns(plan: n.Plan) -> dict[n.Plan, frozenset[str]]:
    """For each node, the columns of its output that its readers need; of the plan itself, all.

    Where rows are compared as a whole (DISTINCT, EXCEPT, ties of row windows and of top-k), all columns are needed.
    """
    wanted: dict[n.Plan, frozenset[str]] = {node: frozenset() for node in plan.walk()}
    wanted[plan] = frozenset(plan.schema.names)
    for node in reversed(list(plan.walk())):  # readers before what they read
        for child, names in zip(node.inputs, _needs(node, wanted[node]), strict=True):
            wanted[child] |= names
    return wanted


def narrow_schema(schema: Schema, wanted: Collection[str]) -> Schema:
    """Only the columns that are read; where rows are only counted, one that is cheap to carry."""
    names = [f.name for f in schema if f.name in wanted]
    if not names:
        names = [min(schema, key=lambda f: _width(f.type)).name] if len(schema) else []
    return schema if len(names) == len(schema) else schema.select(names)


def _width(type_: pa.DataType) -> int:
    return type_.bit_width if pa.types.is_primitive(type_) else 1_000


def _needs(plan: n.Plan, wanted: frozenset[str]) -> list[frozenset[str]]:
    """The columns that the node reads of each input, if only some of its own are wanted."""
    match plan:
        case n.Filter(predicate=predicate):
            return [wanted | _known(predicate, plan.input)]
        case n.Project(input=below, expressions=expressions):
            return [frozenset(c for _, scalar in expressions for c in _known(scalar, below))]
        case n.TimeWindow() | n.Granularity():
            return [wanted]
        case n.Await(other=other, by=by):
            return [wanted | frozenset(by), frozenset(other.schema.names)]
        case n.HopWindow(start=start, end=end):
            return [wanted - {start, end}]
        case n.Stamp(column=column):
            return [wanted - {column}]
        case n.Aggregate(keys=keys, calls=calls) | n.PreAggregate(keys=keys, calls=calls):
            read = {c for call in calls for c in (call.argument, call.filter) if c is not None}
            return [frozenset(keys) | read]
        case n.Join(left=left, right=right, keys=keys, residual=residual):
            sides = []
            for side, prefix, own in ((left, "l.", [a for a, _ in keys]), (right, "r.", [b for _, b in keys])):
                compared = residual.columns if residual is not None else ()
                named = {c.removeprefix(prefix) for c in compared if c.startswith(prefix)}
                sides.append((wanted | named | set(own)) & set(side.schema.names))
            return [frozenset(side) for side in sides]
    return [frozenset(child.schema.names) for child in plan.inputs]


def _known(scalar: n.Scalar, below: n.Plan) -> frozenset[str]:
    return frozenset(scalar.columns) & frozenset(below.schema.names)
