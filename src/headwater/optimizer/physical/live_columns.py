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
        for child, names in zip(node.inputs, node.reads(wanted[node]), strict=True):
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
